package paper

import (
	"container/heap"
	"math/rand/v2"
)

// loop simulates clients in closed loops at a leader and its followers. The leader has a given number of workers, and
// a command keeps one worker busy for exactly a round trip. Processors and disks take no time. The bound cannot be
// reached if clients and workers are exhausted at about the same time, because commands are drawn at random. Times
// are in round trips.
type loop struct {
	*bound
	rng     *rand.Rand
	coming  arrivals
	waiting []int // clients whose commands wait for a worker
	busy    int
	done    int
}

type arrival struct {
	at     float64
	what   happening
	client int
}

type happening uint8

const (
	reached happening = iota // a command reached the leader
	served                   // a worker has finished it
	heard                    // its client gets the answer
)

// loopTrips is the number of simulated round trips.
const loopTrips = 1000

// played is the rate of clients in closed loops, commands in a round trip.
func (b *bound) played() float64 {
	l := &loop{bound: b, rng: rand.New(rand.NewPCG(1, 2))}
	for c := range int(b.clients) {
		l.propose(c, l.rng.Float64())
	}
	for l.coming[0].at < loopTrips {
		l.step(heap.Pop(&l.coming).(arrival))
	}
	return float64(l.done) / loopTrips
}

// atLeader reports whether a client is the leader's.
func (l *loop) atLeader(client int) bool { return client%int(l.members) == 0 }

// way is the time of a client's command to the leader, or back.
func (l *loop) way(client int) float64 {
	if l.atLeader(client) {
		return 0
	}
	return 0.5
}

func (l *loop) propose(client int, at float64) {
	if l.rng.Float64() < l.share && !l.atLeader(client) {
		heap.Push(&l.coming, arrival{at + 1, heard, client})
		return
	}
	heap.Push(&l.coming, arrival{at + l.way(client), reached, client})
}

func (l *loop) step(a arrival) {
	switch a.what {
	case reached:
		l.waiting = append(l.waiting, a.client)
	case served:
		l.busy--
		heap.Push(&l.coming, arrival{a.at + l.way(a.client), heard, a.client})
	case heard:
		l.done++
		l.propose(a.client, a.at)
	}
	for l.busy < int(l.workers) && len(l.waiting) > 0 {
		heap.Push(&l.coming, arrival{a.at + 1, served, l.waiting[0]})
		l.waiting, l.busy = l.waiting[1:], l.busy+1
	}
}

// arrivals is the queue of future arrivals, the next first.
type arrivals []arrival

func (a arrivals) Len() int           { return len(a) }
func (a arrivals) Less(i, j int) bool { return a[i].at < a[j].at }
func (a arrivals) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *arrivals) Push(x any)        { *a = append(*a, x.(arrival)) }
func (a *arrivals) Pop() any {
	old := *a
	x := old[len(old)-1]
	*a = old[:len(old)-1]
	return x
}
