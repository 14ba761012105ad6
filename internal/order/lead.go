package order

import "github.com/braidlog/braid/protocol"

// Lead tells which member leads the global log: the one leader and the one term that etcd's API and
// operators know. From which instances they follow is the order's to say.
type Lead struct {
	// Instance is the one whose leader it is. Membership changes, transfers and other operations
	// begin with that leader.
	Instance protocol.InstanceID
	Leader   protocol.MemberID // 0: none is known
	// Term is the one in which it leads. Two members never lead in the same term.
	Term protocol.Term
	// Open: every instance has a leader. While one has none, nothing new gets a place in the global
	// log.
	Open bool
}

// Lead tells which member leads the global log. instances are those active, ascending, as they
// stand on this member. Woven instances are led by the leader of the first: it is never retired,
// and the membership is changed there (docs/internals/niagara.md, 3.5).
func (c *Cursor) Lead(instances []*protocol.Status) Lead {
	if len(instances) == 0 {
		return Lead{}
	}
	first := instances[0]
	lead := Lead{Instance: first.Instance, Leader: first.Leader, Term: first.Term, Open: true}
	for _, st := range instances {
		lead.Open = lead.Open && st.Leader != 0
	}
	return lead
}
