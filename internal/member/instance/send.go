package instance

import (
	"errors"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/protocol"
)

const (
	// BodyStream and the streams after it are where fragments travel between members. They are separate from the log's
	// streams, which must not wait behind fragments. Instances share them, because others ask for bodies of an instance
	// as long as the state has them.
	BodyStream  = 1 << 30
	bodyStreams = 64
	// AsideStream and the streams after it, one for each instance, are for what must not wait
	// behind bodies. Each keeps to one of the receiver's addresses, as an instance's own stream
	// does.
	AsideStream = 1 << 31
	// LargeMessage is the size in bytes from which on others have to wait for a message, on a slow
	// link. LargeFor is for how long after it that counts.
	LargeMessage = 256 << 10
	LargeFor     = 10 * time.Second
	// partRoom is as much as most parts of messages take.
	partRoom = 72
)

// StreamAt is the stream of the instance at a place among those that it began with, from 0 on. An instance behind a
// seal has that of a sealed one, whose connections are open.
func StreamAt(place int) uint32 { return uint32(place) + 1 }

// BodyStreamOf is the stream of an instance's bodies.
func BodyStreamOf(id protocol.InstanceID) uint32 { return BodyStream + uint32(id%bodyStreams) }

// Streams lists the streams of an instance that are not for bodies.
func (s *Sender) Streams() []uint32 { return []uint32{s.Stream, AsideStream + s.Stream} }

// Links is how a [Sender] reaches other members.
type Links interface {
	// Frame lists a message's bytes, with payloads and bodies read from the disk.
	Frame(m *protocol.Message) ([][]byte, error)
	// Transmit puts the bytes of a message on a stream. It is false if they certainly do not arrive.
	Transmit(m *protocol.Message, stream uint32, parts [][]byte) bool
}

// Sender sends an instance's messages. Not safe for concurrent use.
type Sender struct {
	Stream uint32 // see StreamAt
	Codec  *protocol.Codec
	Links  Links
	Now    func() time.Duration
	// LargeMessage is from how many bytes on others have to wait for a message, on a slow link; LargeFor is for how
	// long that counts.
	LargeMessage int
	LargeFor     time.Duration

	large map[protocol.MemberID]time.Duration // when a member was sent a large message
}

// Send sends a message. The error says that it cannot be read here; see [Hosted.Unsent]. Otherwise sent reports whether
// it may arrive.
func (s *Sender) Send(m *protocol.Message) (sent bool, err error) {
	if s.sendUrgent(m) {
		return true, nil
	}
	parts, err := s.Links.Frame(m)
	if err != nil {
		return false, err
	}
	sent = s.Links.Transmit(m, s.Stream, parts)
	s.noteLarge(m.To, parts)
	return sent, nil
}

func (s *Sender) noteLarge(to protocol.MemberID, parts [][]byte) {
	bytes := 0
	for _, p := range parts {
		bytes += len(p)
	}
	if bytes < s.LargeMessage {
		return
	}
	if s.large == nil {
		s.large = map[protocol.MemberID]time.Duration{}
	}
	s.large[to] = s.Now()
}

// sendUrgent sends some messages apart from the stream, as long as bodies on the stream may take longer than an
// election timeout: see protocol.Delivery.
func (s *Sender) sendUrgent(m *protocol.Message) (instead bool) {
	way := s.Codec.Of(m.Type).Delivery
	if way == protocol.InStream {
		return false // as almost all messages
	}
	at, large := s.large[m.To]
	large = large && s.Now()-at < s.LargeFor
	apart := m
	switch way {
	case protocol.Urgent:
		instead = large
	case protocol.SameWay:
		instead = m.Context == 0
	case protocol.BothWays:
		instead = m.Aside
		if large && !instead {
			copied := *m
			copied.Context = 0
			apart = &copied
		}
	}
	if apart == m && !instead {
		return false
	}
	parts, err := s.Links.Frame(apart)
	return err == nil && s.Links.Transmit(m, AsideStream+s.Stream, parts) && instead
}

// Unsent is what follows from a message that cannot be read here.
type Unsent struct {
	Harmed *member.LoadError // the record of an entry that is damaged; nil: none
	Remedy Remedy            // what is done
	Fail   error             // why the member stops; nil: it continues
	Inputs []protocol.Input  // for a later turn
}

// Unsent decides what follows from a message that could not be sent because of an error in reading it. placed is how
// far this member has applied the instance.
func (h *Hosted) Unsent(m *protocol.Message, err error, placed protocol.Index) (u Unsent) {
	unreachable := protocol.Unreachable{Member: m.To}
	var load *member.LoadError
	if !errors.As(err, &load) {
		return Unsent{Remedy: RemedyWait, Inputs: []protocol.Input{unreachable}}
	}
	fault := member.FaultOf(load.Err)
	if fault == member.FaultDamaged {
		u.Harmed = load
	}
	switch u.Remedy = h.unread.Remedy(h.calls.Now(), h.cfg.Election, fault, load.Index, placed); u.Remedy {
	case RemedySnapshot:
		u.Inputs = []protocol.Input{protocol.Unsendable{Member: m.To, Index: load.Index}}
		return u
	case RemedyHandOver:
		u.Inputs = append(u.Inputs, protocol.Transfer{})
	case RemedyStop:
		u.Fail = &member.LostError{Err: err}
	case RemedyWait:
	}
	u.Inputs = append(u.Inputs, unreachable)
	return u
}

// frameMemory is all that the frame of a message with no more than one entry needs, in one piece.
type frameMemory struct {
	parts [5][]byte
	head  [protocol.MessageHeadSize + partRoom]byte
}

// Framer lists the bytes of messages.
type Framer struct {
	Load   member.Loader
	Bodies body.BodySource
	// LeftOut is told of a body that could not be sent to a member that should hold it.
	LeftOut func(e *protocol.Entry, instance protocol.InstanceID)
}

// Frame lists a message's bytes: its head, then those of each entry from where they are. Payloads
// and bodies that are not at hand are read from the disk. Bodies are cut to what the receiver is
// to hold. Frame does not change the message, because the core shares its entries.
func (f *Framer) Frame(m *protocol.Message) ([][]byte, error) {
	memory := &frameMemory{}
	parts := memory.parts[:1]
	if len(m.Entries) > 1 {
		parts = make([][]byte, 1, 3+2*len(m.Entries))
	}
	parts[0] = m.AppendHead(memory.head[:0])
	for i := range m.Entries {
		e := &m.Entries[i]
		if e.BodySize > 0 || !e.Applicable() {
			full := *e
			if err := body.MakeResident(m.Instance, &full, full.Index <= m.Commit, f.Load, f.Bodies); err != nil {
				var load *member.LoadError
				if member.IsDamage(err) && !errors.As(err, &load) {
					f.LeftOut(e, m.Instance)
				}
				return nil, err
			}
			if full.Form != e.Form {
				f.LeftOut(e, m.Instance)
			}
			e = &full
		}
		parts = append(parts, e.Head())
		if len(e.Payload) > 0 {
			parts = append(parts, e.Payload)
		}
		if e.BodySize > 0 {
			parts = append(parts, e.AppendBodyHead(make([]byte, 0, protocol.BodyHeadSize)), e.Body)
		}
	}
	if len(m.Holdings) > 0 {
		parts = append(parts, m.AppendHoldings(nil))
	}
	if len(m.Blob) > 0 {
		parts = append(parts, m.Blob)
	}
	return parts, nil
}
