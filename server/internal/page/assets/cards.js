// A card for each member with its logs, figures and controls.
import {attr, byId, h, list, show, text} from "./dom.js"
import {bytes, cores, count, millis, plural, si} from "./format.js"
import {tint} from "./color.js"
import {condition, control, leads, model, now, self} from "./state.js"
import {legend, logBar, setBar, windowOf} from "./logbar.js"
import {roleText} from "./picture.js"
import {buttons, updateButtons} from "./controls.js"

const maxLogs = 16

const facts = [
  ["writes", s => si(s.writes, "/s")],
  ["reads", s => si(s.reads, "/s")],
  ["write p99", s => millis(s.write_p99_ms)],
  ["fsync p99", s => millis(s.fsync_p99_ms)],
  ["CPU", s => cores(s.cpu_cores)],
  ["memory", s => bytes(s.memory_bytes)],
  ["log on disk", s => bytes(s.log_size_bytes)],
  ["disk free", s => bytes(s.disk_free_bytes)],
  ["pending", s => bytes(s.pending_bytes)],
  ["clients", s => si(s.connections)],
]

export function start() {
  legend(byId("log-legend"), [
    ["applied", "applied"],
    ["commit", "committed"],
    ["durable", "on disk"],
    ["last", "appended"],
  ])
}

export function update() {
  const tops = windows()
  list(
    byId("cards"),
    model.members,
    m => m.id,
    build,
    (card, m) => fill(card, m, tops),
  )
}

// windows returns, by instance, the end of its log that the bars of all members show: {low, high, size}.
function windows() {
  const all = new Map()
  for (const m of model.members) {
    if (!m.reached) continue
    for (const i of m.status?.instances || []) {
      const w = all.get(i.instance) || {low: Infinity, high: 0}
      w.low = Math.min(w.low, i.applied_index)
      w.high = Math.max(w.high, i.last_index, i.commit_index)
      all.set(i.instance, w)
    }
  }
  for (const [key, w] of all) w.size = Math.min(windowOf("card" + key, w.high - w.low), 20000)
  return all
}

function build(m) {
  const p = {
    name: h("h3", {}),
    role: h("span", {class: "role"}),
    state: h("span", {class: "state"}),
    zone: h("span", {class: "zone"}),
    error: h("p", {class: "error"}),
    logs: h("div", {class: "logs"}),
    facts: h("dl", {class: "figures"}),
    net: h("p", {class: "error"}),
  }
  p.values = facts.map(([name]) => {
    const n = h("span", {}),
      unit = h("span", {class: "unit"})
    p.facts.append(h("div", {}, h("dt", {}, name), h("dd", {}, n, unit)))
    return {n, unit}
  })
  p.buttons = buttons(m)
  const card = h(
    "article",
    {class: "card", id: "m-" + m.id, tabindex: "-1"},
    h("header", {}, p.name, p.role, p.zone, p.state),
    p.error,
    p.net,
    p.logs,
    p.facts,
    p.buttons,
  )
  card.parts = p
  return card
}

function fill(card, m, tops) {
  const p = card.parts,
    c = condition(m),
    st = m.status
  attr(card, "data-member", m.name)
  attr(card, "data-leads", m.reached && leads(m.id).length > 0)
  attr(card, "class", `card ${c.level}${m.reached ? "" : " away"}`)
  tint(card, m.id)
  text(p.name, m.name)
  text(p.role, roleText(m))
  text(p.zone, self(m)?.zone || "")
  text(p.state, c.word)
  const why = m.reached ? (c.word === "serves" ? m.error : c.why || st?.why || m.error) : m.error
  text(p.error, why || "")
  show(p.error, why)
  const net = control(m.name)?.net
  text(p.net, net || "")
  show(p.net, net)
  const shown = (st?.instances || []).slice(0, maxLogs)
  list(
    p.logs,
    shown,
    i => i.instance,
    buildLog,
    (row, i) => fillLog(row, i, tops.get(i.instance), m, shown.length),
  )
  const sample = m.reached && m.series.last(now())
  facts.forEach(([, read], i) => {
    const [n, unit] = sample ? read(sample) : ["–", ""]
    text(p.values[i].n, n)
    text(p.values[i].unit, unit)
  })
  updateButtons(p.buttons, m)
}

function buildLog() {
  const p = {name: h("span", {class: "name"}), bar: logBar(), value: h("span", {class: "value"})}
  const row = h("div", {class: "log"}, p.name, p.bar.root, p.value)
  row.parts = p
  return row
}

function fillLog(row, i, top, m, many) {
  const p = row.parts
  text(p.name, many > 1 ? `log ${i.instance}` : "log")
  const high = top && m.reached ? top.high : i.last_index,
    size = top ? top.size : 50
  setBar(
    p.bar,
    {
      applied: i.applied_index,
      commit: Math.max(i.commit_index, i.applied_index),
      durable: i.durable_index,
      last: i.last_index,
    },
    Math.max(0, high - size),
    high,
  )
  const behind = high - i.applied_index
  text(p.value, behind > size && m.reached ? `${count(behind)} behind` : count(i.applied_index))
  attr(
    row,
    "title",
    `Entries ${count(i.first_index)} to ${count(i.last_index)} are in the log; on disk up to ` +
      `${count(i.durable_index)}, committed up to ${count(i.commit_index)}, applied up to ` +
      `${count(i.applied_index)}: ${plural(i.apply_lag, "entry", "entries")} to apply. The bar has the last ` +
      `${count(size)}.`,
  )
}
