package node

import (
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/protocol"
)

// Observer is notified of events on members, and answers questions about planned faults. World is one. Its methods
// may stop the member, and draw chance: they are called at the moment of the event.
type Observer interface {
	// Changed: an instance has another role, term or leader. elected: the member leads it now.
	Changed(s *MemberInstance, elected bool)
	// Decided: the first member has decided an entry of the instance.
	Decided(s *MemberInstance, e *protocol.Entry)
	// SentCoded: a leader is about to write and send a coded entry.
	SentCoded(m *Member)
	// Reshaped: a member has this number of instances from a position on. begins: some of them are new.
	Reshaped(m *Member, position protocol.Position, instances int, begins bool)
	// Ticked: a member had a tick.
	Ticked(m *Member)
	// Failed: a member stops because of an error. It crashes afterwards.
	Failed(m *Member, err error)
	// Expelled: a member stops because it was removed from the cluster.
	Expelled(m *Member, why *member.ExpelledError)
	// Misled: a member got the lineage of another cluster of the same members, or a link to it.
	Misled(m *Member)
	// Loses reports whether a message is lost on a link that is not cut.
	Loses(m *protocol.Message) bool
	// Misses reports whether a member gets no messages of an instance.
	Misses(id protocol.MemberID, instance protocol.InstanceID) bool
	// Fits has an operation executed for a change that a member's fitter makes. It calls then with the result, or with
	// ErrWithdrawn when patience has elapsed.
	Fits(m *Member, change *judge.Fitted, op *cluster.Operation, patience time.Duration, then func(error))
	// WouldAsk reports whether a requested membership change may be executed.
	WouldAsk(m *Member, changes []protocol.Change) bool
}
