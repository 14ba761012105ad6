package member

import (
	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
)

// Streams are the snapshots on their way from this member to others. There is one to each member,
// for all instances that ask while it runs. Not safe for concurrent use.
type Streams struct{ to map[protocol.MemberID]*stream }

type stream struct {
	askers []protocol.InstanceID
	cursor order.Cursor // where it stands, once it is known
}

// Ask notes that an instance wants a member to have a snapshot. 0: no instance does; the member
// misses one that is retired. It reports whether a stream is to begin. If not, one has begun
// already.
func (s *Streams) Ask(to protocol.MemberID, instance protocol.InstanceID) (begin bool) {
	under := s.to[to]
	if begin = under == nil; begin {
		if s.to == nil {
			s.to = map[protocol.MemberID]*stream{}
		}
		under = &stream{}
		s.to[to] = under
	}
	if instance != 0 {
		under.askers = append(under.askers, instance)
	}
	return begin
}

// Begun says where the snapshot stands that is sent to a member.
func (s *Streams) Begun(to protocol.MemberID, at order.Cursor) {
	if under := s.to[to]; under != nil {
		under.cursor = at
	}
}

// At is where the snapshot that is on its way to a member stands in an instance; 0 if there is
// none or if that is not known yet.
func (s *Streams) At(to protocol.MemberID, instance protocol.InstanceID) protocol.Index {
	if under := s.to[to]; under != nil {
		return under.cursor.Point(instance).Index
	}
	return 0
}

// End ends the stream to a member. It returns the instances that asked for it and are to be told.
func (s *Streams) End(to protocol.MemberID) (askers []protocol.InstanceID) {
	if under := s.to[to]; under != nil {
		askers = under.askers
		delete(s.to, to)
	}
	return askers
}
