package snapshot

import (
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// Streams are the snapshots on their way from this member to others. There is one to each member,
// for all instances that ask while it runs. Not safe for concurrent use.
type Streams struct{ to map[protocol.MemberID]*stream }

type stream struct {
	offer  member.SnapshotOffer // without its Meta until that is known
	askers []protocol.InstanceID
}

// Ask notes that an instance wants a member to have a snapshot. If o names none, the member misses
// a retired instance, or needs a state. It reports whether a stream is to begin. If not, one has
// begun already.
func (s *Streams) Ask(to protocol.MemberID, o *member.SnapshotOffer) (begin bool) {
	under := s.to[to]
	if begin = under == nil; begin {
		if s.to == nil {
			s.to = map[protocol.MemberID]*stream{}
		}
		under = &stream{offer: *o}
		s.to[to] = under
	}
	if o.Instance != 0 && !slices.Contains(under.askers, o.Instance) {
		under.askers = append(under.askers, o.Instance)
	}
	return begin
}

// Under reports whether a stream to a member has begun and has not ended.
func (s *Streams) Under(to protocol.MemberID) bool { return s.to[to] != nil }

// Begun says which snapshot is sent to a member. It returns what that member is told of it.
func (s *Streams) Begun(to protocol.MemberID, meta *member.Meta) *member.SnapshotOffer {
	o := &s.to[to].offer
	o.Meta, o.HasState = *meta, true
	return o
}

// At is where the snapshot that is on its way to a member stands in an instance. It is 0 if there is
// none, or if that is not known yet.
func (s *Streams) At(to protocol.MemberID, instance protocol.InstanceID) protocol.Index {
	if under := s.to[to]; under != nil {
		return under.offer.Cursor.Point(instance).Index
	}
	return 0
}

// End ends the stream to a member. It returns where the snapshot stands, and the instances that
// asked for it and are to be told.
func (s *Streams) End(to protocol.MemberID) (at order.Cursor, askers []protocol.InstanceID) {
	if under := s.to[to]; under != nil {
		at, askers = under.offer.Cursor, under.askers
		delete(s.to, to)
	}
	return at, askers
}
