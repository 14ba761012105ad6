package epaxos

import "time"

// room is how many recoveries this member has in progress at most. A member that fails may leave hundreds of undecided
// commands, and all others find them at the same time. If each recovered all of them at once, messages would be lost
// where queues are short, and all would be asked again and again. So the room grows with each recovery that succeeds,
// and is halved when some are not answered, as with TCP. Recoveries that wait for others need none: those they wait for
// have to begin.
type room struct {
	size int           // leastRoom…mostRoom
	next time.Duration // when it may be halved again
}

const (
	leastRoom = 4
	firstRoom = 32
	mostRoom  = 256
)

// taken is how many recoveries are in progress that need room.
func (s *EPaxos) taken() (n int) {
	for _, a := range s.recovering {
		if !a.over && !a.waiting() {
			n++
		}
	}
	return n
}

// waiting reports whether the attempt is a recovery that waits for others (rule 8).
func (a *attempt) waiting() bool { return a.recovery != nil && a.recovery.stage == waits }

// succeeded notes that a recovery of this member has a decision.
func (r *room) succeeded() { r.size = min(r.size+1, mostRoom) }

// unanswered notes that one is asked again, a pause after the last time. At first that need not mean anything: a disk
// may be slow.
func (s *EPaxos) unanswered(pause time.Duration) {
	r := &s.room
	if pause > 2*s.cfg.Heartbeat && s.now >= r.next {
		r.size, r.next = max(r.size/2, leastRoom), s.now+s.cfg.Heartbeat
	}
}
