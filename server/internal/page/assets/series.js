// The samples of one member, by second.

const kept = 3600 // seconds

// sum and max of values; null: there are none.
export const sum = values => (values.length ? values.reduce((a, b) => a + b, 0) : null)
export const max = values => (values.length ? Math.max(...values) : null)

export class Series {
  constructor() {
    this.rows = new Map()
    this.newest = 0
    this.before = 0
  }

  // add adds samples in columns, as /braid/cluster returns them. A sample is valid for each second of its interval.
  // With reset they replace all samples since the first of them: a member that restarts has a new history.
  add(columns, reset) {
    const t = columns?.t
    if (!t?.length) return
    if (reset) {
      for (const sec of this.rows.keys()) if (sec >= Math.round(t[0])) this.rows.delete(sec)
      this.newest = this.before = 0
    }
    const names = Object.keys(columns).filter(n => n !== "t" && n !== "seconds")
    for (let i = 0; i < t.length; i++) {
      const row = {}
      for (const n of names) row[n] = columns[n][i]
      const at = Math.round(t[i]),
        long = columns.seconds?.[i] || 1
      // Times of samples jitter: consecutive samples leave no gap of a second.
      const from =
        this.before && t[i] - this.before < 1.7 * long ? Math.round(this.before) + 1 : at - Math.round(long) + 1
      for (let sec = Math.min(from, at); sec <= at; sec++) this.rows.set(sec, row)
      this.before = t[i]
      this.newest = Math.max(this.newest, at)
    }
    for (const sec of this.rows.keys()) {
      if (sec >= this.newest - kept) break
      this.rows.delete(sec)
    }
  }

  // last is the newest sample; null: it is older than 8 seconds.
  last(now) {
    return now - this.newest > 8 ? null : this.rows.get(this.newest) || null
  }

  // column has a value for each of the seconds from, from + step, … to: the mean of the step, null without samples.
  column(name, from, to, step) {
    const out = new Array(Math.floor((to - from) / step) + 1)
    for (let i = 0; i < out.length; i++) {
      let sum = 0,
        n = 0
      for (let sec = from + i * step, k = 0; k < step; k++) {
        const v = this.rows.get(sec - k)?.[name]
        if (v != null) {
          sum += v
          n++
        }
      }
      out[i] = n ? sum / n : null
    }
    return out
  }
}
