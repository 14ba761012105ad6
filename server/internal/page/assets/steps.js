// The four steps of a write, each with a figure that is measured now.
import {h, list, text} from "./dom.js"
import {bytes, join, millis, names, si} from "./format.js"
import {sum} from "./series.js"
import {cut, leaders, model, nameOf, now} from "./state.js"

const samples = () => model.members.map(m => m.reached && m.series.last(now())).filter(x => x)
const values = name => samples().flatMap(x => x[name] ?? [])
const median = name => {
  const v = values(name).sort((a, b) => a - b)
  return v.length ? v[v.length >> 1] : null
}

const rate = () => [join(si(sum(values("writes")), "/s")), "writes"]
const sent = () => [join(bytes(sum(values("sent_bytes")), "/s")), "sent"]
const disk = () => [join(millis(median("fsync_p99_ms"))), "fsync"]
const answer = () => [join(millis(median("write_p50_ms"))), "p50"]

const last = ["It is applied, and the client has its answer.", answer]

// steps by protocol: a sentence and a figure for each.
const steps = {
  raft: (leader, others) => [
    ["A client sends a write to any member.", rate],
    [`${leader} appends it and sends it to ${others}.`, sent],
    ["A majority has it on disk: it is committed.", disk],
    last,
  ],
  craft: (leader, others) => [
    ["A client writes a large value.", rate],
    [cut() > 1 ? `${leader} sends each other member a fragment.` : `${leader} sends all of it to ${others}.`, sent],
    ["Enough have theirs on disk: no minority can lose it.", disk],
    last,
  ],
  niagara: () => [
    ["A client sends a write to any member.", rate],
    ["It goes to the leader of one of the instances, which replicates it.", sent],
    ["A majority has it on disk: its instance has committed it.", disk],
    ["When its turn has come in the merged log, it is applied.", answer],
  ],
  lcr: leader => [
    ["A client sends a write to any member.", rate],
    ["That member sends it to all by its lane, if it is blind.", sent],
    [`A majority has it on disk, and ${leader} confirms its place in the log.`, disk],
    last,
  ],
  iss: () => [
    ["A client sends a write to any member.", rate],
    ["That member proposes it in its own next slot.", sent],
    ["A majority has accepted it: the slot is decided.", disk],
    ["Once every slot before it is decided, it is applied.", answer],
  ],
  "multi-paxos": (leader, others) => [
    ["A client sends a write to any member.", rate],
    [`${leader} proposes it in a slot to ${others}.`, sent],
    ["A quorum has accepted it: the slot is decided.", disk],
    last,
  ],
}

export function drawSteps(node, st) {
  const leading = leaders()
  const leader = leading.length === 1 ? nameOf(leading[0]) : "The leader"
  const others = model.members.filter(m => !leading.includes(m.id)).map(m => m.name)
  const few = others.length && others.length < 4 ? names(others) : "all others"
  const items = (steps[st.protocol] || steps.raft)(leader, few).map(([sentence, figure], i) => ({i, sentence, figure}))
  list(
    node,
    items,
    x => x.i,
    () => h("li", {}, h("span"), h("p", {}, h("b"), " ", h("small"))),
    (li, {sentence, figure}) => {
      const [value, label] = figure()
      text(li.firstChild, sentence)
      text(li.lastChild.firstChild, value)
      text(li.lastChild.lastChild, label)
    },
  )
}
