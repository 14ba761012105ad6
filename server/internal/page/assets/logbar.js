// A bar of the end of a log, with the parts that are applied, committed, on disk and appended. It moves as the log
// grows.
import {h, style} from "./dom.js"

const period = 40,
  fastest = 240 // pixels: between two marks, and per second

const still = matchMedia("(prefers-reduced-motion: reduce)")

// logBar makes a bar.
export function logBar() {
  const marks = h("span", {class: "marks"})
  const bar = {marks, offset: 0, top: null}
  for (const part of ["last", "durable", "commit", "applied"]) bar[part] = h("span", {class: part})
  bar.root = h("span", {class: "logbar", "aria-hidden": "true"}, bar.last, bar.durable, bar.commit, bar.applied, marks)
  return bar
}

// setBar shows indexes {applied, commit, durable, last} within a window of the log.
export function setBar(bar, indexes, from, to) {
  const place = x => Math.max(0, Math.min(1, (x - from) / Math.max(1, to - from))).toFixed(4)
  for (const [part, index] of Object.entries(indexes)) style(bar[part], "transform", `scaleX(${place(index)})`)
  move(bar, to, to - from)
}

// move shifts the marks within a second by the growth of the log since the last call.
function move(bar, top, span) {
  const grown = bar.top == null ? 0 : top - bar.top
  bar.top = top
  if (grown <= 0 || still.matches) return
  const by = Math.min(fastest, (grown / span) * 300),
    start = bar.offset % period
  bar.offset = start + by
  bar.marks.animate([{transform: `translateX(${-start}px)`}, {transform: `translateX(${-bar.offset}px)`}], {
    duration: 1000,
    fill: "forwards",
  })
}

const sizes = new Map() // of windows

// windowOf returns the number of entries to show of a log where the indexes of members differ by spread. A window
// grows at once; it shrinks after it was too large in eight calls, so that it changes rarely.
export function windowOf(key, spread) {
  let want = 50
  while (want < spread * 1.6 && want < 1e6) want *= want.toString()[0] === "2" ? 2.5 : 2
  const w = sizes.get(key) || {size: want, large: 0}
  w.large = want < w.size ? w.large + 1 : 0
  if (want > w.size || w.large > 8) Object.assign(w, {size: want, large: 0})
  sizes.set(key, w)
  return w.size
}

// legend explains the shades of the bars.
export function legend(node, items) {
  node.replaceChildren(...items.map(([kind, word]) => h("span", {}, h("i", {class: "shade " + kind}), word)))
}
