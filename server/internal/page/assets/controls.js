// Controls of a cluster that braid up runs: its members, its protocol, a load. Elsewhere there are none.
import {attr, byId, h, show, text} from "./dom.js"
import {join, plural, si} from "./format.js"
import {addEvent, best, control, model} from "./state.js"
import {askControls, askNow, request} from "./poll.js"

// actions on a member: in which states they are possible, and how the page reports them.
const actions = [
  [
    "kill",
    "Kill",
    ["running", "paused", "starting"],
    "was killed from here",
    "End the process at once, as a crash does",
  ],
  ["start", "Start", ["dead"], "was started from here", "Start the process again, with its data"],
  ["pause", "Pause", ["running"], "was paused from here", "The process stands still, as on a machine that hangs"],
  ["resume", "Resume", ["paused"], "was resumed from here", "The process continues"],
  [
    "cut",
    "Cut off",
    ["running", "paused"],
    "was cut off from the others from here",
    "No other member reaches it, and it reaches none",
  ],
  [
    "slow",
    "Slow down",
    ["running", "paused"],
    "has slow links, set from here",
    "Its links to the others become slow",
  ],
  ["heal", "Heal", ["running", "paused", "dead"], "has its links back, set from here", "Its links are as they were"],
]

let error = null

// act sends a change, and says what failed in a sentence.
async function act(what, path, options, done) {
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
    fail(`${what}: ${e.name === "TimeoutError" ? "no answer within 15 s" : e.message}`)
  }
  await askControls()
  askNow()
}

function fail(sentence) {
  text(error, sentence)
  show(error, sentence)
}

// buttons makes the buttons of a member.
export function buttons(m) {
  const node = h("div", {class: "buttons", role: "group", "aria-label": "Controls of " + m.name, hidden: true})
  node.all = actions.map(([action, label, , done, title]) => {
    const b = h(
      "button",
      {
        type: "button",
        title,
        "data-action": action,
        "data-member": m.name,
        onclick: async () => {
          b.disabled = true
          await act(
            `${m.name}: ${label.toLowerCase()}`,
            `/up/members/${encodeURIComponent(m.name)}/${action}`,
            {method: "POST"},
            () =>
              addEvent({
                at: model.at + Date.now() - model.reached,
                level: "info",
                kind: "control",
                text: `${m.name} ${done}`,
                member: m.id,
              }),
          )
          b.disabled = false
        },
      },
      label,
    )
    return b
  })
  node.append(...node.all)
  return node
}

// updateButtons shows the actions that are possible now.
export function updateButtons(node, m) {
  const c = control(m.name)
  show(node, c)
  if (!c) return
  actions.forEach(([action, , states], i) => {
    const there =
      states.includes(c.state) &&
      (action !== "heal" || c.net) &&
      !(c.net && (action === "cut" || action === "slow") && c.state === "dead")
    show(node.all[i], there)
  })
}

const form = {}

function field(label, node) {
  return h("label", {}, h("span", {}, label), node)
}

export function start() {
  const number = (value, min, max, step) => h("input", {type: "number", value, min, max, step, required: true})
  const pick = (options, value) =>
    h(
      "select",
      {},
      options.map(([v, t]) => h("option", {value: v, selected: v === value}, t)),
    )
  Object.assign(form, {
    protocol: h("select", {id: "to-protocol"}),
    change: h("button", {type: "submit", id: "switch"}, "Switch"),
    changing: h("span", {class: "note"}),
    clients: number(100, 1, 1000, 1),
    size: pick(
      [
        ["16", "16 B"],
        ["128", "128 B"],
        ["1024", "1 KiB"],
        ["16384", "16 KiB"],
        ["65536", "64 KiB"],
        ["1048576", "1 MiB"],
      ],
      "16",
    ),
    reads: pick(
      [
        ["0", "none"],
        ["0.5", "half"],
        ["0.9", "90 %"],
        ["1", "all"],
      ],
      "0.5",
    ),
    load: h("button", {type: "submit", id: "load"}, "Start load"),
    loading: h("span", {class: "note", id: "loading"}),
  })
  error = h("p", {class: "error", role: "alert", hidden: true})
  const switching = h(
    "form",
    {
      onsubmit: e => {
        e.preventDefault()
        changeProtocol()
      },
    },
    field("Protocol", form.protocol),
    form.change,
    form.changing,
  )
  const load = h(
    "form",
    {
      id: "load-form",
      onsubmit: e => {
        e.preventDefault()
        changeLoad()
      },
    },
    field("Clients", form.clients),
    field("Value", form.size),
    field("Reads", form.reads),
    form.load,
    form.loading,
  )
  byId("controls").append(switching, load, error)
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
