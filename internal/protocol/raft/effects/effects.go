package effects

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/raftlog"
	"github.com/braidlog/braid/protocol"
)

// Out is what a step gives out.
type Out struct {
	*protocol.Effects // of the step in progress
	Disk              *raftlog.Disk
	Instance          protocol.InstanceID
	Self              protocol.MemberID
}

func (o *Out) stamp(m message.Message) *protocol.Message {
	m.Instance, m.From = o.Instance, o.Self
	return m.Message
}

// Post lets a message leave now.
func (o *Out) Post(m message.Message) { o.Send = append(o.Send, o.stamp(m)) }

// PostDurable lets a message leave when everything written so far is durable.
func (o *Out) PostDurable(m message.Message) {
	o.Seq = o.Disk.Touch()
	o.Release = append(o.Release, o.stamp(m))
}

// Unsent reports whether a message still waits to be sent.
func (o *Out) Unsent(m message.Message) bool {
	const far = 16 // more messages than that came after it only if there are many peers
	for i := len(o.Send) - 1; m.Message != nil && i >= max(0, len(o.Send)-far); i-- {
		if o.Send[i] == m.Message {
			return true
		}
	}
	return false
}

// Answer lets an answer leave that claims nothing about entries. It leaves now, unless it shows a
// term or vote that is not durable yet.
func (o *Out) Answer(m message.Message) {
	if o.Disk.StateDurable() {
		o.Post(m)
		return
	}
	o.PostDurable(m)
}

// Record writes a record.
func (o *Out) Record(rec protocol.Record) {
	o.Seq = o.Disk.Touch()
	o.Disk.Wrote = true
	o.Persist = append(o.Persist, rec)
}

// Entry writes an entry of the log.
func (o *Out) Entry(e *protocol.Entry) {
	o.Seq = o.Disk.Touch()
	o.Disk.Wrote = true
	o.Persist = append(o.Persist, protocol.Record{Kind: protocol.RecordEntry, Entry: *e})
}

// RejectProposal refuses a proposal of this member. No one waits for one without an id.
func (o *Out) RejectProposal(id protocol.ProposalID, reason protocol.Reason, leader protocol.MemberID) {
	if id != (protocol.ProposalID{}) {
		o.Reject = append(o.Reject, protocol.Rejection{ID: id, Reason: reason, Leader: leader})
	}
}

// Refuse refuses a question if someone waits for the answer.
func (o *Out) Refuse(context uint64, reason protocol.Reason, leader protocol.MemberID) {
	if context != 0 {
		o.Reject = append(o.Reject, protocol.Rejection{Context: context, Reason: reason, Leader: leader})
	}
}

// WakeBy has the core woken at an instant, or sooner.
func (o *Out) WakeBy(at time.Duration) {
	if w := &o.WakeAt; *w == 0 || *w > at {
		*w = at
	}
}
