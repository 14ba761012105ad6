package sim

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/transport/netspec"
	"github.com/braidlog/braid/protocol"
)

var (
	messagesAside       = count.New("messages_aside_of_large_ones", "messages aside")
	messagesWithoutLink = count.New("messages_without_link", "messages without a link")
	messagesLost        = count.New("messages_lost", "lost messages")
	messagesDamaged     = count.New("messages_damaged", "damaged messages")
	leadersMoved        = count.New("leaders_moved", "leaders moved", count.Woven)
)

// link carries frames from one member to another.
type link struct {
	// cut: all messages are lost. A link is one way, so the other direction may work.
	cut bool
	// wrongs counts messages that were lost, damaged or refused. It also counts times when one of
	// the two members was not well.
	wrongs int
	// last is, for each stream, when the frame that was sent last arrives. Streams keep the order
	// unless the seed says otherwise.
	last map[uint32]time.Duration
	// met is the pairs of processes that made a handshake.
	met map[linkage]bool
	// rate is how many bytes a second the link takes; 0: any number. queue is how many bytes may
	// wait for that; beyond it frames are lost. free is when the last of them will have left.
	rate, queue int
	free        time.Duration
	// way is what the specification of links says of it; nil: it was not asked yet, or there is none.
	way *netspec.Link
	// hold is set while the link stands still.
	hold hold
}

// narrow makes a link take so many bytes a second, with a queue of so many bytes.
func (w *World) narrow(from, to protocol.MemberID, rate, queue int) {
	l := w.link(from, to)
	l.rate, l.queue = rate, queue
}

// leaves is when a frame that is sent now has left the link. Frames leave in the order in which
// they were sent. It is false if the queue is full.
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

// backed reports whether frames take longer than a trip: the link is narrow, or was a moment ago, and
// what waited then still goes first.
func (l *link) backed(w *World) bool {
	if l.rate > 0 {
		return true
	}
	for _, last := range l.last { // any order: one is enough
		if last > w.now+w.set.DelayMax {
			return true
		}
	}
	return false
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

// send sends a message about bodies.
func (w *World) send(m *protocol.Message) {
	if !w.transmit(m, instance.BodyStreamOf(m.Instance), encode(m)) {
		w.cutOff(m)
	}
}

// transmit sends an encoded message on a stream. The receiver decodes it. It reports false if the
// link's queue is full.
func (w *World) transmit(m *protocol.Message, stream uint32, frame []byte) bool {
	w.messages++
	if w.set.codec().ClaimsOf(m).Moves {
		w.count(leadersMoved)
	}
	w.violate(m.From, w.judgeFrame(m, len(frame), cmp.Or(w.member(m.From).own.Core.MaxFrameBytes, 1<<20)))
	l := w.link(m.From, m.To)
	if from := w.member(m.From); from.up && (!from.links.Has(m.To) || !from.reaches(w.member(m.To))) {
		w.count(messagesWithoutLink)
		w.tracef("%s → %s %s  (no link)", m.From, m.To, w.describe(m))
		return false
	}
	lost := l.cut || w.mute(m.From, m.To) || w.chance(w.set.Drop+w.burst) || w.pass != nil && !w.pass(m) || w.straggles(m)
	if w.tracing() {
		w.tracef("%s → %s %s%s", m.From, m.To, w.describe(m), mark(lost, "  (lost)"))
	}
	w.mix(uint64(m.Type), uint64(m.From)<<32|uint64(m.To), uint64(m.Term), uint64(m.Commit), uint64(binary.LittleEndian.Uint32(frame)), uint64(len(frame)))
	if lost {
		w.count(messagesLost)
		l.wrongs++
		w.lost(m)
		return true
	}
	at := w.now
	if stream >= instance.AsideStream {
		w.count(messagesAside)
	} else if leaves, ok := l.leaves(w.now, len(frame)); ok {
		at = leaves
	} else {
		w.count(messagesLost)
		l.wrongs++
		return false
	}
	w.carry(l, m, stream, frame, at)
	if w.chance(w.set.Duplicate) {
		w.carry(l, m, stream, frame, at)
	}
	return true
}

// judgeFrame judges that a link would take a message. It has one entry of any size, or no more
// bytes of entries than the setting allows, and it is as long as it was counted. Production drops a
// message that is too long.
func (w *World) judgeFrame(m *protocol.Message, length, most int) error {
	bytes := 0
	for i := range m.Entries {
		bytes += m.Entries[i].Bytes()
	}
	switch {
	case length != m.Size():
		return fmt.Errorf("%s of %d bytes was counted as %d", w.set.codec().Name(m.Type), length, m.Size())
	case len(m.Entries) > 1 && bytes > most && !w.set.codec().Of(m.Type).Forwarded, len(m.Holdings) > protocol.MaxHoldings, length > protocol.MaxMessageBytes:
		return fmt.Errorf("%s with %d entries of %d bytes and %d holdings; its entries may be %d bytes",
			w.set.codec().Name(m.Type), len(m.Entries), bytes, len(m.Holdings), most)
	}
	return nil
}

// lost sometimes tells the sender that another member is out of reach, as a transport would.
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
	at += w.trip(m.From, m.To)
	if !w.set.Reorder {
		at = max(at, l.last[stream])
		l.last[stream] = at
	}
	damaged := w.chance(w.set.Corrupt)
	if damaged {
		w.count(messagesDamaged)
		l.wrongs++
		frame = slices.Clone(frame)
		frame[w.rng.IntN(len(frame))] ^= 1 << w.rng.IntN(8)
	}
	to, from := m.To, w.member(m.From)
	life := from.life
	l.deliver(w, at, func() {
		w.member(to).receive(from, life, frame, damaged)
	})
}

// severed reports whether a member cannot reach another one: the link is cut, or the member keeps
// none.
func (w *World) severed(m *Member, to protocol.MemberID) bool {
	return w.link(m.id, to).cut || m.up && !m.links.Has(to) || !m.reaches(w.member(to))
}

// memberships are those that the member has applied.
func (m *Member) memberships() []protocol.Config {
	_, configs := m.progress.At()
	return configs
}

// relink makes the links, and what depends on them, follow the members of all instances in force.
func (m *Member) relink() {
	union := m.linked()
	m.body.inbox.Follow(&union)
	m.wakeBodies()
	for _, id := range m.handshakes.Learn(&union, &m.memberships()[0]) {
		clear(m.w.link(id, m.id).met)
		clear(m.w.link(m.id, id).met)
	}
	m.links.Follow(m.clock(), &union)
	m.w.violate(m.id, m.links.Check())
}

// linked is the membership that the links follow.
func (m *Member) linked() protocol.Config {
	var latest []protocol.Config
	for _, s := range m.inForce {
		latest = append(latest, s.status.Config)
	}
	return member.Linked(latest, m.memberships())
}

// encode writes a message as the transport does: the head, then the bytes of each entry with its
// body, then what the message says about bodies.
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
