package lane

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// On the wire a lane's group need not have its batches, because its member sends them too. A leader sends a signal,
// which names the range and its digest. The follower makes the group of what it holds, and continues as if the group
// had arrived. So a member that acknowledges it has all of it. If it is missing something it waits a little, and then
// asks for the group itself.

// signal returns a group's signal. Several followers get the same.
func (l *leading) signal(e *protocol.Entry) protocol.Entry {
	s := &l.signals[int(e.Index)%len(l.signals)]
	if s.Index != e.Index || s.Term != e.Term {
		*s = protocol.NewSignal(e)
	}
	return *s
}

// Signals puts signals in the place of groups that p can make itself. A frame takes the signals that follow
// it, too: they are small, and would need frames of their own if frames have few entries.
func (l *Lanes) Signals(v *View, p *tracker.Progress, entries []protocol.Entry) (out []protocol.Entry, count Signaled) {
	if l == nil {
		return entries, count
	}
	for i := range entries {
		e := &entries[i]
		switch _, ok := e.Range(); {
		case !ok:
		case !l.lead.signalled(v, p, e):
			count.groups, count.whole = count.groups+1, count.whole+uint64(e.Bytes())
		default:
			if out == nil {
				out = append(out, entries...)
			}
			out[i] = l.lead.signalOf(e, &count)
		}
	}
	if out == nil {
		out = slices.Clip(entries)
	}
	return l.lead.moreSignals(v, p, out, &count), count
}

// signalled reports whether p gets a signal of a group.
func (l *leading) signalled(v *View, p *tracker.Progress, e *protocol.Entry) bool {
	return p.Phase == tracker.Stream && e.Index >= v.First && e.Index > p.Raw && !slices.Contains(l.recoded, e.Index)
}

// signalOf returns a group's signal, and counts what it spares.
func (l *leading) signalOf(e *protocol.Entry, count *Signaled) protocol.Entry {
	s := l.signal(e)
	count.spared += uint64(max(0, e.Bytes()-s.Bytes()))
	return s
}

// moreSignals adds the signals that follow a frame, as many as fit.
func (l *leading) moreSignals(v *View, p *tracker.Progress, frame []protocol.Entry, count *Signaled) []protocol.Entry {
	if len(frame) == 0 || len(frame) >= len(l.signals) {
		return frame
	}
	bytes := 0
	for i := range frame {
		bytes += frame[i].Bytes()
	}
	for i := frame[len(frame)-1].Index + 1; i <= v.Log.Last && len(frame) < len(l.signals); i++ {
		e := v.Log.At(i)
		if _, ok := e.Range(); !ok || !l.signalled(v, p, e) {
			break
		}
		s := l.signal(e)
		if bytes += s.Bytes(); bytes > v.Settings.MaxFrameBytes {
			break
		}
		frame = append(frame, l.signalOf(e, count))
	}
	return frame
}

// Unresolved is the first entry of a message that is a signal with batches missing here; negative if
// none is.
func (l *Lanes) Unresolved(v *View, m message.Message) int {
	for i := range m.Entries {
		if e := &m.Entries[i]; e.Kind == protocol.EntrySignal && e.Index > v.Commit && !v.Log.Matches(e.Index, e.Term) &&
			l.ranged(e) == nil {
			return i
		}
	}
	return -1
}

// ranged is the batches that are held of a signal's range, nil if one is missing.
func (l *Lanes) ranged(e *protocol.Entry) []protocol.Entry {
	g, ok := e.Range()
	i, held := l.find(g.Lane)
	if !ok || !held {
		return nil
	}
	h := l.held[i]
	if g.From <= h.base || g.To < g.From || g.To > h.high() {
		return nil
	}
	return h.batches[g.From-h.base-1 : g.To-h.base]
}

// Resolve makes groups of the signals in a message. It returns the entries before the first one of which
// something is missing, and asks the leader for that. Signals of entries that are in the log are groups there.
func (l *Lanes) Resolve(v *View, m message.Message) []protocol.Entry {
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
		case e.Index <= v.Log.Base: // it is skipped
		case e.Index <= v.Commit, v.Log.Matches(e.Index, e.Term):
			entries[i] = *v.Log.At(e.Index)
		case l == nil || !l.resolved(v, e, &entries[i]):
			if l != nil {
				l.counts.Missed++
				v.Out.Post(message.With(protocol.Message{Type: message.LaneMissing, To: m.From, Term: v.Term},
					message.Part{Index: e.Index}))
			}
			return entries[:i]
		}
	}
	return entries
}

// resolved makes a signal's group if all of it is held.
func (l *Lanes) resolved(v *View, e, group *protocol.Entry) bool {
	batches := l.ranged(e)
	if batches == nil {
		return false
	}
	g, _ := e.Range()
	made := protocol.NewRange(g.Lane, batches)
	if !e.Means(&made) {
		l.wrong = fmt.Errorf("lane %s: what is held of %d to %d is not what entry %d stands for", g.Lane, g.From, g.To,
			e.Index)
		return false // the leader sends what it has
	}
	*group = made
	return true
}
