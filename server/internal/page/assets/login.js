// The form for a user's name and password, where auth is on.
import {byId, h, show, text} from "./dom.js"
import {refresh, request, signedIn, use} from "./poll.js"

const name = h("input", {
  name: "user",
  autocomplete: "username",
  required: true,
  autocapitalize: "none",
  spellcheck: "false",
})
const password = h("input", {name: "password", type: "password", autocomplete: "current-password", required: true})
const error = h("p", {class: "error", role: "alert", hidden: true})
const button = h("button", {type: "submit"}, "Sign in")

export function start() {
  byId("login").append(
    h("h1", {}, "Sign in"),
    h("p", {}, "Auth is on in this cluster: its users see the dashboard."),
    h("label", {}, h("span", {}, "User"), name),
    h("label", {}, h("span", {}, "Password"), password),
    button,
    error,
  )
  byId("login").addEventListener("submit", e => {
    e.preventDefault()
    signIn()
  })
  byId("sign-out").addEventListener("click", () => {
    use("")
    refresh()
  })
}

async function signIn() {
  button.disabled = true
  show(error, false)
  try {
    const answer = await request("/v3/auth/authenticate", {
      method: "POST",
      body: JSON.stringify({name: name.value, password: password.value}),
    })
    use((await answer.json()).token)
    password.value = ""
    await refresh()
  } catch (e) {
    text(
      error,
      e.status === 400 || e.status === 401
        ? "The user or the password is wrong."
        : e.status
          ? e.message
          : "The member does not answer.",
    )
    show(error, true)
  }
  button.disabled = false
}

let shown = false

// update shows the form if the user has to sign in.
export function update(needed) {
  show(byId("login"), needed)
  show(byId("sign-out"), !needed && signedIn())
  if (needed && !shown) name.focus()
  shown = needed
}
