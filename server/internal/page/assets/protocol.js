// The cluster's protocol: an explanation in a sentence or two, and drawings of its present state.
import {byId, h, list, text} from "./dom.js"
import {names, plural} from "./format.js"
import {best, cut, leaders, nameOf, voters} from "./state.js"
import {drawLog} from "./draw-log.js"
import {drawRounds} from "./draw-rounds.js"
import {drawEpoch} from "./draw-epoch.js"
import {drawLanes} from "./draw-lanes.js"
import {drawFragments} from "./draw-fragments.js"
import {drawSteps} from "./steps.js"

const titles = {
  raft: "Raft",
  craft: "CRaft",
  niagara: "NIAGARA",
  lcr: "LCR",
  iss: "ISS",
  "multi-paxos": "Multi-Paxos",
}

const led = f => {
  const leading = leaders()
  return leading.length ? f(names(leading.map(nameOf).sort())) : "No member leads: an election is needed."
}

// ideas are the sentences, by protocol.
const ideas = {
  raft: st =>
    led(
      m =>
        `${m} leads and sends each entry to the other members. An entry is committed once a majority, ` +
        `${voters(st).majority} of ${voters(st).all}, has it on disk; then every member applies it.`,
    ),
  craft: st => led(m => `${m} leads as in Raft, but ${cutInto(st)}`),
  niagara: st =>
    `${plural(st.instances.length, "instance")} of Raft, each with a log of its own, replicate at once. Their logs ` +
    "are merged round by round: an entry of each instance in turn. An instance that has no entry skips its slots, " +
    "so that the others need not wait for it.",
  lcr: () =>
    led(
      m =>
        "A member that a client reaches sends blind commands to the others itself, in its lane. The leader, " +
        `${m}, only confirms them and assigns their place in the log. All other commands go through the leader, ` +
        "as in Raft.",
    ),
  iss: () =>
    "All members lead at once. In each epoch every slot of the log belongs to one of the leaders, in turn. A leader " +
    "without a command skips its slots, and one that fails is banned for some epochs.",
  "multi-paxos": st =>
    led(
      m =>
        `${m} leads with ballot ${st.instances[0]?.ballot || st.instances[0]?.term} and proposes a value for each ` +
        `slot of the log. A slot is decided once ${deciders(st)} have accepted its value.`,
    ),
}

function cutInto(st) {
  const k = cut()
  return k > 1
    ? `each member gets one of ${voters(st).all} fragments of a large value. Any ${k} of them give the value, so a ` +
        `follower stores 1/${k} of it.`
    : "with more members it would cut large values into fragments, one for each member. With " +
        `${plural(voters(st).all, "member")} values are not cut, unless code-k is set.`
}

function deciders(st) {
  const q = st.settings?.quorums
  return q && q !== "majority" ? `a quorum (${q})` : `a majority, ${voters(st).majority} of ${voters(st).all},`
}

function drawings(st) {
  if (!st.instances.length) return []
  const out = []
  if (st.instances.some(i => i.lanes)) out.push(drawLanes)
  if (st.placement === "code") out.push(drawFragments)
  if (st.instances.some(i => i.epoch)) out.push(drawEpoch)
  else if (st.instances.length > 1 || st.order === "niagara") out.push(drawRounds)
  else out.push(drawLog)
  return out
}

export function update() {
  const st = best()
  if (!st) return
  text(byId("protocol-h"), titles[st.protocol] || st.protocol)
  text(byId("protocol-note"), st.profile ? `profile ${st.profile}` : "")
  text(byId("idea"), (ideas[st.protocol] || (() => ""))(st))
  drawSteps(byId("steps"), st)
  list(
    byId("drawing"),
    drawings(st),
    d => st.protocol + d.name,
    () => h("div"),
    (node, draw) => draw(node, st),
  )
}
