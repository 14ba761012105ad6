package replica

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/sys"
	"github.com/braidlog/braid/protocol"
)

// busy measures for how long a loop is busy: from each time that it wakes until it waits again.
type busy struct {
	woke  time.Duration // negative: it is not measured; of the loop alone
	total atomic.Int64
}

// begin is called when the loop wakes.
func (b *busy) begin(r *Replica, t *tuning) {
	if b.woke = -1; t.measures() {
		b.woke = r.now()
	}
}

// end is called when it is about to wait.
func (b *busy) end(r *Replica) {
	if b.woke >= 0 {
		b.total.Add(int64(r.now() - b.woke))
	}
}

// measures is what this member counted until the last report. It is of the fitting's goroutine alone.
type measures struct {
	begun bool
	last  totals
}

// totals is what this member counted since it was opened.
type totals struct {
	at    time.Duration
	asked fit.Load
	loops map[protocol.InstanceID]int64
	apply int64
	cpu   time.Duration
	log   LogStats
	sent  map[protocol.MemberID]int64
}

// report returns what was measured since the last call. ok is false if there was none, since there was no need to
// measure.
func (m *measures) report(r *Replica, trips []fit.Trip) (report fit.Report, ok bool) {
	loops, links := r.all(), r.links.Stats().Peers
	now := totals{at: r.now(), asked: r.proposer.answered(), loops: map[protocol.InstanceID]int64{},
		apply: r.apply.busy.total.Load(), cpu: sys.CPUTime(), log: r.writer.Metrics(), sent: map[protocol.MemberID]int64{}}
	last, begun := m.last, m.begun
	span := now.at - last.at
	report = fit.Report{Member: r.opt.Self, Span: span, Asked: fit.LoadSince(last.asked, now.asked), Trips: trips,
		Apply: share(time.Duration(now.apply-last.apply), span),
		CPU:   share(now.cpu-last.cpu, span*time.Duration(runtime.GOMAXPROCS(0)))}
	for _, l := range loops {
		total := l.busy.total.Load()
		now.loops[l.id] = total
		report.Loops = append(report.Loops, share(time.Duration(total-last.loops[l.id]), span))
		_, applied, _ := r.apply.appliedOf(l.id)
		if commit := l.status.Load().Commit; commit > applied {
			report.Unapplied += uint64(commit - applied)
		}
	}
	for i := range links {
		p := &links[i]
		id := protocol.MemberID(p.ID)
		now.sent[id] = p.BytesOut
		report.Links = append(report.Links, fit.Link{To: id, Bytes: uint64(max(0, p.BytesOut-last.sent[id])),
			Queued: uint64(p.QueueBytes)})
	}
	report.Disk = fit.Disk{Syncs: now.log.Syncs - last.log.Syncs, Time: now.log.SyncTime - last.log.SyncTime,
		Bytes: uint64(now.log.Bytes - last.log.Bytes)}
	m.last, m.begun = now, true
	return report, begun && span > 0
}

// share is a part of a time, 0…1.
func share(part, whole time.Duration) float64 {
	if whole <= 0 {
		return 0
	}
	return min(1, max(0, float64(part)/float64(whole)))
}

// trips are the last round trips to a member, 0 for one that failed.
type trips struct {
	last   [shortestOf]time.Duration
	next   int
	asking bool // a request is on its way
}

// shortestOf is of how many round trips the shortest one counts, so that one that had to wait does not.
const shortestOf = 5

func (t *trips) add(d time.Duration) {
	t.last[t.next] = d
	t.next = (t.next + 1) % shortestOf
}

// shortest is the shortest of them; 0: none is known.
func (t *trips) shortest() (least time.Duration) {
	for _, d := range t.last {
		if d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	return least
}
