package cluster

import (
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// seal proposes an entry that seals the log, and waits until what follows it has begun. It may propose several times:
// at most one seal to a version counts. The proposer expects the membership of the moment, so a seal is proposed only
// while all instances have it. An entry that comes into the log before it, and changes that, makes it one that does not
// count; then it is proposed again with the other membership.
func (e *Execution) seal(v *MemberView) ExecutionStep {
	first, s := v.first(), e.Op.Seal
	at, configs := v.Applied.At()
	settled := v.settled() && !first.Config.Joint()
	earlier := mayNotSwitch(&first.Config, e.cfg.Self, v.Version)
	switch {
	case s.Instances < 1 || s.Instances > order.MaxInstances || s.Instances > 1 && !s.Merged || at.Keyed:
		return e.refuse(protocol.ReasonInstances, first.Leader)
	case !s.Profile.Sealed():
		return e.refuse(protocol.ReasonSettings, first.Leader)
	case configs[0].Profile.Version == 0:
		return e.refuse(protocol.ReasonNoProfile, first.Leader)
	case began(&e.cfg, &s, v): // a version never comes twice, so it does not matter whether this member leads
		return e.done()
	case configs[0].Profile.Version+1 != s.Profile.Version && (e.told || settled):
		return e.refuse(protocol.ReasonProfile, first.Leader)
	case !e.told && !settled:
		return e.refuse(protocol.ReasonChangePending, first.Leader)
	case !e.told && earlier:
		return e.refuse(protocol.ReasonEarlier, first.Leader)
	case settled && !fits(&s, &first.Config):
		return e.refuse(protocol.ReasonQuorums, first.Leader)
	}
	s.Members = first.Config.Clone()
	in := protocol.Propose{Entries: []protocol.Entry{protocol.NewSeal(s)}, Under: &first.ConfigIndex}
	return e.propose(v, in, settled && !earlier)
}

// fits reports whether the quorums behind a seal are possible with a membership, and intersect: now, and after each
// member that is joining becomes a voter. Otherwise that member would stay a learner. It would as well if a core that
// keeps bodies at their deciders, as ISS does, could not carry them to the next voters.
func fits(s *protocol.Seal, c *protocol.Config) bool {
	system := quorum.Setting.In(s.Profile.Values)
	return system.Fits(len(c.Voters()), quorum.ZonesOf(c)) == nil && system.Admits(c, true)
}

// began reports whether this member has applied everything before what a seal begins.
func began(cfg *member.OperationConfig, s *protocol.Seal, v *MemberView) bool {
	at, configs := v.Applied.At()
	p := &configs[0].Profile
	return s.Brought(p, len(at.Points), !cfg.Reshapes(p, at.Merged()))
}
