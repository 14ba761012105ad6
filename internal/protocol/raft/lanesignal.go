package raft

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// On the wire a lane's group need not have its batches, because its member sends them too. A leader sends a signal,
// which names the range and its digest. The follower makes the group of what it holds, and continues as if the group
// had arrived. So a member that acknowledges it has all of it. If it is missing something it waits a little, and then
// asks for the group itself.

// signal returns a group's signal. Several followers get the same.
func (l *laneLeading) signal(e *protocol.Entry) protocol.Entry {
	s := &l.signals[int(e.Index)%len(l.signals)]
	if s.Index != e.Index || s.Term != e.Term {
		*s = protocol.NewSignal(e)
	}
	return *s
}

// signals puts signals in the place of groups that p can make itself. A frame takes the signals that follow
// it, too: they are small, and would need frames of their own if frames have few entries.
func (r *Raft) signals(p *tracker.Progress, entries []protocol.Entry) (out []protocol.Entry, count signaled) {
	if r.lanes == nil {
		return entries, count
	}
	for i := range entries {
		e := &entries[i]
		switch _, ok := e.Range(); {
		case !ok:
		case !r.signalled(p, e):
			count.groups, count.whole = count.groups+1, count.whole+uint64(e.Bytes())
		default:
			if out == nil {
				out = append(out, entries...)
			}
			out[i] = r.signalOf(e, &count)
		}
	}
	if out == nil {
		out = slices.Clip(entries)
	}
	return r.moreSignals(p, out, &count), count
}

// signalled reports whether p gets a signal of a group.
func (r *Raft) signalled(p *tracker.Progress, e *protocol.Entry) bool {
	return p.Phase == tracker.Stream && e.Index >= r.lead.first && e.Index > p.Raw && !slices.Contains(r.lanes.lead.recoded, e.Index)
}

// signalOf returns a group's signal, and counts what it spares.
func (r *Raft) signalOf(e *protocol.Entry, count *signaled) protocol.Entry {
	s := r.lanes.lead.signal(e)
	count.spared += uint64(max(0, e.Bytes()-s.Bytes()))
	return s
}

// moreSignals adds the signals that follow a frame, as many as fit.
func (r *Raft) moreSignals(p *tracker.Progress, frame []protocol.Entry, count *signaled) []protocol.Entry {
	if len(frame) == 0 || len(frame) >= len(r.lanes.lead.signals) {
		return frame
	}
	bytes := 0
	for i := range frame {
		bytes += frame[i].Bytes()
	}
	for i := frame[len(frame)-1].Index + 1; i <= r.log.Last && len(frame) < len(r.lanes.lead.signals); i++ {
		e := r.log.At(i)
		if _, ok := e.Range(); !ok || !r.signalled(p, e) {
			break
		}
		s := r.lanes.lead.signal(e)
		if bytes += s.Bytes(); bytes > r.cfg.MaxFrameBytes {
			break
		}
		frame = append(frame, r.signalOf(e, count))
	}
	return frame
}

// ride puts a frame of nothing but signals into the last Append to p, if that has not left yet, and reports
// whether it did. So signals that follow a command at once cost no message and no answer of their own.
func (r *Raft) ride(p *tracker.Progress, entries []protocol.Entry, bytes int) bool {
	m, n := p.Latest, len(p.Frames)
	if r.lanes == nil || n == 0 || !r.unsent(m) || m.Context == 0 || m.Index+protocol.Index(len(m.Entries))+1 != p.Next ||
		slices.ContainsFunc(entries, func(e protocol.Entry) bool { return e.Kind != protocol.EntrySignal }) {
		return false
	}
	f := &p.Frames[n-1]
	if f.Bytes+bytes > r.cfg.MaxFrameBytes || p.Bytes+bytes > r.cfg.MaxInflightBytes {
		return false
	}
	m.Entries = slices.Concat(m.Entries, entries) // what it had is shared with the log
	p.Next += protocol.Index(len(entries))
	f.Last, f.Bytes, p.Bytes = p.Next-1, f.Bytes+bytes, p.Bytes+bytes
	return true
}

// parking is what a follower keeps of a leader's messages because a signal came before its batches.
type parking struct {
	messages []message.Message // of one term, in the order in which they came
	bytes    int
	since    time.Duration // when the first one began to wait
}

// patience is for how long a signal waits for its batches. A leader that does not learn of a frame for a heartbeat
// takes it for lost.
func (r *Raft) patience() time.Duration { return r.cfg.Heartbeat / 2 }

// parks keeps a leader's entries if they have to wait.
func (r *Raft) parks(m message.Message) bool {
	if r.lanes == nil {
		return false
	}
	p := &r.lanes.parked
	if len(p.messages) == 0 && r.unresolved(m) < 0 || m.Context == 0 && len(p.messages) == 0 {
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

// takeHead takes what comes before the first signal of which something is missing, and returns the rest. Signals ride
// with commands, which need not wait for them.
func (r *Raft) takeHead(m message.Message) message.Message {
	n := r.unresolved(m)
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
	p := &r.lanes.parked
	for len(p.messages) > 0 {
		m := p.messages[0]
		// Entries that do not follow the log came after entries that were requested, and are sent again with them.
		if m.Term == r.term && r.role == protocol.Follower && m.Index <= r.log.Last {
			if r.unresolved(m) >= 0 && r.now < p.since+r.patience() {
				r.out.WakeBy(p.since + r.patience())
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

// unresolved is the first entry of a message that is a signal of which something is missing here; negative if
// none is.
func (r *Raft) unresolved(m message.Message) int {
	for i := range m.Entries {
		if e := &m.Entries[i]; e.Kind == protocol.EntrySignal && e.Index > r.commit && !r.log.Matches(e.Index, e.Term) && r.ranged(e) == nil {
			return i
		}
	}
	return -1
}

// ranged is the batches that are held of a signal's range, nil if one is missing.
func (r *Raft) ranged(e *protocol.Entry) []protocol.Entry {
	g, ok := e.Range()
	i, held := r.lanes.find(g.Lane)
	if !ok || !held {
		return nil
	}
	h := r.lanes.held[i]
	if g.From <= h.base || g.To < g.From || g.To > h.high() {
		return nil
	}
	return h.batches[g.From-h.base-1 : g.To-h.base]
}

// resolve makes groups of the signals in a message. It returns the entries before the first one of which
// something is missing, and asks the leader for that. Signals of entries that are in the log are groups there.
func (r *Raft) resolve(m message.Message) []protocol.Entry {
	entries := m.Entries
	for i := range m.Entries {
		e := &m.Entries[i]
		if e.Kind != protocol.EntrySignal {
			continue
		}
		if &entries[0] == &m.Entries[0] {
			entries = append([]protocol.Entry(nil), m.Entries...)
		}
		switch {
		case e.Index <= r.log.Base: // it is skipped
		case e.Index <= r.commit, r.log.Matches(e.Index, e.Term):
			entries[i] = *r.log.At(e.Index)
		case r.lanes == nil || !r.resolved(e, &entries[i]):
			if r.lanes != nil {
				r.lanes.counts.Missed++
				r.send(message.With(protocol.Message{Type: message.LaneMissing, To: m.From}, message.Part{Index: e.Index}))
			}
			return entries[:i]
		}
	}
	return entries
}

// resolved makes a signal's group if all of it is held.
func (r *Raft) resolved(e, group *protocol.Entry) bool {
	batches := r.ranged(e)
	if batches == nil {
		return false
	}
	g, _ := e.Range()
	made := protocol.NewRange(g.Lane, batches)
	if !e.Means(&made) {
		r.lanes.wrong = fmt.Errorf("lane %s: what is held of %d to %d is not what entry %d stands for", g.Lane, g.From, g.To, e.Index)
		return false // the leader sends what it has
	}
	*group = made
	return true
}

// onLaneMissing sends a follower a group itself, and what comes after it up to now.
func onLaneMissing(r *Raft, m message.Message) {
	p := r.peer(m.From)
	if r.lanes == nil || p == nil || p.Phase != tracker.Stream || m.Index <= max(p.Match, p.Raw) || m.Index >= p.Next {
		return
	}
	p.Raw = r.log.Last
	p.Become(tracker.Stream, m.Index, r.now)
	r.replicate(p)
}
