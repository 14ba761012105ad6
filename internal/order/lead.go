package order

import "github.com/braidlog/braid/protocol"

// Lead is the leader of the global log, with its term, as etcd's API and operators know them. The order determines
// the instance from which they follow.
type Lead struct {
	// Instance is the instance of that leader. Membership changes, transfers and other operations begin with it.
	Instance protocol.InstanceID
	Leader   protocol.MemberID // 0: none is known
	// Term is the one in which it leads. Two members never lead in the same term.
	Term protocol.Term
	// Open: every instance is led, see protocol.Status.Led. While one is not, no new entry gets a place in the global
	// log.
	Open bool
}

// Lead returns the leader of the global log. instances are the active ones, ascending, with their state on this
// member. Merged instances are led by the leader of the first: it is never retired, and the membership is changed
// there (docs/internals/niagara.md, 3.5).
func (c *Cursor) Lead(instances []*protocol.Status) Lead {
	if len(instances) == 0 {
		return Lead{}
	}
	first := instances[0]
	lead := Lead{Instance: first.Instance, Leader: first.Leader, Term: first.Term, Open: true}
	for _, st := range instances {
		lead.Open = lead.Open && st.Led()
	}
	return lead
}
