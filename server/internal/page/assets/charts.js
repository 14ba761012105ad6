// The charts of the last minutes, with one cursor for all.
import {attr, byId, choice, h, list, style, text} from "./dom.js"
import {memberColor, resolve, shared, tint} from "./color.js"
import {bytes, clock, cores, join, millis, si} from "./format.js"
import {max, sum} from "./series.js"
import {model, now} from "./state.js"

/* global uPlot */

const charts = [
  {id: "writes", title: "Writes", lines: ["writes"], sum: true, unit: x => si(x, "/s")},
  {id: "reads", title: "Reads", lines: ["reads"], sum: true, unit: x => si(x, "/s")},
  {id: "write-latency", title: "Write latency", lines: ["write_p99_ms", "write_p50_ms"], unit: millis},
  {id: "read-latency", title: "Read latency", lines: ["read_p99_ms", "read_p50_ms"], unit: millis},
  {id: "fsync", title: "fsync p99", lines: ["fsync_p99_ms"], unit: millis},
  {id: "log", title: "Written to the log", lines: ["log_bytes"], sum: true, unit: x => bytes(x, "/s")},
  {id: "network", title: "Sent to members", lines: ["sent_bytes"], sum: true, unit: x => bytes(x, "/s")},
  {id: "clients", title: "Sent to clients", lines: ["client_out_bytes"], sum: true, unit: x => bytes(x, "/s")},
  {id: "lag", title: "Committed, not applied", lines: ["lag"], unit: x => si(x)},
  {id: "cpu", title: "CPU", lines: ["cpu_cores"], sum: true, unit: cores},
  {id: "memory", title: "Memory", lines: ["memory_bytes"], unit: x => bytes(x)},
  {id: "database", title: "Database file", lines: ["db_bytes"], unit: x => bytes(x), limit: quota},
]

const ranges = {300: 1, 600: 1, 3600: 10} // seconds, and those of a point
const binary = Array.from({length: 50}, (_, i) => 2 ** i) // steps of axes of bytes
const height = 150
const hidden = new Set() // members that are not drawn
let range = 300,
  view = "members",
  shape = "", // of the charts that are drawn
  colors = {} // of the theme, by property

function quota() {
  return max(model.members.map(m => m.status?.quota_bytes || 0)) || null
}

export function start() {
  choice(
    byId("range"),
    [
      [300, "5 min"],
      [600, "10 min"],
      [3600, "1 h"],
    ],
    range,
    v => {
      range = v
      update()
    },
  )
  choice(
    byId("view"),
    [
      ["members", "members"],
      ["sum", "sum"],
    ],
    view,
    v => {
      view = v
      update()
    },
  )
  const seen = new IntersectionObserver(
    entries => {
      for (const e of entries) e.target.chart.seen = e.isIntersecting
      update()
    },
    {rootMargin: "200px"},
  )
  for (const c of charts) {
    c.now = h("span", {class: "now"})
    c.plot = h("div", {class: "plot"})
    c.tip = h("div", {class: "tip", hidden: true})
    const caption = h("figcaption", {}, h("h3", {}, c.title), c.now)
    c.root = h("figure", {class: "chart", id: "chart-" + c.id}, caption, c.plot, c.tip)
    c.root.chart = c
    byId("charts").append(c.root)
    seen.observe(c.root)
  }
  new ResizeObserver(() => {
    for (const c of charts) if (c.u) c.u.setSize({width: c.plot.clientWidth, height})
  }).observe(byId("charts"))
}

// restyle draws the charts anew, in other colors.
export function restyle() {
  shape = ""
  if (model.members.length) update()
}

// lines returns the lines of a chart: {name, key, member, color, dash}.
function lines(c) {
  if (view === "sum" && c.sum) return [{name: "sum", color: resolve("--accent"), key: c.lines[0]}]
  const out = []
  c.lines.forEach((key, i) => {
    for (const m of model.members) {
      if (hidden.has(m.id)) continue
      const dash = i === 1 ? [3, 3] : shared(m.id) ? [8, 3] : undefined
      out.push({
        name: m.name + (c.lines.length > 1 ? (i ? " p50" : " p99") : ""),
        key,
        member: m,
        color: memberColor(m.id),
        dash,
      })
    }
  })
  return out
}

export function update() {
  const end = Math.floor(now()) - 1,
    step = ranges[range]
  const to = end - (end % step),
    from = to - range
  const want = [range, view, model.members.map(m => m.id + m.name), [...hidden]].join()
  if (want !== shape) {
    shape = want
    reset()
  }
  const times = []
  for (let t = from; t <= to; t += step) times.push(t)
  for (const c of charts) {
    if (!c.seen) continue
    if (!c.u) c.drawn = lines(c)
    const data = [times, ...c.drawn.map(l => (l.member?.series || total).column(l.key, from, to, step))]
    c.u ? c.u.setData(data, false) : (c.u = make(c, data))
    c.u.batch(() => {
      c.u.setScale("x", {min: from, max: to})
      c.u.setScale("y", bounds(c, data))
    })
    showNewest(c, data)
  }
}

// reset removes the charts, so that they are made again.
function reset() {
  const used = ["--ink-2", "--grid", "--bad", "--bad-line", "--warn-line"]
  colors = Object.fromEntries(used.map(name => [name, resolve(name)]))
  drawLegend()
  for (const c of charts) {
    c.u?.destroy()
    c.u = null
  }
}

// total is the series of the sums of all members.
const total = {
  column(...args) {
    const columns = model.members.map(m => m.series.column(...args))
    return columns[0].map((_, i) => sum(columns.map(x => x[i]).filter(x => x != null)))
  },
}

// bounds begin at 0, end above the largest value, and show the limit if it is near.
function bounds(c, data) {
  let top = 0
  for (const column of data.slice(1)) for (const v of column) if (v > top) top = v
  const limit = c.limit?.()
  if (limit && top > limit / 4) top = Math.max(top, limit)
  return {min: 0, max: top > 0 ? top * 1.12 : 1}
}

// showNewest shows the newest values beside the title.
function showNewest(c, data) {
  const last = c.drawn
    .map((l, i) => (l.key === c.lines[0] ? data[i + 1].findLast(v => v != null) : null))
    .filter(v => v != null)
  if (!last.length) {
    text(c.now, "no samples")
    return
  }
  const value = join(c.unit(c.sum ? sum(last) : max(last)))
  text(c.now, c.sum || last.length === 1 ? value : "up to " + value)
}

function make(c, data) {
  const axis = {
    stroke: colors["--ink-2"],
    font: "11px " + getComputedStyle(document.body).fontFamily,
    ticks: {show: false},
    grid: {stroke: colors["--grid"], width: 1},
  }
  return new uPlot(
    {
      width: Math.max(120, c.plot.clientWidth),
      height,
      padding: [8, 8, 0, 0],
      legend: {show: false},
      scales: {x: {time: true, auto: false}, y: {auto: false}},
      cursor: {sync: {key: "braid"}, y: false, points: {size: 6}, drag: {x: false, y: false}},
      axes: [
        {
          ...axis,
          size: 24,
          space: 52,
          values: (_, ticks) => ticks.map(t => clock(t * 1000).slice(0, t % 60 ? 8 : 5)),
          grid: {show: false},
        },
        {
          ...axis,
          size: 62,
          space: 34,
          incrs: c.unit(1)[1].startsWith("B") ? binary : undefined,
          values: (_, ticks) => ticks.map(v => (v === 0 ? "0" : join(c.unit(v)))),
        },
      ],
      series: [
        {},
        ...c.drawn.map(l => ({
          label: l.name,
          stroke: l.color,
          width: 1.5,
          dash: l.dash,
          points: {show: false},
          spanGaps: false,
          fill: c.drawn.length === 1 ? `color-mix(in srgb, ${l.color} 13%, transparent)` : undefined,
        })),
      ],
      hooks: {drawClear: [u => drawMarks(u, c)], setCursor: [u => tip(c, u)]},
    },
    data,
    c.plot,
  )
}

// drawMarks draws the events that are warnings, and the limit of the value.
function drawMarks(u, c) {
  const {ctx, bbox} = u
  ctx.save()
  ctx.lineWidth = devicePixelRatio
  ctx.setLineDash([])
  for (const e of model.events) {
    const t = e.at / 1000
    if (e.level === "info" || t < u.scales.x.min || t > u.scales.x.max) continue
    const x = Math.round(u.valToPos(t, "x", true))
    ctx.strokeStyle = colors[e.level === "error" ? "--bad-line" : "--warn-line"]
    ctx.beginPath()
    ctx.moveTo(x, bbox.top)
    ctx.lineTo(x, bbox.top + bbox.height)
    ctx.stroke()
  }
  const limit = c.limit?.()
  if (limit && limit <= u.scales.y.max) {
    const y = u.valToPos(limit, "y", true)
    ctx.strokeStyle = colors["--bad"]
    ctx.setLineDash([6, 4])
    ctx.beginPath()
    ctx.moveTo(bbox.left, y)
    ctx.lineTo(bbox.left + bbox.width, y)
    ctx.stroke()
  }
  ctx.restore()
}

// tip shows the values at the cursor, in the chart under the pointer alone.
function tip(c, u) {
  const i = u.cursor.idx,
    own = i != null && u.cursor.left >= 0 && c.root.matches(":hover")
  c.tip.hidden = !own
  if (!own) return
  const rows = c.drawn
    .map((l, k) => ({l, v: u.data[k + 1][i]}))
    .filter(r => r.v != null)
    .sort((a, b) => b.v - a.v)
  c.tip.replaceChildren(
    h("b", {}, clock(u.data[0][i] * 1000)),
    ...rows.map(({l, v}) => {
      const row = h("span", {}, h("i", {class: "swatch"}), l.name, h("b", {}, join(c.unit(v))))
      tint(row, l.member?.id)
      return row
    }),
  )
  const left = u.cursor.left + u.bbox.left / devicePixelRatio,
    wide = c.plot.clientWidth
  style(c.tip, "left", left < wide / 2 ? `${left + 14}px` : "auto")
  style(c.tip, "right", left < wide / 2 ? "auto" : `${wide - left + 14}px`)
}

// drawLegend makes a button for each member, which hides and shows its lines.
function drawLegend() {
  list(
    byId("legend"),
    model.members,
    m => m.id,
    m =>
      h(
        "button",
        {
          type: "button",
          class: "key",
          onclick: () => {
            hidden.has(m.id) ? hidden.delete(m.id) : hidden.add(m.id)
            update()
          },
        },
        h("i", {class: "swatch"}),
        h("span", {}),
      ),
    (b, m) => {
      tint(b, m.id)
      attr(b, "aria-pressed", String(!hidden.has(m.id)))
      text(b.lastChild, m.name)
    },
  )
}
