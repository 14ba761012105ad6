// An epoch: the slots of each leader, the part of them that is decided, and the banned members.
import {attr, list, s, text} from "./dom.js"
import {count, join, names, plural, share} from "./format.js"
import {tint} from "./color.js"
import {nameOf} from "./state.js"
import {frame, row} from "./draw-log.js"
import {setBar} from "./logbar.js"

const cells = 48

export function drawEpoch(node, st) {
  const f = frame(node, false),
    i = st.instances.find(x => x.epoch),
    e = i.epoch
  if (!node.strip) {
    node.strip = s("svg", {
      class: "strip",
      viewBox: `0 0 ${cells} 1`,
      preserveAspectRatio: "none",
      "aria-hidden": "true",
    })
    node.strip.cells = Array.from({length: cells}, (_, n) => s("rect", {x: n + 0.06, y: 0, width: 0.88, height: 1}))
    node.strip.append(...node.strip.cells)
    f.root.before(node.strip)
  }
  text(
    f.title,
    `Epoch ${count(e.number)} has slots ${count(e.first_index)} to ` +
      `${count(e.last_index)}${e.ending ? ", and is ending" : ""}`,
  )
  drawStrip(node.strip, e, i)
  list(
    f.rows,
    e.segments,
    g => g.leader,
    () => row("cells"),
    (r, g) => drawSegment(r, g, e),
  )
  text(f.foot, foot(e))
}

// drawStrip draws the slots of the epoch in the order of the log, each in the color of its leader.
function drawStrip(strip, e, i) {
  const slots = e.last_index - e.first_index + 1
  strip.cells.forEach((cell, n) => {
    const slot = e.first_index + Math.floor(((n + 1) * slots) / cells) - 1,
      g = e.segments[n % e.segments.length]
    tint(cell, g.leader)
    attr(cell, "class", slot <= i.commit_index ? "done" : slot <= g.decided_index ? "part" : "")
  })
}

function drawSegment(r, g, e) {
  const p = r.parts,
    all = Math.max(1, g.last_index - e.first_index)
  const done = Math.max(0, Math.min(1, (g.decided_index - e.first_index + 1) / all))
  tint(r, g.leader)
  text(p.who, nameOf(g.leader))
  text(p.tag, g.ballot ? "revoked" : "leads")
  setBar(p.bar, {applied: done}, 0, 1)
  const decided = Math.round(done * g.slots)
  text(
    p.value,
    `${decided} of ${g.slots}` +
      (g.skipped ? ` · ${join(share(Math.min(1, g.skipped / Math.max(1, decided))))} skipped` : ""),
  )
  attr(
    r,
    "title",
    g.ballot
      ? `The slots of ${nameOf(g.leader)} are decided with ballot ${g.ballot} of ` +
          `${g.by ? nameOf(g.by) : "a member that is gone"}`
      : `Of the ${plural(g.slots, "slot")} of ${nameOf(g.leader)} ${decided} are decided, ${g.skipped} of ` +
          `them without a value`,
  )
}

function foot(e) {
  const banned = (e.banned || []).map(
    (id, n) => nameOf(id) + (e.banned_until?.[n] ? ` until epoch ${count(e.banned_until[n])}` : ""),
  )
  return (
    `${banned.length ? `Banned: ${names(banned)}.` : "No member is banned."} Of ${count(e.slots)} slots ` +
    `${join(share(e.slots ? e.skipped / e.slots : 0))} had no value.` +
    (e.unsettled ? " A change of members waits for the next epoch." : "") +
    (e.no_quorum ? " Too few members are up to decide anything." : "")
  )
}
