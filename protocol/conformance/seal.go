package conformance

import "github.com/braidlog/braid/protocol"

// Seals of the log, see protocol.Sealed. The judge checks what a core must not do behind one.

// Seal proposes on a member to seal the log under its configuration, in the next version of its profile. Unless it is
// forwarded, a member that cannot propose it itself drops it.
func (net *Net) Seal(id protocol.MemberID, forwarded bool) {
	s := net.Node(id).Core.Status()
	members := s.Config.Clone()
	members.Outgoing = nil
	in := protocol.Propose{Under: &s.ConfigIndex, Entries: []protocol.Entry{protocol.NewSeal(protocol.Seal{
		Profile: protocol.Profile{Version: s.Config.Profile.Version + 1, Core: "another"}, Members: members,
		Instances: 1,
	})}}
	if in.Entries[0].CheckProposal() != nil { // the log has no profile
		seal := protocol.Seal{Profile: protocol.Profile{Version: 2, Core: "another"}, Members: members, Instances: 1}
		in.Entries[0] = protocol.NewSeal(seal)
	}
	if forwarded {
		in.Under = nil
	}
	net.Step(id, in)
}

// Verdict gives a member the verdict of the oldest seal that is decided anywhere and does not do nothing.
func (net *Net) Verdict(id protocol.MemberID, counts bool) {
	n := net.Node(id)
	at := net.judge.sealed.Index
	for i := range net.judge.void {
		at = max(at, i)
	}
	if at == 0 {
		net.t.Fatalf("member %s gets the verdict of no seal", id)
	}
	if n.closed = n.closed || counts; !counts {
		net.judge.dismiss(at)
	}
	net.Step(id, protocol.Sealed{Index: at, Counts: counts})
}

// chaosSeals seals the log now and then. The seals do not count, which the members learn at different times.
func (net *Net) chaosSeals(d *dice) {
	if l := net.Leader(); l != nil && d.roll(10) {
		net.Seal(l.ID, false)
	}
	if n := d.node(net); d.roll(20) {
		net.verdicts(n)
	}
}

// verdicts tells a member that the seals that it has applied do not count.
func (net *Net) verdicts(n *Node) {
	j := &net.judge
	for at := n.judged + 1; at <= n.Applied && n.Core != nil; at++ {
		if e, ok := j.chosen[at]; ok && e.Kind == protocol.EntrySeal && e.SealedAt() <= n.Applied {
			j.dismiss(at)
			n.judged = at
			net.Step(n.ID, protocol.Sealed{Index: at})
		}
	}
}

// covered takes in that there is a snapshot of an index: with it cores start that do not know of the seals before it.
func (j *judge) covered(to protocol.Index) {
	for j.sealed.Index > 0 && j.sealed.Index <= to {
		j.dismiss(j.sealed.Index)
	}
}

// dismiss takes in that a seal does not count. The next one may.
func (j *judge) dismiss(at protocol.Index) {
	j.void[at] = true
	if j.sealed.Index != at {
		return
	}
	j.sealed = protocol.Entry{}
	for i := at + 1; i <= j.highest; i++ {
		if e, ok := j.chosen[i]; ok && e.Kind == protocol.EntrySeal && !j.void[i] {
			j.sealed = e
			return
		}
	}
}

// seals judges the effects of a member where the log is sealed.
func (j *judge) seals(n *Node, e *protocol.Effects, codec *protocol.Codec) {
	for _, r := range e.Reads {
		if n.closed || j.sealed.Index > 0 && r.Index >= j.sealed.SealedAt() {
			j.t.Fatalf("member %s may read at %d, but the log is sealed at %d", n.ID, r.Index, j.sealed.SealedAt())
		}
	}
	if !n.closed {
		return
	}
	for _, list := range [][]*protocol.Message{e.Send, e.Release} {
		for _, m := range list {
			if c := codec.ClaimsOf(m); c.Vote != 0 || c.Stored > 0 || c.Holds {
				j.t.Fatalf("member %s sends %s, but its log is closed", n.ID, codec.Name(m.Type))
			}
		}
	}
}

// behindSeal judges an entry that is decided: behind a seal that may count there are only no-ops, and what was proposed
// in an earlier term than the seal. A leader that finds both in what others have accepted proposes both again.
func (j *judge) behindSeal(n *Node, e *protocol.Entry) {
	switch {
	case j.void[e.Index]:
	case e.Kind == protocol.EntrySeal && j.sealed.Index == 0:
		j.sealed = *e
	case j.sealed.Index == 0 || e.Index <= j.sealed.SealedAt():
	case e.Kind != protocol.EntryNoop && e.Kind != protocol.EntryEmpty && e.Term >= j.sealed.Term:
		j.t.Fatalf("member %s commits %d, %s, behind the seal %d", n.ID, e.Index, e.Kind, j.sealed.Index)
	}
}
