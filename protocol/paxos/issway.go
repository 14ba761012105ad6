package paxos

import "time"

// way is how long a round trip to another member takes where it does not wait for anything: the shortest one for a while. The recent ones
// of a busy member are as long as its queue. To send more because of them would make the queue longer.
type way struct {
	shortest time.Duration // since began; 0: none was measured
	before   time.Duration // in the period before that
	began    time.Duration
}

// wayPeriods is how many election timeouts a period takes: long enough that a busy member is idle for a moment.
const wayPeriods = 20

// took notes a round trip.
func (w *way) took(trip, now, period time.Duration) {
	if now >= w.began+period {
		w.before, w.shortest, w.began = w.shortest, 0, now
	}
	if w.shortest == 0 || trip < w.shortest {
		w.shortest = trip
	}
}

// takes is the shortest round trip of this period and of the one before.
func (w *way) takes() time.Duration {
	if w.before > 0 {
		return min(w.before, w.shortest)
	}
	return w.shortest
}
