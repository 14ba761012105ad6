// Requests to the member that serves the page: once a second while the page is visible.
import {forget, merge, mergeControls, model} from "./state.js"

const every = 1000,
  patience = 4000 // milliseconds: between requests, and until one fails
let token = "",
  changed = () => {},
  refused = () => {},
  timer = 0,
  pending = false,
  again = false, // refresh was called while a request was pending, which may return an older state
  controls = true // false: this server has none

try {
  token = sessionStorage.getItem("braid-token") || ""
} catch {
  /* storage is not allowed: the token lasts until the reload */
}

export const signedIn = () => token !== ""

// use makes later requests with a user's token; "": without.
export function use(t) {
  token = t
  try {
    t ? sessionStorage.setItem("braid-token", t) : sessionStorage.removeItem("braid-token")
  } catch {
    /* see above */
  }
}

// request is fetch with the user's token. It throws an error with a sentence for the user, the HTTP status if there
// was an answer, and the token of the request.
export async function request(path, options = {}) {
  const headers = {"Braid-Page": "1", ...options.headers}
  const used = token
  if (used) headers.Authorization = used
  const answer = await fetch(path, {
    cache: "no-store",
    ...options,
    headers,
    signal: AbortSignal.timeout(options.patience || patience),
  })
  if (answer.ok) return answer
  let message = await answer.text()
  try {
    const j = JSON.parse(message)
    message = j.error || j.message || message
  } catch {
    /* it is text */
  }
  throw Object.assign(new Error(message.trim() || `HTTP ${answer.status}`), {status: answer.status, token: used})
}

async function requestCluster() {
  const query = model.cursor ? "?cursor=" + encodeURIComponent(model.cursor) : ""
  return (await request("/braid/cluster" + query)).json()
}

// requestControls requests the state of the controls, which only braid up has.
export async function requestControls() {
  if (!controls) return
  try {
    model.up = await (await request("/up")).json()
  } catch (e) {
    if (e.status === 404) controls = false
    if (e.status === 404 || e.status === 401) model.up = null
  }
}

// refresh requests the state now, and then once a second.
export async function refresh() {
  clearTimeout(timer)
  if (pending) {
    again = true
    return
  }
  pending = true
  again = false
  const began = Date.now()
  let answer = null
  try {
    const [cluster] = await Promise.allSettled([requestCluster(), requestControls()])
    if (cluster.status === "rejected") throw cluster.reason
    answer = cluster.value
  } catch (e) {
    if (e.status === 401 && e.token === token) {
      forget()
      model.up = null
      use("")
      refused()
    } else if (e.status === 401)
      again = true // the token has changed since the request
    else {
      model.failure = e.status ? e.message : "no answer"
      mergeControls()
    }
  }
  pending = false
  if (again) refresh()
  else if (!document.hidden) timer = setTimeout(refresh, Math.max(200, every - (Date.now() - began)))
  if (answer) merge(answer)
  changed()
}

// poll starts the requests. onChange is called after each, onRefused when a user has to sign in.
export function poll(onChange, onRefused) {
  changed = onChange
  refused = onRefused
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) refresh()
  })
  refresh()
}
