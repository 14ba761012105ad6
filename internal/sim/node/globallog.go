package node

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/protocol"
)

// The merging of instances into one log, and its judges.

var slotsSkipped = count.New("skips", "skips", count.Merged)

// Named returns the instance's name for the trace, if there may be several.
func (w *Environment) Named(instance protocol.InstanceID) string {
	if w.Set.Instances == 0 && !w.Set.Switches {
		return ""
	}
	return fmt.Sprintf(" of instance %d", instance)
}

// scatter chooses the instance of the next batch, when a batch is taken. Usually that is the best one.
func (m *Member) scatter() {
	m.favorite = 0
	if n := len(m.InForce); n > 1 && m.Env.Chance(m.Env.Set.Weave.Scatter) {
		m.favorite = m.InForce[m.Env.Pick(n)].Instance
	}
}

// destination returns the active instance that must take the next batch; 0: the best one.
func (m *Member) destination() protocol.InstanceID {
	for _, id := range []protocol.InstanceID{m.Env.Route, m.favorite} {
		if slices.Contains(m.Crew.ids, id) {
			return id
		}
	}
	return 0
}

// Settled reports whether all instances have completed the last membership change of the first one, so that the next
// change may begin.
func (r *Running) Settled() bool {
	return len(r.Applier.Instances) == 1 || member.Settled(&r.Witness.Latest.Config, r.Applier.Configs())
}

// Config returns the instance's applied membership.
func (s *MemberInstance) Config() protocol.Config {
	if in := s.Member.Applier.Of(s.Instance); in != nil {
		return in.Config
	}
	return s.Member.Applier.Config()
}

// judgeSkip checks that leaders do not skip slots that their logs fill (N4). Where a log has decided entries only, its
// end does not say what the member that proposed the skip knew, and a late one fills nothing.
func (c *Witness) judgeSkip(r *protocol.Record) error {
	if r.Kind != protocol.RecordEntry || r.Entry.Kind != protocol.EntrySkip || c.Latest.Role != protocol.Leader {
		return nil
	}
	c.Member.Env.Count(slotsSkipped)
	if tail := c.Part.Inst.Tail(); !c.Part.Judges.Core.Judged.DecidedOnly && tail.End()+1 == r.Entry.Index && r.Entry.Round() <= tail.Round() {
		return fmt.Errorf("N4: instance %d skips to round %d; its log fills %d", c.Part.Instance, r.Entry.Round(), tail.Round())
	}
	return nil
}

// judgeCut checks that an instance's log is cut only up to a durable snapshot (N5), and deleted only when no snapshot
// needs it: the newest one may turn out to be damaged.
func (s *MemberInstance) judgeCut(at protocol.Index) {
	if all, err := s.Member.Snaps.Positions(); at == member.AllIndexes && err == nil && len(all) > 0 {
		f, err := s.Member.Snaps.Open(all[0])
		if err == nil && !f.Header.Cursor.Retired(s.Instance) {
			s.Member.Env.Violate(s.Member.ID, fmt.Errorf("N5: the log of instance %d is given up, and the snapshot at position %d needs it", s.Instance, all[0]))
		}
	}
	if p := s.Member.Snapped.Point(s.Instance); at > p.Index && !s.Member.Snapped.Retired(s.Instance) {
		s.Member.Env.Violate(s.Member.ID, fmt.Errorf("N5: the log of instance %d is cut at %d; the newest snapshot is at %d", s.Instance, at, p.Index))
	}
}

// Gap returns the instance that is behind in the global log on this member; "" if none is.
func (m *Member) Gap() string {
	if !m.Env.Court.Merged() {
		return ""
	}
	at := m.Applier.Cursor()
	for _, s := range m.InForce {
		if w := m.Env.Court.Weave.Wanted(uint64(s.Instance)); uint64(at.Point(s.Instance).Index) < w {
			return fmt.Sprintf("instance %d is consumed to %d, wanted is %d; next is round %d of instance %d",
				s.Instance, at.Point(s.Instance).Index, w, at.Next.Round, at.Next.Instance)
		}
	}
	return ""
}
