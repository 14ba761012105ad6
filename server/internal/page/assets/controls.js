// Controls of a cluster that braid up runs: its members, its protocol, a load. Elsewhere there are none.
import {attr, byId, h, show, text} from "./dom.js"
import {join, plural, si} from "./format.js"
import {addEvent, best, control, model} from "./state.js"
import {refresh, request, requestControls} from "./poll.js"

// actions on a member: the states in which they are possible, and the event that they add.
const actions = [
  {
    name: "kill",
    label: "Kill",
    states: ["running", "paused", "starting"],
    event: "was killed from here",
    title: "End the process at once, as a crash does",
  },
  {
    name: "start",
    label: "Start",
    states: ["dead"],
    event: "was started from here",
    title: "Start the process again, with its data",
  },
  {
    name: "pause",
    label: "Pause",
    states: ["running"],
    event: "was paused from here",
    title: "Suspend the process, as on a machine that hangs",
  },
  {
    name: "resume",
    label: "Resume",
    states: ["paused"],
    event: "was resumed from here",
    title: "The process continues",
  },
  {
    name: "cut",
    label: "Cut off",
    states: ["running", "paused"],
    event: "was cut off from the others from here",
    title: "No other member reaches it, and it reaches none",
  },
  {
    name: "slow",
    label: "Slow down",
    states: ["running", "paused"],
    event: "has slow links, set from here",
    title: "Its links to the others become slow",
  },
  {
    name: "heal",
    label: "Heal",
    states: ["running", "paused", "dead"],
    event: "has its links back, set from here",
    title: "Its links are as they were",
  },
]

let error = null

// act requests a change. It calls done if that succeeds, and shows the error with the change's name if it fails.
async function act(change, path, options, done) {
  try {
    const answer = await request(path, {
      ...options,
      headers: {"Braid-Control": "1", "Content-Type": "application/json"},
      patience: 15000,
    })
    const state = await answer.json().catch(() => null)
    if (state?.members) model.up = state
    fail("")
    done?.()
  } catch (e) {
    fail(`${change}: ${e.name === "TimeoutError" ? "no answer within 15 s" : e.message}`)
  }
  await requestControls()
  refresh()
}

function fail(sentence) {
  text(error, sentence)
  show(error, sentence)
}

// buttons makes the buttons of a member.
export function buttons(m) {
  const node = h("div", {class: "buttons", role: "group", "aria-label": "Controls of " + m.name, hidden: true})
  node.all = actions.map(action => actionButton(m, action))
  node.append(...node.all)
  return node
}

function actionButton(m, {name, label, title, event}) {
  const path = `/up/members/${encodeURIComponent(m.name)}/${name}`
  const done = () => {
    const at = model.at + Date.now() - model.reached
    addEvent({at, level: "info", kind: "control", text: `${m.name} ${event}`, member: m.id})
  }
  const onclick = async () => {
    b.disabled = true
    await act(`${m.name}: ${label.toLowerCase()}`, path, {method: "POST"}, done)
    b.disabled = false
  }
  const b = h("button", {type: "button", title, "data-action": name, "data-member": m.name, onclick}, label)
  return b
}

// updateButtons shows the actions that are possible now.
export function updateButtons(node, m) {
  const c = control(m.name)
  show(node, c)
  if (!c) return
  actions.forEach(({name, states}, i) => show(node.all[i], states.includes(c.state) && (name !== "heal" || c.net)))
}

const form = {}

const field = (label, node) => h("label", {}, h("span", {}, label), node)
const number = (value, min, max) => h("input", {type: "number", value, min, max, step: 1, required: true})
const pick = (options, value) =>
  h(
    "select",
    {},
    options.map(([v, t]) => h("option", {value: v, selected: v === value}, t)),
  )

// onsubmit is a listener that calls f in place of the browser's own request.
const onsubmit = f => e => {
  e.preventDefault()
  f()
}

export function start() {
  error = h("p", {class: "error", role: "alert", hidden: true})
  byId("controls").append(protocolForm(), loadForm(), error)
}

function protocolForm() {
  form.protocol = h("select", {id: "to-protocol"})
  form.change = h("button", {type: "submit", id: "switch"}, "Switch")
  form.changing = h("span", {class: "note"})
  return h("form", {onsubmit: onsubmit(changeProtocol)}, field("Protocol", form.protocol), form.change, form.changing)
}

function loadForm() {
  const sizes = [
    ["16", "16 B"],
    ["128", "128 B"],
    ["1024", "1 KiB"],
    ["16384", "16 KiB"],
    ["65536", "64 KiB"],
    ["1048576", "1 MiB"],
  ]
  const shares = [
    ["0", "none"],
    ["0.5", "half"],
    ["0.9", "90 %"],
    ["1", "all"],
  ]
  form.clients = number(100, 1, 1000)
  form.size = pick(sizes, "16")
  form.reads = pick(shares, "0.5")
  form.load = h("button", {type: "submit", id: "load"}, "Start load")
  form.loading = h("span", {class: "note", id: "loading"})
  return h(
    "form",
    {id: "load-form", onsubmit: onsubmit(changeLoad)},
    field("Clients", form.clients),
    field("Value", form.size),
    field("Reads", form.reads),
    form.load,
    form.loading,
  )
}

function changeProtocol() {
  const protocol = form.protocol.value
  act(`Switch to ${protocol}`, "/up/switch", {method: "POST", body: JSON.stringify({protocol})})
}

function changeLoad() {
  if (model.up?.load?.running) {
    act("Stop of the load", "/up/load", {method: "DELETE"})
    return
  }
  const body = {
    clients: Number(form.clients.value),
    value_bytes: Number(form.size.value),
    reads: Number(form.reads.value),
  }
  act("Load", "/up/load", {method: "POST", body: JSON.stringify(body)})
}

let protocols = ""

export function update() {
  const up = model.up
  show(byId("controls"), up)
  if (!up) return
  const now = best()?.protocol || up.protocol
  if (protocols !== up.protocols.join()) {
    protocols = up.protocols.join()
    form.protocol.replaceChildren(...up.protocols.map(p => h("option", {value: p}, p)))
    form.protocol.value = now
  }
  form.change.disabled = !!up.switching
  text(form.changing, up.switching ? `switching to ${up.switching}…` : "")
  const l = up.load
  text(form.load, l.running ? "Stop load" : "Start load")
  attr(form.load, "class", l.running ? "stop" : "")
  for (const input of [form.clients, form.size, form.reads]) input.disabled = l.running
  text(
    form.loading,
    l.running
      ? `${plural(l.clients, "client")}: ${join(si(l.writes_per_s, "/s"))} writes, ` +
          `${join(si(l.reads_per_s, "/s"))} reads` +
          (l.failed ? `, ${l.failed} failed` : "")
      : "",
  )
}
