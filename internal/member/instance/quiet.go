package instance

import (
	"time"

	"github.com/braidlog/braid/protocol"
)

// quietTicks is the number of ticks without any change after which an instance is quiet: an election timeout of ten
// heartbeats, with ten ticks each.
const quietTicks = 100

// hostedQuiet notices that nothing happens.
type hostedQuiet struct {
	last  standing      // at the last tick
	ticks int           // since then nothing has changed
	heard time.Duration // when the last message, or another input, came
}

// standing is what changes if anything happens but heartbeats.
type standing struct {
	term                  protocol.Term
	role                  protocol.Role
	leader                protocol.MemberID
	last, durable, commit protocol.Index
	submitted             uint64
	given                 protocol.Index
}

func (h *Hosted) standing() standing {
	st := h.status
	return standing{st.Term, st.Role, st.Leader, st.Last, st.Durable, st.Commit, h.progress.submitted, h.progress.given}
}

// noteQuiet is called at a tick, after the status was published.
func (h *Hosted) noteQuiet() {
	if now := h.standing(); now != h.quiet.last {
		h.quiet.last, h.quiet.ticks = now, 0
	} else {
		h.quiet.ticks++
	}
}

// Ticks is the interval of the instance's ticks, given the usual one. A quiet instance needs one for each heartbeat,
// and one that rests fewer: see Rests. The interval counts from the last tick, so that a heartbeat is due at every
// tick, and from the end of the turn in which it changes.
func (h *Hosted) Ticks(usual time.Duration) time.Duration {
	switch {
	case h.Rests():
		return h.cfg.Election
	case h.isQuiet():
		return max(h.cfg.Heartbeat, usual)
	}
	return usual
}

// isQuiet reports whether an instance has nothing to do but heartbeats, and had nothing else for a while. Then it needs
// fewer ticks. It ends in the turn in which something happens, and when a member that follows has heard nothing for two
// heartbeats: then it needs all ticks to notice in time that it has no leader.
func (h *Hosted) isQuiet() bool {
	if h.status.Role != protocol.Leader && h.clock.Now()-h.quiet.heard > 2*h.cfg.Heartbeat {
		return false
	}
	st := h.status
	return h.quiet.ticks >= quietTicks && h.standing() == h.quiet.last && st.Leader != 0 && st.Last == st.Commit &&
		len(h.reads.groups) == 0 && h.batchAt == 0 && h.inst.Pending() == 0 && h.retired.endsAt == 0 &&
		st.Sealed == protocol.SealNone && !st.Undecided && st.Proposed == nil && !st.Removed && st.Preparing == 0 &&
		!st.Lacking && st.Restriping == 0 && st.Unwritten == 0
}
