package raft

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

// parking is what a follower keeps of a leader's messages because a signal came before its batches.
type parking struct {
	messages []message.Message // of one term, in the order in which they came
	bytes    int
	since    time.Duration // when the first one began to wait
}

// parks keeps a leader's entries if they have to wait.
func (r *Raft) parks(m message.Message) bool {
	if r.lanes == nil {
		return false
	}
	p := &r.parked
	if len(p.messages) == 0 && r.lanes.Unresolved(r.seeLanes(), m) < 0 || m.Context == 0 && len(p.messages) == 0 {
		return false
	}
	if len(p.messages) == 0 {
		p.since, m = r.now, r.takeHead(m)
	}
	bytes := 0
	for i := range m.Entries {
		bytes += m.Entries[i].Bytes()
	}
	if len(p.messages) > 0 && p.bytes+bytes > r.cfg.MaxInflightBytes {
		return true // it is lost, and comes again
	}
	p.messages, p.bytes = append(p.messages, m), p.bytes+bytes
	return true
}

// takeHead takes what comes before the first signal with batches missing, and returns the rest. Signals ride
// with commands, which need not wait for them.
func (r *Raft) takeHead(m message.Message) message.Message {
	n := r.lanes.Unresolved(r.seeLanes(), m)
	if n <= 0 {
		return m
	}
	head, rest := *m.Message, *m.Message
	head.Entries, rest.Entries = m.Entries[:n:n], m.Entries[n:]
	last := &m.Entries[n-1]
	part := *m.Part
	part.Index, part.LogTerm = last.Index, last.Term
	r.appendFrom(message.With(head, *m.Part))
	return message.With(rest, part)
}

// unpark continues with what waited, as far as the batches are here or have been waited for long enough.
func (r *Raft) unpark() {
	if r.lanes == nil {
		return
	}
	p := &r.parked
	for len(p.messages) > 0 {
		m := p.messages[0]
		// Entries that do not follow the log came after entries that were requested, and are sent again with them.
		if m.Term == r.term && r.role == protocol.Follower && m.Index <= r.log.Last {
			if r.lanes.Unresolved(r.seeLanes(), m) >= 0 && r.now < p.since+r.view.Patience() {
				r.out.WakeBy(p.since + r.view.Patience())
				return
			}
			r.appendFrom(m)
		}
		for i := range m.Entries {
			p.bytes -= m.Entries[i].Bytes()
		}
		p.messages, p.since = p.messages[1:], r.now
	}
	*p = parking{}
}
