package fault

import (
	"slices"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Core draws the members that run in the second phase: all, or some that can decide in every configuration that may
// still be active.
func (w *World) Core() []*node.Member {
	alive := slices.DeleteFunc(slices.Clone(w.Members), func(m *node.Member) bool { return m.Gone || m.Strange() })
	if w.Chance(0.5) || anySick(w) { // while a state is damaged, no other member may be missing
		return alive
	}
	for range len(alive) {
		i := w.Pick(len(alive))
		less := slices.Delete(slices.Clone(alive), i, i+1)
		if w.Decisive(less) && !w.Joins(alive[i]) && !isolatesFounder(less) {
			alive = less
		}
	}
	return alive
}

// isolatesFounder reports whether these members include a founder that does not know the log's lineage, and no founder
// that knows it. Such a founder accepts links of founders only.
func isolatesFounder(members []*node.Member) bool {
	var unaware, aware, joined bool
	for _, m := range members {
		if m.Running == nil || !m.HasLog() {
			continue
		}
		knows := m.Handshakes.Lineage() != 0
		unaware = unaware || !m.Join && !knows
		aware = aware || !m.Join && knows
		joined = joined || m.Join && knows
	}
	return unaware && joined && !aware
}

// Joins reports whether a leader may promote a member to voter at any moment. It may have received a message from the
// member just before the member stopped.
func (w *World) Joins(m *node.Member) bool {
	return slices.ContainsFunc(w.Members, func(o *node.Member) bool {
		return o.Up && slices.ContainsFunc(o.InForce, func(s *node.MemberInstance) bool {
			x := s.Witness.Latest.Config.Find(m.ID)
			return x != nil && x.Joining
		})
	})
}

// Decisive reports whether the members can elect and decide in every configuration that may become active, and hold
// enough of every live body.
func (w *World) Decisive(members []*node.Member) bool {
	if len(members) < w.Set.decides() || !Recoverable(w, members) {
		return false
	}
	for _, c := range w.Court.All {
		voters := slices.Concat(c.Ledger.Configurations(), w.yetToFollow(c), w.proposed(c))
		if !w.decide(members, c, voters) {
			return false
		}
	}
	return true
}

// decide reports whether the members can elect and decide an instance with each of these sets of voters.
func (w *World) decide(members []*node.Member, c *judge.Instance, voters []*check.Voters) bool {
	lives := func(id uint64) bool {
		return slices.ContainsFunc(members, func(m *node.Member) bool { return uint64(m.ID) == id })
	}
	return !slices.ContainsFunc(append(w.Set.possibleQuorums(), c.Ledger.Quorums), func(quorums check.Quorums) bool {
		return slices.ContainsFunc(voters, func(v *check.Voters) bool {
			return !quorums.Reads(v, lives) || !quorums.Writes(v, lives)
		})
	})
}

// MayPromote reports whether the members can elect and decide once a joining member is a voter. If not, a leader does
// not make it one: with quorums of a grid, those of one more voter may include members that are down.
func (w *World) MayPromote(members []*node.Member, config *protocol.Config, id protocol.MemberID) bool {
	next, reason := config.Changed([]protocol.Change{{Kind: protocol.AddVoter, Member: protocol.Member{ID: id}}})
	return reason == protocol.ReasonNone &&
		w.decide(members, w.Court.First, []*check.Voters{judge.VotersOf(&next)})
}

// proposed returns the voters of configurations that are in no log yet: those that members propose, or are about to
// propose for an operator.
func (w *World) proposed(c *judge.Instance) (voters []*check.Voters) {
	for _, m := range w.Members {
		if !m.Up {
			continue
		}
		for _, s := range m.InForce {
			if s.Judges != c {
				continue
			}
			st := s.Witness.Core.Status()
			if st.Proposed != nil {
				voters = append(voters, judge.VotersOf(st.Proposed))
			}
			for _, e := range m.Executing {
				if next, reason := st.Config.Changed(e.Op.Changes); reason == protocol.ReasonNone {
					voters = append(voters, judge.VotersOf(&next))
				}
			}
		}
	}
	return voters
}

// yetToFollow returns the voters of memberships that the first instance has decided and another instance has not
// adopted yet. It may adopt each of them: removals do not wait for one another.
func (w *World) yetToFollow(c *judge.Instance) (voters []*check.Voters) {
	if c.Ended || c == w.Court.First {
		return nil
	}
	has := c.Last()
	for _, d := range slices.Backward(w.Court.First.Configs) {
		if d.Config.SameMembers(has) {
			break
		}
		voters = append(voters, judge.VotersOf(&d.Config))
	}
	return voters
}
