package body

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// HolderCount counts who holds a body durably, to find out whether this member's whole copy may
// become its row. In no other way does a member ever hold less of a committed body than before
// (the rule Prune of docs/internals/craft.md, 2.4, deletion obligation D2). It is a pure rule.
type HolderCount struct {
	Ref     protocol.BodyRef
	context uint64
	Until   time.Duration
	Own     protocol.Form // what this member will hold
	voters  []protocol.MemberID
	self    protocol.MemberID
	forms   []protocol.Form // of voters
	Mutant  mutant.Name     // code-trim-uncounted
}

// NewHolderCount begins to count with this member alone, as if it held its row already. It returns nil
// where rows do not count: while voters change, if this member does not vote, or if it is to hold
// the body whole.
func NewHolderCount(ref protocol.BodyRef, context uint64, until time.Duration, c *protocol.Config,
	self protocol.MemberID) *HolderCount {
	own, member := OwnForm(c, self, ref.K)
	voters := c.Voters()
	at := slices.Index(voters, self)
	if _, row := own.Row(); !member || at < 0 || c.Joint() || !row {
		return nil
	}
	n := &HolderCount{Ref: ref, context: context, Until: until, Own: own, voters: voters, self: self,
		forms: make([]protocol.Form, len(voters))}
	n.forms[at] = own
	return n
}

// Questions asks the other voters what they hold, without bytes.
func (n *HolderCount) Questions() (out []*protocol.Message) {
	for _, id := range n.voters {
		if id != n.self {
			out = append(out, &protocol.Message{
				Type: protocol.MsgFetch, Instance: n.Ref.Instance, From: n.self, To: id, Context: n.context,
				Holdings: []protocol.Holding{{Index: n.Ref.Index, Term: n.Ref.Term, Form: protocol.FormNone}},
			})
		}
	}
	return out
}

// Receive takes in an answer. What its sender does not know to be committed may go there again, so it does
// not count.
func (n *HolderCount) Receive(m *protocol.Message) {
	at := slices.Index(n.voters, m.From)
	if m.Context != n.context || m.Reject || at < 0 || m.From == n.self || len(m.Holdings) != 1 {
		return
	}
	if h := m.Holdings[0]; h.Index == n.Ref.Index && h.Term == n.Ref.Term && m.Commit >= h.Index {
		n.forms[at] = h.Form
	}
}

// Enough reports whether |A|+|B| ≥ N−q+k with this member among B. Then the body survives any
// minority, even if others cut their copies at the same time.
func (n *HolderCount) Enough() bool {
	whole, rows := 0, quorum.Rows{}
	for _, f := range n.forms {
		if f == protocol.FormWhole {
			whole++
		}
		rows.Add(f)
	}
	count := len(n.voters)
	return n.Mutant == member.MutantTrimUncounted || whole+rows.Len() >= count-quorum.Size(count)+int(n.Ref.K)
}
