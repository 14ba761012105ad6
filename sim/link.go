package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
)

// link carries frames from one member to another.
type link struct {
	// cut loses everything; a link is one way, so the other way may work.
	cut bool
	// wrongs counts what was lost, damaged or sent again.
	wrongs int
	// last is when the frame sent last arrives, for each stream: streams keep order unless the
	// seed says otherwise.
	last map[uint32]time.Duration
	// met are the processes that shook hands.
	met map[linkage]bool
	// rate is how many bytes a second go over it; 0: any number. queue is how many may wait for
	// that, of which more are lost; free is when the last of them will have left.
	rate, queue int
	free        time.Duration
}

// narrow makes a link take so many bytes a second, with a queue of so many before it.
func (w *World) narrow(from, to protocol.MemberID, rate, queue int) {
	l := w.link(from, to)
	l.rate, l.queue = rate, queue
}

// leaves is when a frame that is sent now has left a link, in the order in which they were
// sent; false if the queue is full.
func (l *link) leaves(now time.Duration, bytes int) (time.Duration, bool) {
	if l.rate == 0 {
		return now, true
	}
	waiting := max(l.free, now)
	if int((waiting-now).Seconds()*float64(l.rate))+bytes > l.queue {
		return 0, false
	}
	l.free = waiting + time.Duration(bytes)*time.Second/time.Duration(l.rate)
	return l.free, true
}

type linkKey struct{ from, to protocol.MemberID }

func (w *World) link(from, to protocol.MemberID) *link {
	k := linkKey{from, to}
	l := w.links[k]
	if l == nil {
		l = &link{last: map[uint32]time.Duration{}}
		w.links[k] = l
	}
	return l
}

// send puts a message about bodies on its way.
func (w *World) send(m *protocol.Message) {
	if !w.transmit(m, member.BodyStream+member.StreamOf(m.Instance), encode(m)) {
		w.cutOff(m)
	}
}

// transmit puts a message on its way, on a stream, as it was encoded; it is decoded where it
// arrives. It reports false if there is no room for it.
func (w *World) transmit(m *protocol.Message, stream uint32, frame []byte) bool {
	w.messages++
	if m.Type == protocol.MsgTimeoutNow {
		w.events.Moved++
	}
	w.violate(m.From, judgeFrame(m, len(frame), cmp.Or(w.member(m.From).own.Raft.MaxFrameBytes, 1<<20)))
	l := w.link(m.From, m.To)
	lost := l.cut || w.chance(w.set.Drop+w.burst) || w.pass != nil && !w.pass(m)
	if w.tracing() {
		w.tracef("%s → %s %s%s", m.From, m.To, describeMessage(m), mark(lost, "  (lost)"))
	}
	w.mix(uint64(m.Type), uint64(m.From)<<32|uint64(m.To), uint64(m.Term), uint64(m.Index), uint64(len(frame)))
	if lost {
		w.events.Lost++
		l.wrongs++
		w.lost(m)
		return true
	}
	at := w.now
	if stream >= member.AsideStream {
		w.events.Aside++
	} else if leaves, ok := l.leaves(w.now, len(frame)); ok {
		at = leaves
	} else {
		w.events.Lost++
		l.wrongs++
		return false
	}
	w.carry(l, m, stream, frame, at)
	if w.chance(w.set.Duplicate) {
		w.carry(l, m, stream, frame, at)
	}
	return true
}

// judgeFrame judges that a link would take a message: it has one entry of any size, or as many as
// the setting allows, and is as long as it was counted. What is longer production drops.
func judgeFrame(m *protocol.Message, length, most int) error {
	bytes := 0
	for i := range m.Entries {
		bytes += m.Entries[i].Bytes()
	}
	switch {
	case length != m.Size():
		return fmt.Errorf("%s of %d bytes was counted as %d", m.Type, length, m.Size())
	case len(m.Entries) > 1 && bytes > most, len(m.Holdings) > protocol.MaxHoldings, length > protocol.MaxMessageBytes:
		return fmt.Errorf("%s with %d entries of %d bytes and %d holdings; its entries may be %d bytes",
			m.Type, len(m.Entries), bytes, len(m.Holdings), most)
	}
	return nil
}

// lost tells the sender now and then that a peer is out of reach, as a transport would.
func (w *World) lost(m *protocol.Message) {
	if w.chance(0.3) {
		w.cutOff(m)
	}
}

// cutOff tells the sender that a link broke.
func (w *World) cutOff(m *protocol.Message) {
	from, to := w.member(m.From), m.To
	life := from.life
	w.after(0, func() {
		if !from.up || from.life != life {
			return
		}
		for _, s := range from.inForce {
			s.step(protocol.Unreachable{Member: to})
		}
		from.body.inbox.Down(to)
		from.wakeBodies()
	})
}

func (w *World) carry(l *link, m *protocol.Message, stream uint32, frame []byte, at time.Duration) {
	at += w.between(w.set.DelayMin, w.set.DelayMax)
	if !w.set.Reorder {
		at = max(at, l.last[stream])
		l.last[stream] = at
	}
	damaged := w.chance(w.set.Corrupt)
	if damaged {
		w.events.Damaged++
		l.wrongs++
		frame = slices.Clone(frame)
		frame[w.rng.IntN(len(frame))] ^= 1 << w.rng.IntN(8)
	}
	to, from := m.To, w.member(m.From)
	life := from.life
	w.queue.push(at, func() {
		w.member(to).receive(from, life, frame, damaged)
	})
}

// encode writes a message as the transport writes it: head, then the entries' own bytes,
// each with its body, then what the message says about bodies.
func encode(m *protocol.Message) []byte {
	n := protocol.MessageHeadSize + len(m.Blob)
	for i := range m.Entries {
		n += m.Entries[i].Bytes() + protocol.BodyHeadSize
	}
	b := m.AppendHead(make([]byte, 0, n))
	for i := range m.Entries {
		e := &m.Entries[i]
		b = append(b, e.Head()...)
		b = append(b, e.Payload...)
		if e.BodySize > 0 {
			b = append(e.AppendBodyHead(b), e.Body...)
		}
	}
	b = m.AppendHoldings(b)
	return append(b, m.Blob...)
}
