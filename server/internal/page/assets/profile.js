// The profile that the members share: protocol, settings, and the change that would fit the load better.
import {byId, h, list, text} from "./dom.js"
import {best, model, nameOf} from "./state.js"
import {names, plural} from "./format.js"

export function update() {
  const st = best()
  list(
    byId("profile"),
    st ? facts(st) : [],
    f => f[0],
    f => h("div", {}, h("dt", {}, f[0]), h("dd", {})),
    (node, f) => text(node.lastChild, f[1]),
  )
  const versions = [...new Set(model.members.map(m => m.status?.version).filter(x => x))]
  text(
    byId("versions"),
    versions.length
      ? `braid ${names(versions)} · etcd API ${st?.etcd_api_version || ""} · cluster ${model.cluster}`
      : "",
  )
}

function facts(st) {
  const out = [
    ["protocol", st.protocol],
    [
      "placement",
      st.placement === "code"
        ? "code: followers keep fragments of large values"
        : "copy: each member keeps large values whole",
    ],
  ]
  if (st.order === "niagara") out.push(["order", `merged from ${plural(st.instances.length, "instance")}`])
  out.push(["settings", settings(st) || "all have their defaults"])
  if (st.tolerance) out.push(["tolerance", st.tolerance])
  out.push([
    "version",
    st.profile ? `${st.profile}: the members share it by the log` : "not in the log: each member has its flags",
  ])
  out.push(["fit", fit(st)])
  return out
}

function settings(st) {
  return Object.entries(st.settings || {})
    .map(([name, value]) => `${name} = ${value}`)
    .join(", ")
}

// fit is the fitter's proposal in a sentence.
function fit(st) {
  const own = model.members.map(m => m.reached && m.status?.fit).filter(f => f?.wish)
  const f = own[0] || st.fit,
    w = f?.wish
  if (!f) return ""
  if (!w)
    return f.mode === "off"
      ? "off: the load is not judged"
      : f.at
        ? `${f.mode}: no change would fit the load better`
        : `${f.mode}: not judged yet`
  const to =
    [
      w.protocol,
      ...Object.entries(w.settings || {})
        .filter(([n]) => n !== "fit-avoid")
        .map(([n, v]) => `${n} = ${v}`),
    ].join(", ") + (w.leader ? `, led by ${nameOf(w.leader)}` : "")
  const change = w.takes_back
    ? `goes back to ${to}`
    : w.restores
      ? `restores service with ${to}`
      : `${to} would give ${Math.round(w.gain * 100) / 100} times the throughput`
  return `${f.mode}: ${change}: ${w.reason}${f.waits ? `. It waits: ${f.waits}` : ""}.`
}
