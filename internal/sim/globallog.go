package sim

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/protocol"
)

// What members do so that their instances make one log, and what is judged of it.

var slotsSkipped = count.New("skips", "skips", count.Woven)

// named is the instance's name for the trace, where there may be several.
func (w *environment) named(instance protocol.InstanceID) string {
	if w.set.Instances == 0 {
		return ""
	}
	return fmt.Sprintf(" of instance %d", instance)
}

// scatter chooses where the next batch goes, at the time when one is taken. Mostly that is the
// instance that suits best.
func (m *Member) scatter() {
	m.favorite = 0
	if n := len(m.inForce); n > 1 && m.w.Chance(m.w.set.Weave.Scatter) {
		m.favorite = m.inForce[m.w.Pick(n)].instance
	}
}

// destination is the instance in force that must take the next batch; 0: the one that suits best.
func (m *Member) destination() protocol.InstanceID {
	for _, id := range []protocol.InstanceID{m.w.route, m.favorite} {
		if slices.Contains(m.crew.ids, id) {
			return id
		}
	}
	return 0
}

// settled reports whether all instances have followed the last membership change of the first one,
// so that the next change may begin.
func (m *Member) settled() bool {
	return len(m.applier.Instances) == 1 || member.Settled(&m.witness.status.Config, m.applier.Configs())
}

// config is the instance's membership as of what is applied.
func (s *memberInstance) config() protocol.Config {
	if in := s.m.applier.Of(s.instance); in != nil {
		return in.Config
	}
	return s.m.applier.Config()
}

// judgeSkip judges that leaders do not skip slots that their logs fill (N4).
func (c *witness) judgeSkip(r *protocol.Record) error {
	if r.Kind != protocol.RecordEntry || r.Entry.Kind != protocol.EntrySkip || c.status.Role != protocol.Leader {
		return nil
	}
	c.m.w.Count(slotsSkipped)
	if tail := c.s.inst.Tail(); tail.End()+1 == r.Entry.Index && r.Entry.Round() <= tail.Round() {
		return fmt.Errorf("N4: instance %d skips to round %d; its log fills %d", c.s.instance, r.Entry.Round(), tail.Round())
	}
	return nil
}

// judgeCut judges that an instance's log is cut only up to a durable snapshot (N5), and given up only
// when no snapshot needs it: the newest may be damaged when it is needed.
func (s *memberInstance) judgeCut(at protocol.Index) {
	if all, err := s.m.snaps.Positions(); at == member.AllIndexes && err == nil && len(all) > 0 {
		f, err := s.m.snaps.Open(all[0])
		if err == nil && !f.Header.Cursor.Retired(s.instance) {
			s.m.w.Violate(s.m.id, fmt.Errorf("N5: the log of instance %d is given up, and the snapshot at position %d needs it", s.instance, all[0]))
		}
	}
	if p := s.m.snapped.Point(s.instance); at > p.Index && !s.m.snapped.Retired(s.instance) {
		s.m.w.Violate(s.m.id, fmt.Errorf("N5: the log of instance %d is cut at %d; the newest snapshot is at %d", s.instance, at, p.Index))
	}
}

// gap says which instance is behind on this member in the global log; "" if none is.
func (m *Member) gap() string {
	if !m.w.set.woven() {
		return ""
	}
	at := m.applier.Cursor()
	for _, s := range m.inForce {
		if w := m.w.court.Weave.Wanted(uint64(s.instance)); uint64(at.Point(s.instance).Index) < w {
			return fmt.Sprintf("instance %d is consumed to %d, wanted is %d; next is round %d of instance %d",
				s.instance, at.Point(s.instance).Index, w, at.Next.Round, at.Next.Instance)
		}
	}
	return ""
}
