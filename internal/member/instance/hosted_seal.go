package instance

import (
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// hostedSeal is the end of an instance by a seal.
type hostedSeal struct {
	closed bool
	at     time.Duration // when it was closed
	tell   bool          // the turn is to say that it is closed
}

// Close ends the member's part in the instance, because it begins other instances behind a seal that ends this one. It
// is called within a turn: Turn.Closed says that nothing of what the member said before is still to be sent.
func (h *Hosted) Close() {
	h.seal.tell = true
	h.close()
}

func (h *Hosted) close() {
	if h.seal.closed {
		return
	}
	h.seal.closed, h.seal.at = true, h.clock.Now()
	h.Step(protocol.Sealed{Counts: true})
	h.inst.close()
}

// close drops the messages that wait until records are durable: they say what the member promises in an instance in
// which it promises nothing any more.
func (in *Instance) close() { in.held = nil }

// noteBehind finds a member that takes part in a closed instance: it has not begun those behind the seal, and may need
// a snapshot. A member that is only a moment behind learns from the leader that the seal is decided. One that knows as
// much to be committed as this member, as a closed leader that sends heartbeats, needs none.
func (h *Hosted) noteBehind(inputs []protocol.Input) {
	if h.cfg.Mutant == member.MutantSealUnanswered || !h.seal.closed || h.retired.endsAt == 0 ||
		h.clock.Now()-h.seal.at < h.cfg.Election {
		return
	}
	for _, in := range inputs {
		if m, ok := in.(*protocol.Message); ok && m.Commit < h.status.Commit {
			h.behind = m.From
		}
	}
}

// searchBeyond asks for a snapshot where this member has begun the instances behind the seal, and its own logs do not
// lead there after a start.
func (h *Hosted) searchBeyond() {
	if h.seal.closed && h.retired.endsAt == 0 && h.first() {
		h.missing = h.search.Beyond(h.clock.Now(), h.cfg.Election, h.status)
	}
}

// First is the member that should be the first leader of what begins behind a seal: that of the first sealed instance,
// or if it has none, its first voter. It is a pure rule.
func First(sealed *protocol.Status) protocol.MemberID {
	if voters := sealed.Config.Voters(); sealed.Leader == 0 && len(voters) > 0 {
		return voters[0]
	}
	return sealed.Leader
}
