// Fragments of large values: their number for a value, and the bytes that each member holds.
import {attr, h, list, text} from "./dom.js"
import {bytes, join, plural} from "./format.js"
import {tint} from "./color.js"
import {sum} from "./series.js"
import {cut, leads, model, voters} from "./state.js"
import {frame, row} from "./draw-log.js"
import {setBar} from "./logbar.js"

export function drawFragments(node, st) {
  const f = frame(node, false),
    k = Math.max(1, cut()),
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
    () => h("span"),
    (cell, x) => {
      tint(cell, x.m.id)
      attr(cell, "class", `${x.parity ? "parity" : ""} ${x.m.reached ? "" : "away"}`)
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
  tint(r, m.id)
  attr(r, "class", `row${m.reached ? "" : " silent"}`)
  text(p.who, m.name)
  text(p.tag, leads(m.id).length ? "whole" : k > 1 ? `1/${k}` : "whole")
  setBar(p.bar, {applied: b.live_bytes}, 0, most)
  text(
    p.value,
    b.held
      ? `${plural(b.held, "value")} · ${join(bytes(b.live_bytes))}${b.missing ? ` · ${b.missing} missing` : ""}`
      : "holds none",
  )
  attr(
    r,
    "title",
    `${m.name} holds ${plural(b.held, "large value")}; ${b.fetched} were made whole here with fragments of others, ` +
      `${b.served} fragments served, ${b.short || 0} to be made whole, ${b.corrupt} found damaged, ` +
      `${b.repaired} repaired`,
  )
}

function foot(members) {
  const restriping = Math.max(0, ...members.flatMap(m => m.status.instances.map(i => i.restriping || 0)))
  if (restriping) return `Members may leave once ${plural(restriping, "more member")} hold large values whole.`
  if (!members.some(m => m.status.bodies.held))
    return "No large value was written yet: smaller ones stay whole in the database."
  return `Made whole for reading with fragments of others: ${sum(members.map(m => m.status.bodies.fetched))} values.`
}
