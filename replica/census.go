package replica

import (
	"slices"
	"time"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// census counts who holds a body durably, to find out whether this member's whole copy may
// become its row: the only way in which a member ever holds less of a committed body than
// before (the rule Prune of SPECS §2.4, deletion obligation D2). It is a pure rule.
type census struct {
	ref     protocol.BodyRef
	context uint64
	until   time.Duration
	own     protocol.Form // what this member will hold
	voters  []protocol.MemberID
	self    protocol.MemberID
	forms   []protocol.Form // of voters
}

// newCensus begins to count with this member alone, as if it held its row already. It is
// nil where rows do not count: while voters change, or who does not vote.
func newCensus(ref protocol.BodyRef, context uint64, until time.Duration, c *protocol.Config, self protocol.MemberID) *census {
	own, member := OwnForm(c, self, ref.K)
	voters := c.Voters()
	at := slices.Index(voters, self)
	if !member || at < 0 || c.Joint() || ref.K < 2 {
		return nil
	}
	n := &census{ref: ref, context: context, until: until, own: own, voters: voters, self: self, forms: make([]protocol.Form, len(voters))}
	n.forms[at] = own
	return n
}

// questions asks the other voters what they hold, without bytes.
func (n *census) questions() (out []*protocol.Message) {
	for _, id := range n.voters {
		if id != n.self {
			out = append(out, &protocol.Message{
				Type: protocol.MsgFetch, Instance: n.ref.Instance, From: n.self, To: id, Context: n.context,
				Holdings: []protocol.Holding{{Index: n.ref.Index, Term: n.ref.Term, Form: protocol.FormNone}},
			})
		}
	}
	return out
}

// receive takes in an answer.
func (n *census) receive(m *protocol.Message) {
	at := slices.Index(n.voters, m.From)
	if m.Context != n.context || m.Reject || at < 0 || m.From == n.self || len(m.Holdings) != 1 {
		return
	}
	if h := m.Holdings[0]; h.Index == n.ref.Index && h.Term == n.ref.Term {
		n.forms[at] = h.Form
	}
}

// enough reports whether |A|+|B| ≥ N−q+k with this member among B: then the body survives
// any minority, whoever else cuts its copy at the same time.
func (n *census) enough() bool {
	whole, rows := 0, quorum.Rows{}
	for _, f := range n.forms {
		if f == protocol.FormWhole {
			whole++
		}
		rows.Add(f)
	}
	count := len(n.voters)
	return whole+rows.Len() >= count-quorum.Size(count)+int(n.ref.K)
}
