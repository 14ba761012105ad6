// What the page knows of the cluster: the answers of a member, put together.
import {Series} from "./series.js"

export const model = {
  cluster: "",
  self: "",
  at: 0,
  cursor: "",
  members: [],
  events: [],
  since: Date.now(),
  up: null, // the answer of GET /up; null: there are no controls
  reached: 0, // when an answer came last, by this page's clock
  failure: "", // why none comes; "": one did
}

const known = new Map() // members by id
const keptEvents = 300

// colorOf is the number of a member's color. A member keeps it while the page is open.
const colors = new Map()
export const colorOf = id => colors.get(id) ?? 0

export const member = id => known.get(id)
export const nameOf = id => known.get(id)?.name || (id ? id.slice(0, 6) : "")

const order = (a, b) => a.name.localeCompare(b.name, undefined, {numeric: true}) || (a.id < b.id ? -1 : 1)

// take takes an answer of GET /braid/cluster.
export function take(answer) {
  if (model.cluster && model.cluster !== answer.cluster) forget()
  Object.assign(model, {
    cluster: answer.cluster,
    self: answer.self,
    at: answer.at,
    cursor: answer.cursor,
    reached: Date.now(),
    failure: "",
  })
  const there = new Set()
  for (const told of answer.members) {
    there.add(told.id)
    let m = known.get(told.id)
    if (!m) known.set(told.id, (m = {id: told.id, series: new Series(), rates: new Map(), status: null}))
    takeMember(m, told, answer.at)
  }
  for (const id of known.keys()) if (!there.has(id)) known.delete(id)
  model.members = [...known.values()].sort(order)
  for (const m of model.members) if (!colors.has(m.id)) colors.set(m.id, freeColor())
  if (model.events.length > keptEvents) model.events.length = keptEvents
}

function freeColor() {
  const used = new Set([...colors].filter(([id]) => known.has(id)).map(([, c]) => c))
  let c = 0
  while (used.has(c)) c++
  return c
}

function takeMember(m, told, at) {
  const again = m.boot !== told.boot
  m.name = told.name || told.id.slice(0, 6)
  m.reached = told.reached
  m.error = (told.error || "").replace(/^.*member [0-9a-f]+: /, "") // whom was asked is known
  m.boot = told.boot
  if (told.status && told.reached) {
    if (again) m.rates.clear()
    for (const other of told.status.members || []) takeLink(m, other, at)
    m.before = m.status
    m.status = {...told.status, instances: told.status.instances || []} // a log that is replaced has none
  }
  m.series.take(told.samples, told.reset)
  if (told.reset) model.events = model.events.filter(e => e.boot !== m.boot)
  for (const e of told.events || []) addEvent({...e, member: m.id, boot: m.boot})
}

const rateOver = 3500 // milliseconds

// takeLink computes the rates of a link of which the bytes are counted.
function takeLink(m, other, at) {
  if (!other.link) return
  const {sent_bytes: sent, received_bytes: received} = other.link
  const seen = m.rates.get(other.id)?.seen || []
  seen.push({at, sent, received})
  while (seen.length > 2 && at - seen[0].at > rateOver) seen.shift() // a status may be told twice
  const first = seen[0],
    seconds = Math.max(0.5, (at - first.at) / 1000)
  const rate = (now, before) => Math.max(0, (now - before) / seconds)
  m.rates.set(other.id, {seen, sentRate: rate(sent, first.sent), receivedRate: rate(received, first.received)})
}

// addEvent adds an event where its time belongs: the newest is the first.
export function addEvent(e) {
  const i = model.events.findIndex(x => x.at <= e.at)
  model.events.splice(i < 0 ? model.events.length : i, 0, e)
}

// forget forgets the cluster, as when another one answers, or a stranger must not see it.
export function forget() {
  known.clear()
  colors.clear()
  Object.assign(model, {cluster: "", cursor: "", members: [], events: [], since: Date.now()})
}

// now is the member's time in seconds.
export const now = () => model.at / 1000 + (model.reached ? (Date.now() - model.reached) / 1000 : 0)

// control is a member's state according to braid up; null: it is not known.
export const control = name => model.up?.members?.find(m => m.name === name) || null

// condition is how a member is, in a word, with a level: good, warn or bad.
export function condition(m) {
  const c = control(m.name)
  if (c && c.state !== "running") return {word: c.state, level: c.state === "starting" ? "warn" : "bad"}
  if (!m.reached) return {word: "no answer", level: "bad"}
  const st = m.status
  if (!st) return {word: "no status", level: "warn"}
  if (st.serving === "none") return {word: "serves nothing", level: "bad"}
  if (st.serving === "reads") return {word: "serves reads", level: "warn"}
  const v = st.voters
  if (v && 2 * v.reached <= v.all)
    return {word: "few voters", level: "warn", why: `It reaches ${v.reached} of ${v.all} voters.`}
  return {word: "serves", level: "good"}
}

// leads lists the instances that a member leads, with epochs also the segment: [{instance}].
export function leads(id) {
  const out = []
  for (const inst of instances()) if (inst.leaders.includes(id)) out.push(inst.instance)
  return out
}

// best is the status to believe about what members share: that of a member that serves, and has the newest profile.
export function best() {
  let pick = null
  for (const m of model.members) {
    if (!m.reached || !m.status) continue
    const rank = (m.status.profile || 0) * 4 + (m.status.serving === "all" ? 2 : 0) + (m.id === model.self ? 1 : 0)
    if (!pick || rank > pick.rank) pick = {rank, status: m.status}
  }
  return pick?.status || null
}

// self is what the members know of one of them: its role, zone and addresses.
export const self = m => (best()?.members || m.status?.members || []).find(x => x.id === m.id)

// instances are those of the best status, with who leads them: all leaders of segments, where there are epochs.
export function instances() {
  const st = best()
  return (st?.instances || []).map(i => ({instance: i.instance, leaders: leadersOf(i), term: i.term}))
}

function leadersOf(i) {
  if (i.epoch) return i.epoch.segments.map(g => g.leader)
  // A member that leads knows it first.
  for (const m of model.members) {
    const own = m.reached && m.status?.instances?.find(x => x.instance === i.instance)
    if (own && own.role === "leader" && own.leader === m.id && own.term >= i.term && alive(m)) return [m.id]
  }
  return i.leader && known.get(i.leader)?.reached !== false ? [i.leader] : []
}

const alive = m => {
  const c = control(m.name)
  return !c || c.state === "running"
}

// voters is how many members vote, and majority how many of them decide, unless quorums are set.
export function voters(st) {
  const all = st.voters?.all || st.members?.length || 0
  return {all, majority: Math.floor(all / 2) + 1}
}

// cut is into how many fragments new values are cut: k, of which any give the value. 0: not known.
export function cut(st) {
  let k = 0
  for (const m of model.members) for (const i of (m.reached && m.status?.instances) || []) k = Math.max(k, i.k || 0)
  return k || (st.instances || []).reduce((a, i) => Math.max(a, i.k || 0), 0)
}
