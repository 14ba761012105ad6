// The line at the top with the health of the cluster, and banners for its faults.
import {attr, byId, h, list, text} from "./dom.js"
import {long, names, plural} from "./format.js"
import {best, condition, instances, leaders, member, model, nameOf, self} from "./state.js"

// update shows the health and the banners; to strangers, that they have to sign in.
export function update(stranger) {
  const {sentence, level} = stranger ? {sentence: "Sign in to see the cluster", level: "off"} : health()
  text(byId("sentence"), sentence)
  attr(byId("dot"), "class", "dot " + level)
  document.title = (level === "good" ? "" : level === "warn" ? "▲ " : "■ ") + "braid · " + sentence
  drawAge()
  list(
    byId("banners"),
    banners(),
    b => b.key,
    () => h("div", {class: "banner"}),
    drawBanner,
  )
}

function health() {
  if (!model.members.length) return {sentence: model.failure ? "No answer" : "Asking the cluster…", level: "off"}
  const voters = model.members.filter(m => roleOf(m) !== "learner" && roleOf(m) !== "joining")
  const serving = model.members.filter(m => condition(m).word === "serves").length
  const some = model.members.some(m => m.reached && m.status?.serving === "reads")
  const none = model.members.every(m => !m.reached || m.status?.serving === "none")
  const st = best()
  const parts = [
    `${serving} of ${plural(model.members.length, "member")} serve${model.members.length === 1 ? "s" : ""}`,
  ]
  if (some && !serving) parts[0] = "Only reads are served"
  if (st) parts.push(st.protocol, leadersText(st))
  let level = serving === model.members.length ? "good" : "warn"
  if (none || some || 2 * serving <= voters.length) level = "bad"
  if (model.failure) {
    level = "off"
    parts[0] = "Last seen: " + parts[0]
  }
  return {sentence: parts.join(" · "), level}
}

const roleOf = m => self(m)?.role || ""

function leadersText(st) {
  const all = instances(),
    who = leaders().map(nameOf).sort(),
    lead = `${names(who)} lead${who.length === 1 ? "s" : ""}`
  const without = all.filter(i => !i.leaders.length).length
  if (without === all.length) return "no leader"
  if (st.protocol === "iss") return `${lead} segments`
  const several = all.length > 1 ? ` ${all.length - without} instances` : ""
  return `${lead}${several}${without ? `, ${without} without a leader` : ""}`
}

let failing = 0 // since when requests fail, in milliseconds since 1970; 0: they do not

// drawAge shows whether the page is live, or since when the member does not answer.
function drawAge() {
  const node = byId("fresh")
  if (model.failure && !failing) failing = model.reached || Date.now()
  if (!model.failure) failing = 0
  const age = failing ? (Date.now() - failing) / 1000 : 0
  text(node, !model.reached ? "" : failing ? `no answer for ${long(age)}` : "live")
  attr(node, "class", "fresh " + (failing ? "late" : "live"))
}

// banners lists faults: {key, level, title, text, links}.
function banners() {
  const out = []
  if (model.failure && Date.now() - failing > 1500) out.push(noAnswer())
  const remedies = new Map()
  for (const m of model.members) {
    for (const r of (m.reached && m.status?.remedies) || []) {
      const key = r.alarm + r.member
      if (!remedies.has(key) || r.member === m.id) remedies.set(key, r) // the member's own is the newest
    }
  }
  for (const [key, r] of remedies) {
    out.push({key: "alarm" + key, level: "bad", title: `Alarm ${r.alarm} of ${nameOf(r.member)}`, text: r.remedy})
  }
  for (const m of model.members) {
    const st = m.reached && m.status
    if (!st) continue
    if (st.serving === "none" && condition(m).word === "serves nothing" && st.why) {
      out.push({key: "none" + m.id, level: "warn", title: `${m.name} serves nothing`, text: st.why})
    }
    for (const fault of [st.bodies?.failing, st.disk?.failing]) {
      if (fault) out.push({key: "disk" + m.id + fault, level: "bad", title: m.name, text: fault})
    }
  }
  if (model.up?.last_error) out.push({key: "up", level: "bad", title: "A control failed:", text: model.up.last_error})
  return out
}

// noAnswer is the banner for a member that does not answer this page, with links to the pages of the others.
function noAnswer() {
  const server = member(model.self),
    others = model.up ? [] : model.members.filter(m => m.id !== model.self)
  const links = others.flatMap(
    m =>
      (m.status || server?.status)?.members
        ?.find(x => x.id === m.id)
        ?.client_urls?.slice(0, 1)
        .map(url => ({name: m.name, url})) || [],
  )
  const who = model.up ? "The cluster does not answer" : `${server ? server.name : "The member"} does not answer`
  const why = model.failure === "no answer" ? "" : model.failure + ". "
  return {
    key: "gone",
    level: "bad",
    title: who,
    links,
    text: `${why}This page keeps trying${links.length ? ". The dashboards of the other members:" : "."}`,
  }
}

// withCode makes elements of text, with code where it has backquotes.
const withCode = text => text.split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part))

function drawBanner(node, b) {
  attr(node, "class", "banner " + b.level)
  const content = JSON.stringify(b)
  if (node.content === content) return
  node.content = content
  node.replaceChildren(
    h("b", {}, b.title),
    " ",
    h("span", {}, withCode(b.text)),
    ...(b.links || []).filter(l => /^https?:\/\//.test(l.url)).flatMap(l => [" ", h("a", {href: l.url}, l.name)]),
  )
}
