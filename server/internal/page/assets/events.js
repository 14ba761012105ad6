// The events of the members, the newest first.
import {attr, byId, choice, h, list, text} from "./dom.js"
import {clock} from "./format.js"
import {tint} from "./color.js"
import {member, model} from "./state.js"

const shown = 120
const rank = {info: 0, warn: 1, error: 2}
let least = "info"

export function start() {
  choice(
    byId("levels"),
    [
      ["info", "all"],
      ["warn", "warnings"],
      ["error", "errors"],
    ],
    least,
    v => {
      least = v
      update()
    },
  )
}

let number = 0 // of the last event that was shown

export function update() {
  const events = model.events.filter(e => rank[e.level] >= rank[least]).slice(0, shown)
  const items = events.length ? events : [{empty: true}]
  list(byId("events"), items, e => (e.empty ? "empty" : (e.number ||= ++number)), build, fill)
}

function build() {
  return h("li", {}, h("time", {}), h("span", {class: "who"}), h("span", {class: "what"}))
}

function fill(node, e) {
  const [time, who, what] = node.children
  if (e.empty) {
    attr(node, "class", "empty")
    text(what, "Nothing happened yet.")
    return
  }
  const m = member(e.member)
  attr(node, "class", e.level)
  tint(node, m?.id)
  attr(time, "datetime", new Date(e.at).toISOString())
  text(time, clock(e.at))
  text(who, m?.name || "")
  text(what, e.text)
}
