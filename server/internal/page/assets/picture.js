// The picture of the cluster: members on a ring, and the links between them.
import {attr, byId, s, text} from "./dom.js"
import {bytes, join, millis, names} from "./format.js"
import {tint} from "./color.js"
import {condition, instances, leaders, leads, model, nameOf, self} from "./state.js"

const node = {wide: 150, narrow: 104, high: 62}
let drawn = "",
  parts = null,
  width = 0

export function start() {
  const box = byId("picture")
  width = box.clientWidth
  new ResizeObserver(() => {
    if (Math.abs(box.clientWidth - width) < 2) return
    width = box.clientWidth
    drawn = ""
    update()
  }).observe(box)
}

// ring lists the members in their order on the ring: those of a zone are neighbors.
function ring() {
  const zone = m => self(m)?.zone || ""
  return [...model.members].sort((a, b) => zone(a).localeCompare(zone(b)))
}

export function update() {
  const box = byId("picture"),
    members = ring()
  width ||= box.clientWidth
  if (!members.length || !width) return
  const shape = width + members.map(m => m.id).join()
  if (shape !== drawn) {
    drawn = shape
    build(box, members)
  }
  for (const m of members) updateNode(m)
  for (const l of parts.links) updateLink(l)
  attr(parts.svg, "aria-label", description(members))
  text(byId("cluster-note"), note(members))
}

function note(members) {
  const down = members.reduce((n, m) => n + (m.reached ? links(m).filter(l => !l.up).length : 0), 0)
  return down
    ? `${down} of ${members.length * (members.length - 1)} directions of links are down`
    : members.length > 1
      ? "all links are up"
      : ""
}

const links = m => (m.status?.members || []).filter(x => x.link).map(x => x.link)

function description(members) {
  return "Members on a ring. " + members.map(m => `${m.name} ${condition(m).word}`).join(", ") + "."
}

function build(box, members) {
  const n = members.length,
    small = width < 520
  const w = small || n > 6 ? node.narrow : node.wide
  const height = n === 1 ? 160 : n === 2 ? 230 : n > 5 ? 460 : n > 3 ? 400 : small ? 320 : 340
  const places = ringPlaces(
    n,
    n === 2 && !small ? Math.PI : -Math.PI / 2,
    w / 2 + 4,
    Math.min(width - w / 2 - 4, width / 2 + 330),
    node.high / 2 + 4,
    height - node.high / 2 - 4,
  )
  parts = {nodes: new Map(), links: []}
  const lines = s("g"),
    labels = s("g"),
    boxes = s("g")
  for (let i = 0; i < n; i++)
    for (let j = i + 1; j < n; j++) {
      const l = link(members[i], members[j], places[i], places[j], n, (i + j) % 2)
      parts.links.push(l)
      lines.append(l.group)
      labels.append(l.label)
    }
  members.forEach((m, i) => boxes.append(makeNode(m, places[i], w)))
  parts.svg = s(
    "svg",
    {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "group",
      class: n > 5 ? "many" : n > 3 && small ? "few" : "",
    },
    lines,
    labels,
    boxes,
  )
  box.replaceChildren(parts.svg)
}

// ringPlaces returns n places on a ring that fills a box.
function ringPlaces(n, first, left, right, top, bottom) {
  left = Math.max(left, (left + right) / 2 - 330)
  if (n === 1) return [[(left + right) / 2, (top + bottom) / 2]]
  const angles = Array.from({length: n}, (_, i) => first + (2 * Math.PI * i) / n)
  const fit = (list, low, high) => {
    const least = Math.min(...list),
      most = Math.max(...list)
    return list.map(v =>
      most - least < 1e-6 ? (low + high) / 2 : low + ((v - least) / (most - least)) * (high - low),
    )
  }
  const xs = fit(angles.map(Math.cos), left, right),
    ys = fit(angles.map(Math.sin), top, bottom)
  return xs.map((x, i) => [x, ys[i]])
}

// link makes two lines, one for each direction. Where lines cross in the middle, the labels are beside it.
function link(a, b, [x1, y1], [x2, y2], n, odd) {
  const dx = x2 - x1,
    dy = y2 - y1,
    long = Math.hypot(dx, dy) || 1
  const ox = (-dy / long) * 3,
    oy = (dx / long) * 3
  const there = s("path", {d: `M${x1 + ox} ${y1 + oy}L${x2 + ox} ${y2 + oy}`})
  const back = s("path", {d: `M${x2 - ox} ${y2 - oy}L${x1 - ox} ${y1 - oy}`})
  const wire = s("path", {class: "wire", d: `M${x1} ${y1}L${x2} ${y2}`}),
    title = s("title")
  const t = n === 4 && Math.abs(dx * dy) < 1 ? (odd ? 0.5 : 0.3) : 0.5
  const first = s("tspan"),
    second = s("tspan", {x: x1 + dx * t, dy: 13})
  const label = s("text", {class: "label", x: x1 + dx * t, y: y1 + dy * t - 2}, first, second)
  const group = s("g", {class: "link"}, title, wire, there, back)
  return {a, b, group, there, back, title, label, first, second}
}

function updateLink(l) {
  const ab = state(l.a, l.b),
    ba = state(l.b, l.a)
  const up = [ab, ba].filter(x => x.known)
  const bad = up.some(x => !x.up),
    unknown = !up.length
  const kind = bad ? "down" : unknown ? "unknown" : Math.max(ab.trip, ba.trip) > 50 ? "slow" : "up"
  attr(l.group, "class", "link " + kind)
  attr(l.label, "class", "label " + kind)
  flow(l.there, l.a, ab)
  flow(l.back, l.b, ba)
  const trip = Math.max(ab.trip, ba.trip),
    rate = Math.max(ab.rate, ba.received) + Math.max(ba.rate, ab.received)
  text(l.first, bad ? "down" : unknown ? "" : trip ? join(millis(trip)) : "up")
  text(l.second, bad || unknown ? "" : join(bytes(rate, "/s")))
  text(l.title, [direction(l.a, l.b, ab), direction(l.b, l.a, ba)].filter(x => x).join("\n"))
}

// state is a link as the member at its start reports it.
function state(from, to) {
  const l = from.reached && from.status?.members?.find(x => x.id === to.id)?.link
  if (!l) return {known: false, up: false, trip: 0, rate: 0, received: 0}
  const r = from.rates.get(to.id)
  return {
    known: true,
    up: l.up,
    trip: l.round_trip_ms || 0,
    rate: r?.sentRate || 0,
    received: r?.receivedRate || 0,
    error: l.error,
  }
}

function direction(from, to, x) {
  if (!x.known) return ""
  return (
    `${from.name} to ${to.name}: ` +
    (x.up ? `up, ${join(bytes(x.rate, "/s"))}` : `down${x.error ? ": " + x.error : ""}`)
  )
}

// flow draws the traffic from a member: the width of the line and the speed of its dashes grow with the logarithm of
// the rate.
function flow(path, from, x) {
  const level = x.up && x.rate > 1 ? Math.min(1, Math.log10(x.rate) / 8) : 0
  tint(path, from.id)
  attr(path, "class", "flow " + (level ? "speed" + Math.ceil(level * 4) : "still"))
}

function makeNode(m, [x, y], w) {
  const left = x - w / 2,
    top = y - node.high / 2
  const p = {
    box: s("rect", {class: "box", x: left, y: top, width: w, height: node.high, rx: 10}),
    name: s("text", {class: "name", x: left + 16, y: top + 22}),
    zone: s("text", {class: "zone", x: left + w - 10, y: top + 22}),
    role: s("text", {class: "role", x: left + 16, y: top + 39}),
    state: s("text", {class: "state", x: left + 28, y: top + 54}),
    dot: s("circle", {cx: left + 20, cy: top + 50, r: 4, class: "lamp"}),
    narrow: w === node.narrow,
  }
  const stripe = s("path", {
    class: "stripe",
    d: `M${left + 10} ${top}h-0a10 10 0 0 0 -10 10v${node.high - 20}a10 10 0 0 0 10 10z`,
  })
  p.root = s(
    "a",
    {href: "#m-" + m.id},
    p.box,
    stripe,
    p.name,
    p.zone,
    p.role,
    p.state,
    p.dot,
  )
  parts.nodes.set(m.id, p)
  return p.root
}

function updateNode(m) {
  const p = parts.nodes.get(m.id),
    c = condition(m),
    role = roleText(m, p.narrow)
  text(p.name, m.name)
  text(p.zone, self(m)?.zone || "")
  text(p.role, role)
  text(p.state, c.word)
  tint(p.root, m.id)
  attr(p.root, "class", `member ${c.level} ${role.startsWith("leads") ? "leader" : ""}`)
  attr(p.root, "aria-label", `${m.name}, ${role}, ${c.word}`)
}

// roleText is the role of a member: the instances that it leads, or its leader.
export function roleText(m, short) {
  const st = m.status,
    all = instances(),
    mine = m.reached ? leads(m.id) : []
  if (!m.reached) return !st ? "" : "was " + (st.is_leader ? "leader" : "follower")
  const own = self(m)?.role
  if (own === "learner" || own === "joining") return own
  if (!mine.length) {
    const leading = leaders()
    const drained = st?.drained ? "drained, " : ""
    return drained + (leading.length === 1 ? "follows " + nameOf(leading[0]) : leading.length ? "follows" : "no leader")
  }
  if (st?.protocol === "iss") return short ? "leads" : "leads a segment"
  if (all.length === 1) return "leads"
  if (mine.length === all.length) return `leads all ${all.length}`
  return mine.length > 4 ? `leads ${mine.length} of ${all.length}` : `leads ${names(mine.map(String))}`
}
