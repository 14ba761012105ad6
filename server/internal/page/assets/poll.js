// Questions to the member that serves the page: once a second while the page is visible.
import {model, take, forget} from "./state.js"

const every = 1000,
  patience = 4000
let token = "",
  changed = () => {},
  refused = () => {},
  timer = 0,
  asking = false,
  again = false, // somebody wants an answer that is newer than the one under way
  hasControls = null

try {
  token = sessionStorage.getItem("braid-token") || ""
} catch {
  /* not allowed: the token lasts until the reload */
}

export const signedIn = () => token !== ""

// use makes later requests those of a token's user; "": of nobody.
export function use(t) {
  token = t
  try {
    t ? sessionStorage.setItem("braid-token", t) : sessionStorage.removeItem("braid-token")
  } catch {
    /* see above */
  }
}

// request is fetch for this member, with the user's token. It throws an error that is a sentence.
export async function request(path, options = {}) {
  const headers = {"Braid-Page": "1", ...options.headers}
  const by = token
  if (by) headers.Authorization = by
  const answer = await fetch(path, {
    cache: "no-store",
    ...options,
    headers,
    signal: AbortSignal.timeout(options.patience || patience),
  })
  if (answer.ok) return answer
  let said = await answer.text()
  try {
    const j = JSON.parse(said)
    said = j.error || j.message || said
  } catch {
    /* it is text */
  }
  throw Object.assign(new Error(said.trim() || `HTTP ${answer.status}`), {status: answer.status, by})
}

async function askCluster() {
  const query = model.cursor ? "?cursor=" + encodeURIComponent(model.cursor) : ""
  return (await request("/braid/cluster" + query)).json()
}

// askControls asks braid up, if it serves this page.
export async function askControls() {
  if (hasControls === false) return
  try {
    model.up = await (await request("/up")).json()
    hasControls = true
  } catch (e) {
    if (e.status === 404 || e.status === 401) {
      model.up = null
      if (e.status === 404) hasControls = false
    } else if (hasControls === null) hasControls = e.status ? false : null
  }
}

async function ask() {
  clearTimeout(timer)
  if (asking) {
    again = true
    return
  }
  asking = true
  again = false
  const began = Date.now()
  let answer = null
  try {
    const both = await Promise.allSettled([askCluster(), askControls()])
    if (both[0].status === "rejected") throw both[0].reason
    answer = both[0].value
  } catch (e) {
    if (e.status === 401 && e.by === token) {
      forget()
      model.up = null
      use("")
      refused()
    } else if (e.status === 401)
      again = true // the user has changed meanwhile
    else model.failure = e.status ? e.message : "no answer"
  }
  asking = false
  if (again) ask()
  else if (!document.hidden) timer = setTimeout(ask, Math.max(200, every - (Date.now() - began)))
  if (answer) take(answer)
  changed()
}

// poll begins to ask. onChange is called after each answer, onRefused when a user is needed.
export function poll(onChange, onRefused) {
  changed = onChange
  refused = onRefused
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) ask()
  })
  ask()
}

export {ask as askNow}
