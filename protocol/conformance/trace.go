package conformance

import (
	"fmt"
	"strings"

	"github.com/braidlog/braid/protocol"
)

func (net *Net) tracef(format string, args ...any) {
	if net.Trace != nil {
		net.Trace(fmt.Sprintf(format, args...))
	}
}

func (net *Net) traceParcel(how string, p Parcel) {
	if net.Trace == nil {
		return
	}
	if p.Want != nil {
		net.tracef("%s%s's wish for the body of %d/%d", how, p.To, p.Want.Index, p.Want.Term)
		return
	}
	if p.Base != nil {
		net.tracef("%s%s→%s Snapshot t%d base %s", how, p.From, p.To, p.Term, describeBase(p.Base))
		return
	}
	net.tracef("%s%s", how, net.Describe(p.Message))
}

// traceEffects writes a member's effects, except for messages, which are traced on arrival.
func (net *Net) traceEffects(n *Node) {
	if net.Trace == nil {
		return
	}
	e := &n.eff
	if e.Changed {
		s := n.Core.Status()
		leader := "nobody"
		if s.Leader != 0 {
			leader = s.Leader.String()
		}
		seal := ""
		if s.Sealed != protocol.SealNone {
			seal = ", seal " + s.Sealed.String()
		}
		net.tracef("  %s is %s t%d, leader %s, %s%s", n.ID, s.Role, s.Term, leader, DescribeConfig(&s.Config), seal)
	}
	var persist []string
	for i := range e.Persist {
		persist = append(persist, describeRecord(&e.Persist[i]))
	}
	if len(persist) > 0 {
		net.tracef("  %s writes %s", n.ID, strings.Join(persist, " "))
	}
	if e.Install != nil {
		net.tracef("  %s installs the snapshot at %d/%d", n.ID, e.Install.Index, e.Install.Term)
	}
	if len(e.Commit) > 0 {
		net.tracef("  %s commits %s", n.ID, describeEntries(e.Commit))
	}
	for _, id := range e.Accepted {
		net.tracef("  %s has proposal %d accepted", n.ID, id.Seq)
	}
	for _, r := range e.Reads {
		net.tracef("  %s may serve read %d at %d", n.ID, r.Context, r.Index)
	}
	for _, r := range e.Reject {
		what := fmt.Sprintf("question %d", r.Context)
		if r.Context == 0 {
			what = fmt.Sprintf("proposal %d", r.ID.Seq)
		}
		net.tracef("  %s refuses %s: %s, leader %s", n.ID, what, r.Reason, r.Leader)
	}
	for _, w := range e.Want {
		net.tracef("  %s wants the body of %d/%d", n.ID, w.Index, w.Term)
	}
	if e.Suspect != 0 && net.Merged {
		net.tracef("  %s suspects %s", n.ID, e.Suspect)
	}
	for _, to := range e.Snapshots {
		net.tracef("  %s is to send %s a snapshot", n.ID, to)
	}
}

func describeRecord(r *protocol.Record) string {
	switch r.Kind {
	case protocol.RecordState:
		return fmt.Sprintf("state(t%d vote %s commit %d)", r.State.Term, r.State.Vote, r.State.Commit)
	case protocol.RecordBase:
		return fmt.Sprintf("base(%s)", describeBase(r.Base))
	case protocol.RecordBody:
		return fmt.Sprintf("body(%s)", describeEntry(&r.Entry))
	case protocol.RecordCell:
		if r.Entry.Form != protocol.FormNone {
			return fmt.Sprintf("cell(%d, %d bytes) and its body", r.Cell.Number, len(r.Cell.Bytes()))
		}
		return fmt.Sprintf("cell(%d, %d bytes)", r.Cell.Number, len(r.Cell.Bytes()))
	case protocol.RecordDrop:
		return fmt.Sprintf("drop(%d)", r.Cell.Number)
	}
	return describeEntry(&r.Entry)
}

func describeBase(b *protocol.Base) string {
	s := fmt.Sprintf("%d/%d", b.Index, b.Term)
	if b.Round > 0 {
		s += fmt.Sprintf(" round %d", b.Round)
	}
	return s
}

func describeEntry(e *protocol.Entry) string {
	s := fmt.Sprintf("%d/%d", e.Index, e.Term)
	if e.Index == 0 {
		s = "new"
	}
	switch e.Kind {
	case protocol.EntryNoop:
		s += ":noop"
	case protocol.EntryConfig:
		s += ":config"
	case protocol.EntrySkip:
		s += fmt.Sprintf(":skip to %d", e.Round())
	case protocol.EntryReshape:
		s += fmt.Sprintf(":reshape to %d", e.Instances())
	case protocol.EntrySignal:
		s += ":signal"
	case protocol.EntryGeneration:
		s += fmt.Sprintf(":generation %d", e.Generation())
	case protocol.EntrySeal:
		if s += ":seal"; e.SealedAt() > e.Index {
			s += fmt.Sprintf(" at %d", e.SealedAt())
		}
	case protocol.EntryEmpty:
		s += fmt.Sprintf(":empty value of %s", e.ID.Session.Member)
	case protocol.EntryLane:
		s += fmt.Sprintf(":lane of %s opens", e.ID.Session.Member)
	}
	if r, ok := e.Range(); ok {
		s += fmt.Sprintf(":lane of %s %d…%d", r.Lane.Member, r.From, r.To)
	}
	if e.K == 1 && e.Form == protocol.FormWhole {
		s += ":body"
	} else if e.BodySize > 0 {
		s += fmt.Sprintf(":%s of k=%d", e.Form, e.K)
	}
	return s
}

// describeHoldings writes the forms of entries' bodies, or the requested ones.
func describeHoldings(hs []protocol.Holding, question bool) string {
	var parts []string
	for _, h := range hs {
		s := fmt.Sprintf("%d/%d", h.Index, h.Term)
		if !question {
			s += ":" + h.Form.String()
		}
		parts = append(parts, s)
	}
	return fmt.Sprintf(" {%s}", strings.Join(parts, " "))
}

func plain(e *protocol.Entry) bool {
	_, ranged := e.Range()
	return e.Kind.Commands() && e.BodySize == 0 && !ranged
}

// describeEntries writes long runs of batches as one.
func describeEntries(es []protocol.Entry) string {
	var parts []string
	for i := 0; i < len(es); {
		j := i
		for j+1 < len(es) && plain(&es[j+1]) && plain(&es[i]) && es[j+1].Term == es[i].Term {
			j++
		}
		if j-i > 1 {
			parts = append(parts, fmt.Sprintf("%d…%d/%d", es[i].Index, es[j].Index, es[i].Term))
		} else {
			j = i
			parts = append(parts, describeEntry(&es[i]))
		}
		i = j + 1
	}
	return strings.Join(parts, " ")
}

// Describe writes a message in the form of scripts: entries and places in the log as index/term.
func (net *Net) Describe(m *protocol.Message) string {
	s := fmt.Sprintf("%s→%s %s", m.From, m.To, net.codec.Name(m.Type))
	if m.Term != 0 {
		s += fmt.Sprintf(" t%d", m.Term)
	}
	if part := net.codec.PartOf(m); part != "" {
		s += " " + part
	}
	if len(m.Entries) > 0 || net.codec.Of(m.Type).Brings != protocol.BringsNothing {
		s += fmt.Sprintf(" [%s]", describeEntries(m.Entries))
	}
	if m.Commit > 0 {
		s += fmt.Sprintf(" commit %d", m.Commit)
	}
	if len(m.Holdings) > 0 {
		s += describeHoldings(m.Holdings, !net.codec.ClaimsOf(m).Holds)
	}
	if m.Reject {
		s += ": no"
	}
	return s
}

// DescribeConfig writes a configuration: voters, learners in parentheses, and outgoing
// voters.
func DescribeConfig(c *protocol.Config) string {
	var parts []string
	for i := range c.Members {
		if c.Members[i].Learner {
			parts = append(parts, fmt.Sprintf("(%s)", c.Members[i].ID))
		} else {
			parts = append(parts, c.Members[i].ID.String())
		}
	}
	s := "members " + strings.Join(parts, " ")
	if len(c.Outgoing) > 0 {
		s += fmt.Sprintf(" leaving %v", c.Outgoing)
	}
	if k := c.MaxRows(); k > 0 {
		var ids []protocol.MemberID
		for i := range c.Members {
			if c.Members[i].WholeAbove > 0 {
				ids = append(ids, c.Members[i].ID)
			}
		}
		s += fmt.Sprintf(" whole above k=%d %v", k, ids)
	}
	return s
}
