package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/sim/node"
)

// drainsAtEnd draws which members are drained at the end. judgedDrains counts the runs that end with it.
var (
	drainsAtEnd  = draw.New("drains at the end")
	judgedDrains = count.New("judged_drains", "times that drained members were to lead nothing")
)

// drainShare is the share of runs with drains at their end.
const drainShare = 0.1

// demandDrained drains some members, but not all voters, one after the other, while no member fails. Each must soon
// lead nothing, and must not lead again while it is drained. Where leaders follow from the log, as with ISS, the first
// one must give its segment up, and may lead again when its ban has ended. Policies limit the number of members that
// are banned at a time.
func demandDrained(w *fault.World, alive []*node.Member) {
	d, seeks := w.From(drainsAtEnd), w.Set.SeeksDrain()
	if w.Broken != nil || w.Set.Mutant != "" && !seeks || !w.Set.Protocol.Serves() || !isComplete(w, alive) ||
		!seeks && !d.Yes(drainShare) {
		return
	}
	config := fault.Serving(w, alive)[0].Applier.Config()
	voters := config.Voters()
	if len(voters) < 2 {
		return
	}
	var drained []*node.Member
	for _, i := range d.Rand.Perm(len(voters))[:1+d.Below(len(voters)-1)] {
		drained = append(drained, w.Member(voters[i]))
	}
	w.Count(judgedDrains)
	w.Tracef("CALM: drained are %s", ids(drained))
	j := &drainJudge{w: w, lives: livesBegun(w)}
	for i, m := range drained {
		if j.over() {
			break
		}
		m.Drain(true)
		banned := i == 0 && len(voters) > 2 && fault.Bans(w)
		free := func() bool { return !m.LeadsByElection() && !(banned && m.LeadsSegment()) }
		if !j.quiet(drained[:i], settleTime(w), free) {
			w.Violate(m.ID, fmt.Errorf("still leads %s after it was drained:%s", settleTime(w),
				describeMembers(w, alive)))
		}
		j.quiet(drained[:i], 2*w.Set.Election, never) // the announcement arrives, and a successor is elected
	}
	j.quiet(drained, drainedFor*w.Set.Election, never)
	for _, m := range drained {
		if m.Up {
			m.Drain(false)
		}
	}
}

// drainedFor is the time for which drained members must lead nothing, in election timeouts. It is long enough for
// others to forget a single announcement and to hand over to a drained member that they prefer.
const drainedFor = 14

func never() bool { return false }

// drainJudge judges drained members until any member starts or stops: one may notice an earlier failure only now.
type drainJudge struct {
	w     *fault.World
	lives int // livesBegun when it began
}

// quiet runs until done reports true, or until the limit, and demands that the drained members lead nothing meanwhile.
// It reports whether done was reached or the judge is over.
func (j *drainJudge) quiet(drained []*node.Member, limit time.Duration, done func() bool) bool {
	w := j.w
	leads := func() bool { return slices.ContainsFunc(drained, (*node.Member).LeadsByElection) }
	ended := w.RunUntil(w.Now()+limit, func() bool { return j.over() || leads() || done() })
	if !j.over() && leads() {
		w.Violate(0, fmt.Errorf("one of the drained members %s leads:%s", ids(drained), describeMembers(w, drained)))
	}
	return ended || j.over()
}

// over reports whether the judge has ended.
func (j *drainJudge) over() bool { return livesBegun(j.w) != j.lives || j.w.Broken != nil }
