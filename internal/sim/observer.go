package sim

import (
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// observer is told what members do, and answers what only those know who plan faults. World is one. Its methods may
// stop the member, and draw chance: they are called at the moment at which it happens.
type observer interface {
	// changed: an instance has another role, term or leader. elected: the member leads it now.
	changed(s *memberInstance, elected bool)
	// decided: no member had decided an entry of the instance before.
	decided(s *memberInstance, e *protocol.Entry)
	// sentCoded: a leader writes a coded entry, and is about to send it.
	sentCoded(m *Member)
	// reshaped: a member has so many instances from a round on. begins: some of them are new.
	reshaped(m *Member, round protocol.Round, instances int, begins bool)
	// ticked: a member had a tick.
	ticked(m *Member)
	// failed: a member stops because of an error. It crashes afterwards.
	failed(m *Member, err error)
	// expelled: a member finds out that the cluster goes on without it, and stops.
	expelled(m *Member, why *member.ExpelledError)
	// misled: a member got a link to another cluster of the same members.
	misled(m *Member)
	// loses reports whether a message is lost on a link that is not cut.
	loses(m *protocol.Message) bool
	// misses reports whether a member hears nothing of an instance.
	misses(id protocol.MemberID, instance protocol.InstanceID) bool
	// wouldAsk reports whether changes of the membership, for which a member was asked, may be carried out.
	wouldAsk(m *Member, changes []protocol.Change) bool
}
