// Numbers, times and names as text.

const up = ["", "k", "M", "G", "T"]

// digits rounds to three significant digits.
function digits(x) {
  const a = Math.abs(x)
  return a >= 100 ? x.toFixed(0) : a >= 10 ? x.toFixed(1) : x.toFixed(2)
}

// si returns a number with a decimal prefix, as [number, unit]: 12.3 k.
export function si(x, unit = "") {
  if (x == null || !isFinite(x)) return ["–", unit]
  if (x === 0) return ["0", unit]
  let i = 0
  while (Math.abs(x) >= 999.5 && i < up.length - 1) {
    x /= 1000
    i++
  }
  const whole = i === 0 && (Number.isInteger(x) || Math.abs(x) >= 10)
  return [whole ? x.toFixed(0) : digits(x), up[i] + unit]
}

// bytes returns a number with a binary prefix: 64.0 MiB.
export function bytes(x, unit = "") {
  if (x == null || !isFinite(x)) return ["–", "B" + unit]
  const names = ["B", "KiB", "MiB", "GiB", "TiB"]
  let i = 0
  while (Math.abs(x) >= 999.5 && i < names.length - 1) {
    x /= 1024
    i++
  }
  return [i === 0 ? x.toFixed(0) : digits(x), names[i] + unit]
}

// millis returns a duration of x milliseconds, as [number, unit].
export function millis(x) {
  if (x == null || !isFinite(x)) return ["–", "ms"]
  if (x >= 999.5) return [digits(x / 1000), "s"]
  if (x < 0.1 && x > 0) return [(x * 1000).toFixed(0), "µs"]
  return [digits(x), "ms"]
}

export const cores = x => (x == null || !isFinite(x) ? ["–", "cores"] : [x.toFixed(2), "cores"])

export const share = x => (x == null || !isFinite(x) ? ["–", "%"] : [(100 * x).toFixed(x < 0.0995 ? 1 : 0), "%"])

export const join = ([n, unit]) => (unit ? n + "\u202f" + unit : n)

// count returns a whole number in groups of three digits.
export const count = x => (x == null ? "–" : String(x).replace(/\B(?=(\d{3})+$)/g, "\u202f"))

// long returns a duration of seconds, in the two largest units.
export function long(seconds) {
  const t = Math.max(0, Math.round(seconds))
  if (t < 60) return `${t} s`
  if (t < 3600) return `${Math.floor(t / 60)} min ${t % 60} s`
  if (t < 86400) return `${Math.floor(t / 3600)} h ${Math.floor((t % 3600) / 60)} min`
  return `${Math.floor(t / 86400)} d ${Math.floor((t % 86400) / 3600)} h`
}

const two = n => String(n).padStart(2, "0")

// clock returns the time of day of a Unix time in milliseconds.
export function clock(at) {
  const d = new Date(at)
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`
}

// names returns an enumeration: m1, m2 and m3.
export const names = list => (list.length < 2 ? list.join("") : `${list.slice(0, -1).join(", ")} and ${list.at(-1)}`)

export const plural = (n, one, many = one + "s") => `${n} ${n === 1 ? one : many}`
