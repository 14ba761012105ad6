// The log of one leader: the part that each member has acknowledged, and the part that is committed.
import {attr, h, list, style, text} from "./dom.js"
import {bytes, count, join, plural} from "./format.js"
import {tint} from "./color.js"
import {colorOf, leads, model, nameOf, voters} from "./state.js"
import {logBar, setBar, windowOf} from "./logbar.js"

// frame makes the frame of a drawing: a title, rows with bars, a foot, and if wanted a line across the bars.
export function frame(node, line) {
  if (node.frame) return node.frame
  const f = {
    title: h("p", {class: "caption"}),
    rows: h("div", {class: "rows"}),
    line: h("span", {class: "line"}),
    mark: h("span", {class: "mark"}),
    foot: h("p", {class: "note"}),
  }
  f.over = h("div", {class: "over", "aria-hidden": "true"}, f.line, f.mark)
  f.root = h("div", {class: "frame"}, f.rows, line && f.over)
  node.append(f.title, f.root, f.foot)
  return (node.frame = f)
}

// row makes a row of a frame; "cells" divides its bar.
export function row(extra = "") {
  const p = {
    who: h("span", {class: "who"}),
    tag: h("span", {class: "tag"}),
    bar: logBar(),
    value: h("span", {class: "value"}),
  }
  const node = h("div", {class: "row " + extra}, h("span", {class: "label"}, p.who, p.tag), p.bar.root, p.value)
  node.parts = p
  return node
}

// place puts the line across the bars at a share of their width.
export function place(f, share, word) {
  const x = Math.max(0, Math.min(1, share))
  style(f.line, "left", `${(100 * x).toFixed(2)}%`)
  style(f.mark, "left", `${(100 * x).toFixed(2)}%`)
  attr(f.mark, "class", "mark" + (x > 0.6 ? " right" : ""))
  text(f.mark, word)
}

// drawLog draws the log by the leader's status alone: other members' statuses are of other moments.
export function drawLog(node, st) {
  const f = frame(node, true),
    paxos = st.protocol === "multi-paxos"
  const i = st.instances[0],
    leader = model.members.find(
      m => m.reached && leads(m.id).length && m.status?.instances.some(x => x.role === "leader"),
    )
  const own = leader?.status.instances.find(x => x.instance === i.instance) || i
  const entries = leader ? acknowledged(leader.id, own) : durable()
  entries.sort((a, b) => (b.leader || 0) - (a.leader || 0) || colorOf(a.id) - colorOf(b.id))
  const line = decidedTo(st, own, entries)
  const there = entries.filter(e => e.leader || e.active || e.alone)
  const high = Math.max(own.last_index, ...there.map(e => e.last)),
    low = Math.min(line, ...there.map(e => e.match))
  const size = Math.min(windowOf("log", high - low), 20000),
    from = Math.max(0, high - size)
  text(
    f.title,
    paxos
      ? "Slots of the log, as the leader knows them"
      : leader
        ? "The end of the log, as the leader knows it"
        : "The end of the log",
  )
  list(
    f.rows,
    entries,
    e => e.id,
    () => row(paxos ? "cells" : ""),
    (r, e) => drawRow(r, e, own, {from, high, line}, paxos),
  )
  place(f, (line - from) / (high - from || 1), (paxos ? "decided " : "committed ") + count(line))
  text(f.foot, foot(own, size, leader, paxos))
}

// acknowledged lists the index that each member has acknowledged, by the status of the leader.
function acknowledged(leader, own) {
  const peers = (own.peers || []).map(p => ({
    id: p.id,
    match: p.match_index,
    last: p.match_index,
    active: p.active,
    under: p.inflight_bytes,
  }))
  return [{id: leader, match: own.durable_index, last: own.last_index, leader: true}, ...peers]
}

// durable lists the index that each member has on disk, by its own status: without a leader.
const durable = () =>
  model.members
    .filter(m => m.reached && m.status?.instances.length)
    .map(m => {
      const i = m.status.instances[0]
      return {id: m.id, match: i.durable_index, last: i.last_index, alone: true}
    })

// decidedTo is the index that a majority has acknowledged by the entries of the bars.
function decidedTo(st, own, entries) {
  const {all, majority} = voters(st),
    quorums = st.settings?.quorums
  if (entries.length < all || (quorums && quorums !== "majority") || st.placement === "code") return own.commit_index
  return Math.min(own.commit_index, entries.map(e => e.match).sort((a, b) => b - a)[majority - 1])
}

function foot(own, size, leader, paxos) {
  const kind = paxos ? "slots" : "entries"
  return (
    `The bars have the last ${count(size)} ${kind}. ` +
    (leader ? `${own.ballot ? "Ballot" : "Term"} ${own.ballot || own.term} of ${nameOf(leader.id)}.` : "") +
    (own.preparing ? ` It prepares to lead: ${plural(own.preparing, "large value")} to make whole.` : "")
  )
}

function drawRow(r, e, own, {from, high, line}, paxos) {
  const p = r.parts,
    silent = !e.leader && !e.active && !e.alone
  attr(r, "class", `row${paxos ? " cells" : ""}${silent ? " silent" : ""}`)
  tint(r, e.id)
  text(p.who, nameOf(e.id))
  text(p.tag, e.leader ? "leads" : silent ? "silent" : e.alone ? "" : e.match >= line ? "✓" : "")
  setBar(p.bar, {applied: e.match, last: e.last}, from, high)
  const late = own.last_index - e.match
  text(
    p.value,
    silent
      ? `${count(late)} behind`
      : late > 0
        ? `${e.leader ? "to disk" : "to come"} ${count(late)}${e.under ? " · " + join(bytes(e.under)) : ""}`
        : "has all",
  )
  attr(
    r,
    "title",
    `${nameOf(e.id)} has ${paxos ? "accepted" : "acknowledged"} ${count(e.match)} of ${count(own.last_index)}`,
  )
}
