package node

import (
	"fmt"

	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/protocol"
)

// Judges of repeated work: entries that are sent again although nothing was lost, and logs that are cut beyond a
// snapshot that is being sent to a member.

var (
	fullFrames             = count.New("appends_at_the_limit_of_a_frame", "full frames")
	beyondUncommittedBytes = count.New("proposals_beyond_the_uncommitted_bytes", "proposals beyond the uncommitted bytes")
)

// sentOften bounds how often an entry may be sent to a member without a fault there. A leader may send an entry again
// at every heartbeat while the receiver's disk is busy. Operators tune heartbeats to half of the interval at least.
const sentOften = 8

// waste tracks the entries that a leader sends to others.
type waste struct {
	term  protocol.Term
	sent  map[protocol.MemberID]*sentTo
	costs map[protocol.Index]int64 // of committed entries up to an index, since a start or a sent snapshot
	last  protocol.Index
	// marks are the durable snapshots, ascending. A leader counts the retained entries from the last one before.
	marks []protocol.Index
}

// snapshot records a durable snapshot.
func (u *waste) snapshot(index protocol.Index) {
	if n := len(u.marks); n == 0 || u.marks[n-1] < index {
		u.marks = append(u.marks, index)
	}
}

// mark is the last durable snapshot up to an index, or the index if none is known.
func (u *waste) mark(index protocol.Index) protocol.Index {
	for i := len(u.marks) - 1; i >= 0; i-- {
		if u.marks[i] <= index {
			return u.marks[i]
		}
	}
	return index
}

// sentTo counts how often each entry was sent to a member since the last fault.
type sentTo struct {
	wrongs int
	count  map[protocol.Index]int
	// streaming: a snapshot at base is being sent.
	streaming bool
	base      protocol.Index
}

func (u *waste) to(id protocol.MemberID) *sentTo {
	t := u.sent[id]
	if t == nil {
		t = &sentTo{count: map[protocol.Index]int{}}
		u.sent[id] = t
	}
	return t
}

// follow records and judges a step of the core.
func (u *waste) follow(c *Witness, in protocol.Input, out *protocol.Effects) error {
	if u.term != c.Latest.Term || u.sent == nil {
		u.term, u.sent = c.Latest.Term, map[protocol.MemberID]*sentTo{}
	}
	for i := range out.Commit {
		e := &out.Commit[i]
		if _, known := u.costs[e.Index-1]; !known {
			u.costs = map[protocol.Index]int64{} // a snapshot replaced the entries before
		}
		u.costs[e.Index] = u.costs[e.Index-1] + intake.EntryCost(e)
		u.last = e.Index
	}
	for _, list := range [...][]*protocol.Message{out.Send, out.Release} {
		for _, m := range list {
			if err := u.sends(c, m); err != nil {
				return err
			}
		}
	}
	for i := range out.Reject {
		if out.Reject[i].Reason == protocol.ReasonOverloaded {
			c.Member.Env.Count(beyondUncommittedBytes)
		}
	}
	for _, to := range out.Snapshots {
		t := u.to(to)
		t.streaming, t.base = true, c.Member.Applied(c.Part.Instance)
	}
	switch in := in.(type) {
	case protocol.SnapshotSent:
		u.to(in.To).streaming = false
	case protocol.Compact:
		return u.cuts(c, in.Index)
	}
	return nil
}

// sends checks that entries are not sent often while nothing is lost.
func (u *waste) sends(c *Witness, m *protocol.Message) error {
	w := c.Member.Env
	if c.Part.Judges.Core.Codec.Of(m.Type).Brings != protocol.BringsLog {
		return nil
	}
	bytes := 0
	for i := range m.Entries {
		bytes += m.Entries[i].Bytes()
	}
	if bytes >= c.Member.Own.Core.MaxFrameBytes {
		w.Count(fullFrames)
	}
	if w.Set.Reorder {
		return nil
	}
	t := u.to(m.To)
	if wrongs := w.wrongs(c.Member, w.Member(m.To), m.Instance); wrongs != t.wrongs {
		t.wrongs = wrongs
		clear(t.count)
	}
	limit := sentOften
	if w.Set.Quickest > 0 {
		limit *= 2
	}
	for i := range m.Entries {
		at := m.Entries[i].Index
		if t.count[at]++; t.count[at] > limit {
			return fmt.Errorf("entry %d was sent to %s %d times although nothing was lost", at, m.To, t.count[at])
		}
	}
	return nil
}

// wrongs counts the faults between two members so far. A fault that persists counts again at every call. Messages
// that a member refuses because it is behind with applying count too.
func (w *Environment) wrongs(a, b *Member, instance protocol.InstanceID) int {
	there, back := w.Net.Link(a.ID, b.ID), w.Net.Link(b.ID, a.ID)
	if w.hampered(a) || w.hampered(b) || !b.Up || b.Doubt != nil {
		there.Wrongs++
	}
	n := there.Wrongs + back.Wrongs + a.Life + b.Life
	if b.Up {
		if s := b.Of(instance); s != nil && !s.ended {
			n += int(s.Inst.HeldUp())
		}
	}
	return n
}

// hampered reports whether a member or its disk is slower than it should be.
func (w *Environment) hampered(m *Member) bool {
	return m.Slow || m.Disk.Full || max(m.Still(), m.Stalled, m.Sluggish) > w.Now()
}

// cuts checks that a leader does not cut its log beyond a snapshot that is being sent to a member, if the member is
// active, and the entries since the snapshot are within the retained size. The slack is for marks, which come with
// snapshots. Entries that the leader cannot read are of no use to the member: the leader may cut after them.
func (u *waste) cuts(c *Witness, index protocol.Index) error {
	s := c.Member.Own
	several := s.Instances > 0 || len(c.Member.InForce) > 1 // one snapshot is for all of them then
	if c.Latest.Role != protocol.Leader || several || s.Durable || index <= c.Member.health.Harmed(c.Part.Instance) {
		return nil
	}
	slack := 12*int64(s.SnapshotBytes) + 2*int64(s.Padding+s.BatchBytes+s.Bodies.Max)
	st := c.Core.Status()
	for i := range st.Peers {
		p := &st.Peers[i]
		t := u.sent[p.ID]
		if at := c.Member.Exchange.Streaming(p.ID, c.Part.Instance); t != nil && at > t.base {
			t.base = at // the view was created only now
		}
		from, known := u.costs[max(u.mark(t.start()), 1)]
		if t == nil || !t.streaming || !p.Active || !p.Snapshot || !known || index <= t.base {
			continue
		}
		if since := u.costs[u.last] - from; since+slack <= s.KeepLogBytes {
			return fmt.Errorf("the log is cut at %d while %s is sent a snapshot at %d; %d bytes since would be kept", index, p.ID, t.base, since)
		}
	}
	return nil
}

func (t *sentTo) start() protocol.Index {
	if t == nil {
		return 0
	}
	return t.base
}
