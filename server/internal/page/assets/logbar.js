// A bar of the end of a log: how far it is applied, committed, on disk and in memory. It moves as the log grows.
import {attr, h, style} from "./dom.js"

const period = 40,
  fastest = 240 // pixels: between two marks, and per second

const still = matchMedia("(prefers-reduced-motion: reduce)")

// logBar makes a bar.
export function logBar() {
  const marks = h("span", {class: "marks"})
  const bar = {
    applied: h("span", {class: "applied"}),
    commit: h("span", {class: "commit"}),
    durable: h("span", {class: "durable"}),
    last: h("span", {class: "last"}),
    marks,
    offset: 0,
    top: null,
  }
  bar.root = h(
    "span",
    {class: "logbar", "aria-hidden": "true"},
    bar.last,
    bar.durable,
    bar.commit,
    bar.applied,
    marks,
  )
  return bar
}

// setBar shows positions within a window of the log.
export function setBar(bar, {applied, commit, durable, last}, from, to) {
  const place = x => Math.max(0, Math.min(1, (x - from) / Math.max(1, to - from)))
  style(bar.applied, "transform", `scaleX(${place(applied).toFixed(4)})`)
  style(bar.commit, "transform", `scaleX(${place(commit).toFixed(4)})`)
  style(bar.durable, "transform", `scaleX(${place(durable).toFixed(4)})`)
  style(bar.last, "transform", `scaleX(${place(last).toFixed(4)})`)
  move(bar, to, to - from)
}

// move shifts the marks by what the log grew since the last time, in a second.
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

// Windows of logs change rarely: they grow at once, and shrink when they were too large for a while.
const sizes = new Map()

// windowOf is how many entries are shown for a log whose members are at most spread apart.
export function windowOf(key, spread) {
  let want = 50
  while (want < spread * 1.6 && want < 1e6) want *= want.toString()[0] === "2" ? 2.5 : 2
  const w = sizes.get(key) || {size: want, calm: 0}
  if (want > w.size) {
    w.size = want
    w.calm = 0
  } else if (want < w.size && ++w.calm > 8) {
    w.size = want
    w.calm = 0
  } else if (want === w.size) w.calm = 0
  sizes.set(key, w)
  return w.size
}

// legend explains the shades of the bars.
export function legend(node, items) {
  node.replaceChildren(...items.map(([kind, word]) => h("span", {}, h("i", {class: "shade " + kind}), word)))
}
