package epaxos

import "time"

// window limits the recoveries that this member has in progress. A member that fails may leave hundreds of undecided
// commands, and all others find them at the same time. If each recovered all of them at once, messages would be lost
// where queues are short, and repeated again and again. So the window grows with each recovery that succeeds, and is
// halved when some are not answered, like TCP's congestion window. Recoveries that wait for others do not count:
// those that they wait for must be able to begin.
type window struct {
	size int           // leastWindow…mostWindow
	next time.Duration // when it may be halved again
}

const (
	leastWindow = 4
	firstWindow = 32
	mostWindow  = 256
)

// taken is the number of recoveries in progress that count.
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

// succeeded records that a recovery of this member has a decision.
func (r *window) succeeded() { r.size = min(r.size+1, mostWindow) }

// unanswered records that a request is repeated after a pause. The first repetition does not count: a disk may be
// slow.
func (s *EPaxos) unanswered(pause time.Duration) {
	r := &s.window
	if pause > 2*s.cfg.Heartbeat && s.now >= r.next {
		r.size, r.next = max(r.size/2, leastWindow), s.now+s.cfg.Heartbeat
	}
}
