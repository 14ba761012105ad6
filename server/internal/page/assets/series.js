// The samples of one member, as columns by second.

const kept = 3600 // seconds

export class Series {
  constructor() {
    this.rows = new Map()
    this.newest = 0
    this.before = 0
  }

  // take adds columns of samples as /braid/cluster has them. A sample stands for the seconds of its interval. With
  // reset they replace all since the first of them: a member that starts again forgets what was before.
  take(columns, reset) {
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
      // The clock of a sample trembles: one that comes right after another leaves no second out.
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

  // last is the newest sample; null: it is older than a few seconds.
  last(now) {
    return now - this.newest > 8 ? null : this.rows.get(this.newest) || null
  }

  // column is a value at seconds from, from + step, … to: the mean of each step, null where there is none.
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
