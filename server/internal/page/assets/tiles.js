// The row of figures about the cluster, each with its last minute as a line.
import {attr, byId, h, s, style, text} from "./dom.js"
import {bytes, join, millis, share, si} from "./format.js"
import {max, sum} from "./series.js"
import {best, model, now} from "./state.js"

const seconds = 60

// tiles: a column of samples, the function that combines the values of the members, and the text below.
const tiles = [
  {title: "Writes", column: "writes", of: sum, show: x => si(x, "/s"), below: failed},
  {
    title: "Reads",
    column: "reads",
    of: sum,
    show: x => si(x, "/s"),
    below: () => "p99 " + join(millis(at("read_p99_ms", max))),
  },
  {
    title: "Write latency p99",
    column: "write_p99_ms",
    of: max,
    show: millis,
    below: () => "p50 " + join(millis(at("write_p50_ms", max))),
  },
  {
    title: "fsync p99",
    column: "fsync_p99_ms",
    of: max,
    show: millis,
    below: () => join(si(at("fsyncs", sum), "/s")) + " in all",
  },
  {
    title: "Between members",
    column: "sent_bytes",
    of: sum,
    show: x => bytes(x, "/s"),
    below: () => "log " + join(bytes(at("log_bytes", sum), "/s")),
  },
  {
    title: "Database",
    column: "db_in_use_bytes",
    of: max,
    show: x => bytes(x),
    meter: quota,
    below: quotaText,
  },
]

function values(name, sec) {
  const out = []
  for (const m of model.members) {
    const v = m.series.rows.get(sec)?.[name]
    if (v != null) out.push(v)
  }
  return out
}

// newest is the last second with samples of every member that answers.
function newest() {
  const t = Math.floor(now())
  const ends = model.members.filter(m => m.reached && t - m.series.newest < 5).map(m => m.series.newest)
  return ends.length ? Math.min(...ends) : t
}

function at(name, of) {
  return of(values(name, newest()))
}

function failed() {
  const x = at("failed", sum)
  return x ? join(si(x, "/s")) + " failed" : "0 failed"
}

function quota() {
  const st = best()
  return st && st.quota_bytes > 0 ? at("db_bytes", max) / st.quota_bytes : null
}

function quotaText() {
  const st = best()
  if (!st) return ""
  return st.quota_bytes > 0 ? `file: ${join(share(quota()))} of ${join(bytes(st.quota_bytes))}` : "no quota"
}

const nodes = []

function build() {
  for (const tile of tiles) {
    const line = s("path", {class: "line"}),
      area = s("path", {class: "area"})
    const n = {
      value: h("b"),
      unit: h("span", {class: "unit"}),
      below: h("span", {class: "below"}),
      line,
      area,
    }
    const meter = tile.meter && h("span", {class: "meter"}, (n.meter = h("span")))
    n.root = h(
      "div",
      {class: "tile"},
      h("span", {class: "title"}, tile.title),
      h("span", {class: "number"}, n.value, n.unit),
      n.below,
      meter ||
        s(
          "svg",
          {class: "spark", viewBox: "0 0 60 20", preserveAspectRatio: "none", "aria-hidden": "true"},
          area,
          line,
        ),
    )
    nodes.push(n)
    byId("tiles").append(n.root)
  }
}

export function update() {
  if (!nodes.length) build()
  const end = newest()
  tiles.forEach((tile, i) => {
    const n = nodes[i],
      points = []
    for (let sec = end - seconds; sec <= end; sec++) points.push(tile.of(values(tile.column, sec)))
    const recent = points.slice(-2).filter(x => x != null)
    const [number, unit] = tile.show(recent.length ? sum(recent) / recent.length : null)
    text(n.value, number)
    text(n.unit, unit)
    text(n.below, tile.below())
    if (tile.meter) meter(n, tile.meter())
    else spark(n, points)
  })
}

function meter(n, share) {
  style(n.meter, "transform", `scaleX(${Math.min(1, share || 0).toFixed(4)})`)
  attr(n.meter, "class", share > 0.95 ? "bad" : share > 0.8 ? "warn" : "")
}

function spark(n, points) {
  const top = Math.max(1e-9, ...points.filter(x => x != null))
  let path = "",
    first = null,
    last = null
  points.forEach((x, i) => {
    if (x == null) return
    const at = `${i} ${(19 - (18 * x) / top).toFixed(2)}`
    path += (path ? "L" : "M") + at
    first ??= i
    last = i
  })
  attr(n.line, "d", path || "M0 19")
  attr(n.area, "d", path ? `${path}L${last} 20L${first} 20Z` : "M0 19")
}
