// Fragments of large values: into how many a value is cut, and who holds how much.
import {attr, h, list, text} from "./dom.js"
import {bytes, join, plural} from "./format.js"
import {colorOf, cut, leads, model, voters} from "./state.js"
import {frame, row} from "./draw-log.js"
import {setBar} from "./logbar.js"

export function drawFragments(node, st) {
  const f = frame(node, false),
    k = Math.max(1, cut(st)),
    n = voters(st).all
  node.value ||= node.insertBefore(h("div", {class: "value-cut", "aria-hidden": "true"}), f.root)
  text(
    f.title,
    k > 1
      ? `A value is cut into ${k} parts, with ${plural(n - k, "fragment")} of parity: one for each member`
      : "A value is not cut: each member has all of it",
  )
  const holders = model.members.slice(0, n).map((m, i) => ({m, i, parity: k > 1 && i >= k}))
  list(
    node.value,
    holders,
    x => x.m.id,
    () => h("span", {}),
    (cell, x) => {
      attr(cell, "class", `c${colorOf(x.m.id) % 9}${x.parity ? " parity" : ""}${x.m.reached ? "" : " away"}`)
      text(cell, k > 1 ? x.m.name : `${x.m.name}: all`)
    },
  )
  const there = model.members.filter(m => m.status?.bodies),
    most = Math.max(1, ...there.map(m => m.status.bodies.live_bytes))
  list(
    f.rows,
    there,
    m => m.id,
    () => row(),
    (r, m) => drawHolder(r, m, most, k),
  )
  text(f.foot, foot(there))
}

function drawHolder(r, m, most, k) {
  const p = r.parts,
    b = m.status.bodies
  attr(r, "class", `row c${colorOf(m.id) % 9}${m.reached ? "" : " silent"}`)
  text(p.who, m.name)
  text(p.tag, leads(m.id).length ? "whole" : k > 1 ? `1/${k}` : "whole")
  const bar = b.live_bytes / most
  setBar(p.bar, {applied: bar, commit: bar, durable: bar, last: bar}, 0, 1)
  text(
    p.said,
    b.held
      ? `${plural(b.held, "value")} · ${join(bytes(b.live_bytes))}${b.missing ? ` · ${b.missing} missing` : ""}`
      : "holds none",
  )
  attr(
    r,
    "title",
    `${m.name} holds ${plural(b.held, "large value")}; ${b.fetched} were made whole here with fragments ` +
      `of others, ${b.served} fragments served, ` +
      `${b.short || 0} to be made whole, ${b.corrupt} found damaged, ${b.repaired} repaired`,
  )
}

function foot(members) {
  const restriping = Math.max(0, ...members.flatMap(m => m.status.instances.map(i => i.restriping || 0)))
  if (restriping) return `Members may leave once ${plural(restriping, "more member")} hold large values whole.`
  if (!members.some(m => m.status.bodies.held))
    return "No large value was written yet: smaller ones stay whole in the database."
  return (
    `Made whole for reading with fragments of others: ` +
    `${members.reduce((a, m) => a + m.status.bodies.fetched, 0)} values.`
  )
}
