// The state of the cluster, merged from the answers of a member to GET /braid/cluster.
import {Series} from "./series.js"

export const model = {
  cluster: "",
  self: "",
  at: 0,
  cursor: "",
  members: [],
  events: [],
  up: null, // the answer of GET /up; null: there are no controls
  reached: 0, // when the last answer arrived, by this page's clock
  failure: "", // why the last request failed; "": it did not
}

const known = new Map() // members by id
const keptEvents = 300

// colorOf is the number of a member's color. A member keeps it while the page is open.
const colors = new Map()
export const colorOf = id => colors.get(id) ?? 0

export const member = id => known.get(id)
export const nameOf = id => known.get(id)?.name || (id ? id.slice(0, 6) : "")

const order = (a, b) => a.name.localeCompare(b.name, undefined, {numeric: true}) || (a.id < b.id ? -1 : 1)

// merge merges an answer of GET /braid/cluster into the state.
export function merge(answer) {
  if (model.cluster && model.cluster !== answer.cluster) forget()
  Object.assign(model, {
    cluster: answer.cluster,
    self: answer.self,
    at: answer.at,
    cursor: answer.cursor,
    reached: Date.now(),
    failure: "",
  })
  for (const seen of answer.members) {
    if (!known.has(seen.id)) known.set(seen.id, unknown(seen.id))
    mergeMember(known.get(seen.id), seen, answer.at)
  }
  listMembers(answer.members)
  if (model.events.length > keptEvents) model.events.length = keptEvents
}

// mergeControls shows the members that braid up has, if no member has answered yet. Their names take the place of ids.
export function mergeControls() {
  if (model.cluster || !model.up) return
  const all = model.up.members.map(m => ({...unknown(m.name), name: m.name, reached: false, error: ""}))
  for (const m of all) known.set(m.id, m)
  listMembers(all)
}

const unknown = id => ({id, series: new Series(), rates: new Map(), status: null})

// listMembers removes all other members.
function listMembers(there) {
  const ids = new Set(there.map(m => m.id))
  for (const id of known.keys()) if (!ids.has(id)) known.delete(id)
  model.members = [...known.values()].sort(order)
  for (const m of model.members) if (!colors.has(m.id)) colors.set(m.id, freeColor())
}

function freeColor() {
  const used = new Set([...colors].filter(([id]) => known.has(id)).map(([, c]) => c))
  let c = 0
  while (used.has(c)) c++
  return c
}

// mergeMember merges a member of an answer into m.
function mergeMember(m, seen, at) {
  const restarted = m.boot !== seen.boot
  m.name = seen.name || seen.id.slice(0, 6)
  m.reached = seen.reached
  m.error = (seen.error || "").replace(/^.*member [0-9a-f]+: /, "") // the page shows the error with the member
  m.boot = seen.boot
  if (seen.status && seen.reached) {
    if (restarted) m.rates.clear()
    for (const other of seen.status.members || []) if (other.link) measureLink(m, other, at)
    m.before = m.status
    m.status = {...seen.status, instances: seen.status.instances || []} // a log that is replaced has none
  }
  m.series.add(seen.samples, seen.reset)
  if (seen.reset) model.events = model.events.filter(e => e.boot !== m.boot)
  for (const e of seen.events || []) addEvent({...e, member: m.id, boot: m.boot})
}

const rateOver = 3500 // milliseconds

// measureLink computes the rates of a member's link to another one from its counters of bytes.
function measureLink(m, other, at) {
  const {sent_bytes: sent, received_bytes: received} = other.link
  const seen = m.rates.get(other.id)?.seen || []
  seen.push({at, sent, received})
  while (seen.length > 2 && at - seen[0].at > rateOver) seen.shift() // two answers may have the same status
  const first = seen[0],
    seconds = Math.max(0.5, (at - first.at) / 1000)
  const rate = (now, before) => Math.max(0, (now - before) / seconds)
  m.rates.set(other.id, {seen, sentRate: rate(sent, first.sent), receivedRate: rate(received, first.received)})
}

// addEvent inserts an event by its time, the newest first.
export function addEvent(e) {
  const i = model.events.findIndex(x => x.at <= e.at)
  model.events.splice(i < 0 ? model.events.length : i, 0, e)
}

// forget removes the cluster, when another one answers or the user may not see it.
export function forget() {
  known.clear()
  colors.clear()
  Object.assign(model, {cluster: "", cursor: "", members: [], events: []})
}

// now is the time in seconds by the clock of the member that serves the page.
export const now = () => model.at / 1000 + (model.reached ? (Date.now() - model.reached) / 1000 : 0)

// control is a member's state according to braid up; null: it is not known.
export const control = name => model.up?.members?.find(m => m.name === name) || null

// condition is the state of a member: a word, its level (good, warn or bad), and the reason if there is one.
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

// leads lists the instances that a member leads; with epochs it leads a segment of it.
export const leads = id => instances().filter(i => i.leaders.includes(id)).map(i => i.instance)

// leaders lists the members that lead an instance or a segment, each once.
export const leaders = () => [...new Set(instances().flatMap(i => i.leaders))]

// best is the status for facts that members share: of a member with the newest profile, if possible one that serves.
export function best() {
  let pick = null
  for (const m of model.members) {
    if (!m.reached || !m.status) continue
    const rank = (m.status.profile || 0) * 4 + (m.status.serving === "all" ? 2 : 0) + (m.id === model.self ? 1 : 0)
    if (!pick || rank > pick.rank) pick = {rank, status: m.status}
  }
  return pick?.status || null
}

// self is a member's entry in the list of members: its role, zone and addresses.
export const self = m => (best()?.members || m.status?.members || []).find(x => x.id === m.id)

// instances are those of the best status with their leaders; in an epoch these are the leaders of all segments.
export function instances() {
  const st = best()
  return (st?.instances || []).map(i => ({instance: i.instance, leaders: leadersOf(i)}))
}

function leadersOf(i) {
  if (i.epoch) return i.epoch.segments.map(g => g.leader)
  // A leader's own status has its election before the status of others.
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

// voters returns the number of members that vote, and of those that decide unless quorums are set.
export function voters(st) {
  const all = st.voters?.all || st.members?.length || 0
  return {all, majority: Math.floor(all / 2) + 1}
}

// cut is the number k of fragments that give a new value, as members report it; 0: it is not known.
export const cut = () =>
  Math.max(0, ...model.members.flatMap(m => (m.reached && m.status?.instances) || []).map(i => i.k || 0))
