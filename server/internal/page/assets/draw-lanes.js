// Lanes: the commands that each member sends itself, those that are confirmed, and the use of its window.
import {attr, list, text} from "./dom.js"
import {bytes, count, join} from "./format.js"
import {tint} from "./color.js"
import {sum} from "./series.js"
import {leads, model} from "./state.js"
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
      ? `Each window has ${join(bytes(l.window_bytes))}. Lanes saved the leader from sending ` +
          `${join(bytes(sum(rows.map(r => r.l.spared_bytes))))}.`
      : "No command was sent by a lane yet. A blind put is if its client requests it, or if its key has a " +
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
  tint(r, m.id)
  text(p.who, m.name)
  text(p.tag, leader ? "confirms" : l.open ? "sends" : "closed")
  const size = windowOf("lane" + m.id, own.held - own.confirmed),
    from = Math.max(0, own.held - size)
  setBar(p.bar, {applied: own.confirmed, durable: own.durable, last: own.held}, from, Math.max(own.held, 1))
  text(p.value, leader ? "needs no lane" : own.held ? `${join(bytes(own.held_bytes))} in the window` : "empty")
  attr(
    r,
    "title",
    `Batches of the lane of ${m.name}: ${count(own.held)} held, ${count(own.durable)} on disk, ` +
      `${count(own.confirmed)} confirmed; ${join(bytes(l.sent_bytes))} sent by lanes, ` +
      `${join(bytes(l.received_bytes))} received, ${count(l.missed)} requested again, ${count(l.refused)} refused`,
  )
}
