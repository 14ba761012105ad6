package instance

import (
	"errors"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/protocol"
)

const (
	// BodyStream and the streams after it are where fragments travel between members. They are
	// beside the log's streams, which must not wait behind fragments. Instances share them, because
	// others ask for bodies of an instance as long as the state has them.
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
	partRoom = 32
)

// StreamOf is the stream of an instance, which no other instance ever has.
func StreamOf(id protocol.InstanceID) uint32 { return uint32(id) }

// BodyStreamOf is the stream of an instance's bodies.
func BodyStreamOf(id protocol.InstanceID) uint32 { return BodyStream + uint32(id%bodyStreams) }

// StreamsOf lists the streams that are the instance's alone. Nobody uses them any more when it has
// ended.
func StreamsOf(id protocol.InstanceID) []uint32 {
	return []uint32{StreamOf(id), AsideStream + StreamOf(id)}
}

// send hands messages to the links.
func (h *Hosted) send(messages []*protocol.Message) {
	for _, m := range messages {
		if h.sendUrgent(m) {
			continue
		}
		parts, err := h.host.Frame(m)
		if err != nil && h.unreadable(m, err) {
			continue
		}
		if err != nil || !h.host.Transmit(m.To, StreamOf(m.Instance), parts) {
			h.host.Input(protocol.Unreachable{Member: m.To})
		}
		h.noteLarge(m.To, parts)
	}
}

// unreadable is for a message of which something cannot be read here. It reports whether its
// receiver is helped in another way.
func (h *Hosted) unreadable(m *protocol.Message, err error) (helped bool) {
	var load *member.LoadError
	if !errors.As(err, &load) {
		h.host.Unreadable(m, err, RemedyWait)
		return false
	}
	fault := member.FaultOf(load.Err)
	if fault == member.FaultDamaged {
		h.host.Harmed(load)
	}
	cursor, _ := h.host.At()
	remedy := h.unread.Remedy(h.host.Now(), h.cfg.Election, fault, load.Index, cursor.Point(h.cfg.Instance).Index)
	h.host.Unreadable(m, err, remedy)
	switch remedy {
	case RemedySnapshot:
		h.host.Input(protocol.Unsendable{Member: m.To, Index: load.Index})
		return true
	case RemedyHandOver:
		h.host.Input(protocol.Transfer{})
	case RemedyStop:
		h.host.Fail(&member.LostError{Err: err})
	case RemedyWait:
	}
	return false
}

func (h *Hosted) noteLarge(to protocol.MemberID, parts [][]byte) {
	bytes := 0
	for _, p := range parts {
		bytes += len(p)
	}
	if bytes >= h.cfg.LargeMessage {
		h.large[to] = h.host.Now()
	}
}

// sendUrgent sends some messages beside the stream, as long as bodies on the stream may take longer
// than an election timeout: see protocol.Way.
func (h *Hosted) sendUrgent(m *protocol.Message) (instead bool) {
	way := h.inst.cfg.Codec.Of(m.Type).Way
	if way == protocol.InStream {
		return false // as almost all messages
	}
	at, large := h.large[m.To]
	large = large && h.host.Now()-at < h.cfg.LargeFor
	apart := m
	switch way {
	case protocol.Urgent:
		instead = large
	case protocol.SameWay:
		instead = m.Context == 0
	case protocol.BothWays:
		if large {
			copied := *m
			copied.Context = 0
			apart = &copied
		}
	}
	if apart == m && !instead {
		return false
	}
	parts, err := h.host.Frame(apart)
	return err == nil && h.host.Transmit(m.To, AsideStream+StreamOf(h.cfg.Instance), parts) && instead
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
	parts := make([][]byte, 1, 3+2*len(m.Entries))
	parts[0] = m.AppendHead(make([]byte, 0, protocol.MessageHeadSize+partRoom))
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
