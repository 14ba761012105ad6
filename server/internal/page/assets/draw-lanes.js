// Lanes: what each member spreads itself, how much of it is confirmed, and how full its window is.
import {attr, list, text} from "./dom.js"
import {bytes, count, join} from "./format.js"
import {colorOf, leads, model} from "./state.js"
import {frame, row} from "./draw-log.js"
import {setBar, windowOf} from "./logbar.js"

export function drawLanes(node, st) {
  const f = frame(node, false),
    rows = []
  for (const m of model.members) {
    const l = m.reached && m.status?.instances.find(i => i.lanes)?.lanes
    if (l) rows.push({m, l, own: l.lanes.find(x => x.own) || {confirmed: 0, durable: 0, held: 0, held_bytes: 0}})
  }
  const used = rows.some(r => r.own.held > 0 || r.l.sent_bytes > 0 || r.l.received_bytes > 0)
  const l = st.instances.find(i => i.lanes).lanes
  text(f.title, `Lanes, generation ${l.generation}: ${accepting(l)}`)
  list(
    f.rows,
    rows,
    r => r.m.id,
    () => row(),
    drawLane,
  )
  text(
    f.foot,
    used
      ? `Each window has ${join(bytes(l.window_bytes))}. Signals spared ${join(bytes(rows.reduce((a, r) => a + r.l.spared_bytes, 0)))} ` +
          `that the leader did not have to send.`
      : "No command took a lane yet. A blind put takes one if its client asks for it, or if its key has a " +
          "--lane-prefix.",
  )
}

function accepting(l) {
  if (l.fence) return "a change of members waits for the fence"
  return l.accepting ? "commands can be accepted" : "nothing can be accepted"
}

function drawLane(r, {m, l, own}) {
  const p = r.parts,
    leader = leads(m.id).length > 0
  attr(r, "class", `row c${colorOf(m.id) % 9}`)
  text(p.who, m.name)
  text(p.tag, leader ? "confirms" : l.open ? "spreads" : "closed")
  const size = windowOf("lane" + m.id, own.held - own.confirmed),
    from = Math.max(0, own.held - size)
  setBar(
    p.bar,
    {applied: own.confirmed, commit: own.confirmed, durable: own.durable, last: own.held},
    from,
    Math.max(own.held, 1),
  )
  text(p.said, leader ? "needs no lane" : own.held ? `${join(bytes(own.held_bytes))} in the window` : "empty")
  attr(
    r,
    "title",
    `Batches of the lane of ${m.name}: ${count(own.held)} held, ${count(own.durable)} on disk, ` +
      `${count(own.confirmed)} confirmed; ` +
      `${join(bytes(l.sent_bytes))} sent by lanes, ${join(bytes(l.received_bytes))} received, ` +
      `${count(l.missed)} asked for, ${count(l.refused)} refused`,
  )
}
