// The state of all members as a table, for screen readers.
import {byId, h, list, text} from "./dom.js"
import {bytes, count, join, millis} from "./format.js"
import {condition, model, nameOf, self} from "./state.js"
import {roleText} from "./picture.js"

const columns = [
  ["member", m => m.name],
  ["id", m => m.id],
  ["state", m => condition(m).word + (m.reached || !m.error ? "" : ": " + m.error)],
  ["role", roleText],
  ["zone", m => self(m)?.zone || "–"],
  [
    "leaders",
    m =>
      (m.status?.instances || [])
        .map(i => (m.status.instances.length > 1 ? i.instance + ": " : "") + leaderOf(i))
        .join(", "),
  ],
  ["term", m => (m.status?.instances || []).map(i => i.term).join(", ")],
  ["revision", m => count(m.status?.revision)],
  ["applied", m => count(m.status?.applied_position)],
  [
    "database",
    m => (m.status ? join(bytes(m.status.db_in_use_bytes)) + " of " + join(bytes(m.status.db_bytes)) : "–"),
  ],
  ["links", linksText],
  ["clients at", m => (self(m)?.client_urls || []).join(" ")],
  ["members at", m => (self(m)?.peer_urls || []).join(" ")],
]

const leaderOf = i => (i.epoch ? "of segments" : nameOf(i.leader) || "none")

function linksText(m) {
  return (
    (m.status?.members || [])
      .filter(x => x.link)
      .map(x => {
        const l = x.link
        const at = l.moved ? ` at ${(l.addrs || []).join(" ")}` : ""
        const up = l.round_trip_ms ? join(millis(l.round_trip_ms)) : "up"
        return `${x.name || x.id}${at} ` + (l.up ? up : "down" + (l.error ? ": " + l.error : ""))
      })
      .join(", ") || "–"
  )
}

let body = null

export function update() {
  if (!body) {
    body = h("tbody")
    byId("table").append(
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          columns.map(([name]) => h("th", {scope: "col"}, name)),
        ),
      ),
      body,
    )
  }
  list(
    body,
    model.members,
    m => m.id,
    () =>
      h(
        "tr",
        {},
        columns.map((_, i) => (i ? h("td") : h("th", {scope: "row"}))),
      ),
    (row, m) => columns.forEach(([, read], i) => text(row.children[i], read(m))),
  )
}
