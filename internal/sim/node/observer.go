package node

import (
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// Observer is told what members do, and answers what only those know who plan faults. World is one. Its methods may
// stop the member, and draw chance: they are called at the moment at which it happens.
type Observer interface {
	// Changed: an instance has another role, term or leader. elected: the member leads it now.
	Changed(s *MemberInstance, elected bool)
	// Decided: no member had decided an entry of the instance before.
	Decided(s *MemberInstance, e *protocol.Entry)
	// SentCoded: a leader writes a coded entry, and is about to send it.
	SentCoded(m *Member)
	// Reshaped: a member has so many instances from a round on. begins: some of them are new.
	Reshaped(m *Member, round protocol.Round, instances int, begins bool)
	// Ticked: a member had a tick.
	Ticked(m *Member)
	// Failed: a member stops because of an error. It crashes afterwards.
	Failed(m *Member, err error)
	// Expelled: a member finds out that the cluster goes on without it, and stops.
	Expelled(m *Member, why *member.ExpelledError)
	// Misled: a member got a link to another cluster of the same members.
	Misled(m *Member)
	// Loses reports whether a message is lost on a link that is not cut.
	Loses(m *protocol.Message) bool
	// Misses reports whether a member hears nothing of an instance.
	Misses(id protocol.MemberID, instance protocol.InstanceID) bool
	// WouldAsk reports whether changes of the membership, for which a member was asked, may be carried out.
	WouldAsk(m *Member, changes []protocol.Change) bool
}
