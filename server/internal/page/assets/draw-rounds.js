// A log that is merged from several instances: the rounds of each instance, and the one for which the merge waits.
import {attr, list, s, text} from "./dom.js"
import {count, join, share} from "./format.js"
import {tint} from "./color.js"
import {member, nameOf} from "./state.js"
import {frame, place, row} from "./draw-log.js"
import {setBar, windowOf} from "./logbar.js"

export function drawRounds(node, st) {
  const f = frame(node, true),
    all = st.instances.filter(i => i.rounds)
  if (!all.length) return
  const high = Math.max(1, ...all.map(i => i.rounds.appended)),
    low = Math.min(...all.map(i => i.rounds.applied))
  const size = Math.min(windowOf("rounds", high - low), 100000),
    from = Math.max(0, high - size)
  const ahead = Math.max(...all.map(i => i.rounds.committed))
  drawMerged(node, f, st, all)
  text(f.title, `The merged log, and below it the rounds of each instance, as ${st.name || nameOf(st.id)} has them`)
  list(
    f.rows,
    all,
    i => i.instance,
    () => row("cells"),
    (r, i) => {
      const p = r.parts,
        x = i.rounds,
        waits = st.next_slot?.instance === i.instance && x.committed < ahead
      tint(r, i.leader)
      text(p.who, `log ${i.instance}`)
      text(p.tag, i.leader ? nameOf(i.leader) : "no leader")
      setBar(p.bar, {applied: x.applied, commit: x.committed, last: x.appended}, from, high)
      const skipped = skippedShare(i)
      text(
        p.value,
        waits
          ? "the others wait for it"
          : skipped == null
            ? `round ${count(x.committed)}`
            : `${join(share(skipped))} skipped`,
      )
      attr(p.value, "class", waits ? "value warn" : "value")
      attr(
        r,
        "title",
        `Instance ${i.instance}: applied up to round ${count(x.applied)}, committed up to ` +
          `${count(x.committed)}, appended up to ${count(x.appended)}`,
      )
    },
  )
  const merged = st.next_slot?.round || low
  place(f, (merged - from) / (high - from || 1), "merged to " + count(merged))
  text(
    f.foot,
    `The bars have the last ${count(size)} rounds. Above is the merged log: next in it is round ` +
      `${count(merged)} of log ${st.next_slot?.instance ?? "–"}.`,
  )
}

// drawMerged draws the merged log around the slot that comes next: an entry of each instance in turn, round by round.
function drawMerged(node, f, st, all) {
  const rounds = Math.max(2, Math.floor(24 / all.length)),
    wide = 20
  const shape = all.length + "x" + rounds
  if (node.shape !== shape) {
    node.shape = shape
    node.strip?.remove()
    const across = rounds * (all.length * wide + 8)
    node.strip = s("svg", {
      class: "strip merged",
      viewBox: `0 0 ${across} 26`,
      role: "img",
      "aria-label": "The merged log has an entry of each instance in turn",
    })
    node.strip.cells = []
    for (let r = 0; r < rounds; r++)
      for (let i = 0; i < all.length; i++) {
        const x = r * (all.length * wide + 8) + i * wide
        const cell = s(
          "g",
          {},
          s("rect", {x: x + 1, y: 1, width: wide - 2, height: 24, rx: 3}),
          s("text", {x: x + wide / 2, y: 17}, all[i].instance),
        )
        node.strip.cells.push(cell)
        node.strip.append(cell)
      }
    f.root.before(node.strip)
  }
  const first = Math.max(1, (st.next_slot?.round || 1) - Math.ceil(rounds / 2))
  node.strip.cells.forEach((cell, n) => {
    const i = all[n % all.length],
      round = first + Math.floor(n / all.length)
    const slot = isMerged(st, round, i.instance) ? "done" : round <= i.rounds.committed ? "part" : ""
    tint(cell.firstChild, i.leader)
    attr(cell.firstChild, "class", slot)
  })
}

const isMerged = (st, round, instance) => {
  const next = st.next_slot
  return !!next && (round < next.round || (round === next.round && instance < next.instance))
}

// skippedShare is the share of slots that an instance skipped between the last two statuses of its leader, which alone
// counts them; null: it is not known.
function skippedShare(i) {
  const m = member(i.leader)
  if (!m?.reached || !m.before) return null
  const now = m.status?.instances.find(x => x.instance === i.instance)?.rounds
  const then = m.before.instances?.find(x => x.instance === i.instance)?.rounds
  if (!now || !then) return null
  const rounds = now.appended - then.appended,
    shares = (m.shares ||= new Map())
  if (rounds > 0) shares.set(i.instance, Math.min(1, Math.max(0, (now.skips - then.skips) / rounds)))
  return shares.get(i.instance) ?? null
}
