package node

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/protocol"
)

var (
	messagesAside       = count.New("messages_aside_of_large_ones", "messages aside")
	messagesWithoutLink = count.New("messages_without_link", "messages without a link")
	messagesLost        = count.New("messages_lost", "lost messages")
	messagesDamaged     = count.New("messages_damaged", "damaged messages")
	leadersMoved        = count.New("leaders_moved", "leaders moved", count.Merged)
)

// Trip draws the delay of a message or a response.
func (w *Environment) Trip(from, to protocol.MemberID) time.Duration {
	return w.Between(w.Net.Path(&w.Set.Distances, from, to))
}

// RoundTrip draws the delay of a request and its response.
func (w *Environment) RoundTrip(from, to protocol.MemberID) time.Duration {
	lo, hi := w.Net.Path(&w.Set.Distances, from, to)
	lo2, hi2 := w.Net.Path(&w.Set.Distances, to, from)
	return w.Between(lo+lo2, hi+hi2)
}

// Send sends a message about bodies.
func (w *Environment) Send(m *protocol.Message) {
	if !w.transmit(m, instance.BodyStreamOf(m.Instance), encode(m)) {
		w.cutOff(m)
	}
}

// transmit sends an encoded message on a stream. The receiver decodes it. It reports false if the
// link's queue is full.
func (w *Environment) transmit(m *protocol.Message, stream uint32, frame []byte) bool {
	w.Messages++
	if w.codec(m.Instance).ClaimsOf(m).Moves {
		w.Count(leadersMoved)
	}
	w.Violate(m.From, w.judgeFrame(m, len(frame), cmp.Or(w.Member(m.From).Own.Core.MaxFrameBytes, 1<<20)))
	l := w.Net.Link(m.From, m.To)
	if from := w.Member(m.From); from.Up && (!from.Links.Has(m.To) || !from.reaches(w.Member(m.To))) {
		w.Count(messagesWithoutLink)
		w.Tracef("%s → %s %s  (no link)", m.From, m.To, w.describe(m))
		return false
	}
	lost := l.Cut || w.Observer.Loses(m)
	if w.Tracing() {
		w.Tracef("%s → %s %s%s", m.From, m.To, w.describe(m), Mark(lost, "  (lost)"))
	}
	w.Mix(uint64(m.Type), uint64(m.From)<<32|uint64(m.To), uint64(m.Term), uint64(m.Commit), uint64(binary.LittleEndian.Uint32(frame)), uint64(len(frame)))
	if lost {
		w.Count(messagesLost)
		l.Wrongs++
		w.lost(m)
		return true
	}
	at := w.Now()
	if f := w.Member(m.From).fitting; f != nil {
		f.sent[m.To] += uint64(len(frame))
	}
	if stream >= instance.AsideStream {
		w.Count(messagesAside)
	} else if leaves, ok := l.Leaves(w.Now(), len(frame)); ok {
		at = leaves
	} else {
		w.Count(messagesLost)
		l.Wrongs++
		return false
	}
	w.carry(l, m, stream, frame, at)
	if w.Chance(w.Set.Duplicate) {
		w.carry(l, m, stream, frame, at)
	}
	return true
}

// judgeFrame checks that a link would accept a message. It has one entry of any size, or no more bytes of entries
// than the setting allows, and its length is the counted one. Production drops a message that is too long.
func (w *Environment) judgeFrame(m *protocol.Message, length, most int) error {
	codec, bytes := w.codec(m.Instance), 0
	for i := range m.Entries {
		bytes += m.Entries[i].Bytes()
	}
	switch {
	case length != m.Size():
		return fmt.Errorf("%s of %d bytes was counted as %d", codec.Name(m.Type), length, m.Size())
	case len(m.Entries) > 1 && bytes > most && !codec.Of(m.Type).Forwarded, len(m.Holdings) > protocol.MaxHoldings,
		length > protocol.MaxMessageBytes:
		return fmt.Errorf("%s with %d entries of %d bytes and %d holdings; its entries may be %d bytes",
			codec.Name(m.Type), len(m.Entries), bytes, len(m.Holdings), most)
	}
	return nil
}

// lost sometimes reports to the sender that another member is unreachable, as a transport does.
func (w *Environment) lost(m *protocol.Message) {
	if w.Chance(0.3) {
		w.cutOff(m)
	}
}

// cutOff reports a broken link to the sender.
func (w *Environment) cutOff(m *protocol.Message) {
	from, to := w.Member(m.From), m.To
	life := from.Life
	w.After(0, func() {
		if !from.Up || from.Life != life {
			return
		}
		for _, s := range from.InForce {
			s.Step(protocol.Unreachable{Member: to})
		}
		from.Body.inbox.Down(to)
		from.Body.wake()
	})
}

// deliver delivers a frame at an instant, or later if the link is stalled.
func (w *Environment) deliver(l *device.Link, at time.Duration, do func()) {
	if !l.Waits(do) {
		w.At(at, do)
	}
}

func (w *Environment) carry(l *device.Link, m *protocol.Message, stream uint32, frame []byte, at time.Duration) {
	at += w.Trip(m.From, m.To)
	if !w.Set.Reorder {
		at = l.Arrives(stream, at)
	}
	damaged := w.Chance(w.Set.Corrupt)
	if damaged {
		w.Count(messagesDamaged)
		l.Wrongs++
		frame = slices.Clone(frame)
		frame[w.Rand.IntN(len(frame))] ^= 1 << w.Rand.IntN(8)
	}
	to, from := m.To, w.Member(m.From)
	f := flight{from: from, life: from.Life, frame: frame, damaged: damaged, sent: w.Now()}
	w.deliver(l, at, func() { w.Member(to).receive(&f) })
}

// flight is a frame on its way.
type flight struct {
	from    *Member
	life    int // of the sender when it sent the frame
	frame   []byte
	damaged bool
	sent    time.Duration // the time of the sending
}

// severed reports whether a member cannot reach another one: the link is cut, or the member has none.
func (w *Environment) severed(m *Member, to protocol.MemberID) bool {
	return w.Net.Link(m.ID, to).Cut || m.Up && !m.Links.Has(to) || !m.reaches(w.Member(to))
}

// Memberships returns the memberships that the member has applied.
func (r *Running) Memberships() []protocol.Config {
	_, configs := r.Progress.At()
	return configs
}

// relink updates the links, and what depends on them, to the members of all active instances.
func (m *Member) relink() {
	union := m.linked()
	m.Body.inbox.Follow(&union)
	m.Body.wake()
	at, applied := m.Progress.At()
	for _, id := range m.Handshakes.Learn(&union, &applied[0], m.dir.Grown(&at)) {
		m.Env.Net.Link(id, m.ID).Forget()
		m.Env.Net.Link(m.ID, id).Forget()
	}
	m.tune(&applied[0].Profile)
	m.Links.Follow(m.Clock(), &union)
	m.Env.Violate(m.ID, m.Links.Check())
}

// tuning are the settings of a member while the log has no profile.
func (s *Settings) tuning() member.Tuning {
	return member.Tuning{Heartbeat: s.Heartbeat, Election: s.Election, Leaders: s.Core.Leaders, GiveUp: s.GiveUp,
		Hedge: s.Bodies.Hedge, Retry: s.Bodies.Retry}
}

// tune takes in the applied profile.
func (m *Member) tune(p *protocol.Profile) {
	if p.Version == m.tunedTo {
		return
	}
	m.tuning, m.tunedTo = m.tuning.Under(p.Values), p.Version
	m.Operations.Config.Tune(&m.tuning)
	m.Links.Tune(m.tuning.Election)
	m.Body.machine.Tune(&m.tuning)
	for _, s := range m.InForce {
		s.Hosted.Tune(&m.tuning)
	}
}

// linked is the membership that the links follow.
func (r *Running) linked() protocol.Config {
	var latest []protocol.Config
	for _, s := range r.InForce {
		latest = append(latest, s.status.Config)
	}
	return member.Linked(latest, r.Memberships())
}

// codec returns the codec of an instance's messages; for an instance that never began, that of the first one.
func (w *Environment) codec(instance protocol.InstanceID) *protocol.Codec {
	if j := w.Court.Find(instance); j != nil {
		return j.Core.Codec
	}
	return w.Court.First.Core.Codec
}

// decode decodes a message, as the instance's core does. The receiver may not have the instance yet.
func (w *Environment) decode(frame []byte) (*protocol.Message, error) {
	f, err := protocol.OpenFrame(frame)
	if err != nil {
		return nil, err
	}
	return f.Decode(w.codec(f.Instance()))
}

// encode writes a message as the transport does: the head, then the bytes of each entry with its body, then the
// message's part about bodies.
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
