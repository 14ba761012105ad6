package device

import (
	"time"

	"github.com/braidlog/braid/internal/transport/netspec"
	"github.com/braidlog/braid/protocol"
)

// Network has the links between all members. The links of the zero value accept all frames.
type Network struct{ links map[Pair]*Link }

// Pair is a sender and a receiver.
type Pair struct{ From, To protocol.MemberID }

// Link returns the link from one member to another.
func (n *Network) Link(from, to protocol.MemberID) *Link {
	k := Pair{from, to}
	l := n.links[k]
	if l == nil {
		if n.links == nil {
			n.links = map[Pair]*Link{}
		}
		l = &Link{last: map[uint32]time.Duration{}}
		n.links[k] = l
	}
	return l
}

// Narrow limits a link to a rate in bytes a second, with a queue of the given bytes. Rate 0 is no limit.
func (n *Network) Narrow(from, to protocol.MemberID, rate, queue int) {
	l := n.Link(from, to)
	l.rate, l.queue = rate, queue
}

// Widen ends the limits of all links.
func (n *Network) Widen() {
	for _, l := range n.links {
		l.rate, l.free = 0, 0
	}
}

// Backed reports whether some link is Backed.
func (n *Network) Backed(by time.Duration) bool {
	for _, l := range n.links { // any order: one is enough
		if l.Backed(by) {
			return true
		}
	}
	return false
}

// Link carries frames from one member to another. It decides when a frame arrives; its owner delivers it.
type Link struct {
	// Cut: all messages are lost. The opposite direction may work.
	Cut bool
	// Wrongs counts messages that were lost, damaged or refused, and other events that slowed the two members down.
	Wrongs int

	// last is, for each stream, the arrival time of the last frame.
	last map[uint32]time.Duration
	// rate is the link's limit in bytes a second; 0: none. queue is the maximal number of queued bytes; further frames
	// are lost. free is the time at which the queue is empty.
	rate, queue int
	free        time.Duration
	// handshakes are the pairs of processes that have made a handshake.
	handshakes map[handshake]bool
	// path is the link's part of the specification; nil: not read yet.
	path *netspec.Link

	held    bool
	waiting []func() // deliver frames that were sent while the link was held
}

// handshake has two processes, each an incarnation of a member.
type handshake struct{ from, to int }

// Shake records a handshake between a process of the sender and one of the receiver.
func (l *Link) Shake(from, to int) {
	if l.handshakes == nil {
		l.handshakes = map[handshake]bool{}
	}
	l.handshakes[handshake{from, to}] = true
}

// Shook reports whether two processes have made a handshake.
func (l *Link) Shook(from, to int) bool { return l.handshakes[handshake{from, to}] }

// Forget ends all connections: the processes make another handshake before the next message.
func (l *Link) Forget() { l.handshakes = nil }

// Leaves returns the time at which a frame that is sent now has left the link. Frames leave in the order in which
// they were sent. It returns false if the queue is full.
func (l *Link) Leaves(now time.Duration, bytes int) (time.Duration, bool) {
	if l.rate == 0 {
		return now, true
	}
	waiting := max(l.free, now)
	if int((waiting-now).Seconds()*float64(l.rate))+bytes > l.queue {
		return 0, false
	}
	l.free = waiting + time.Duration(bytes)*time.Second/time.Duration(l.rate)
	return l.free, true
}

// Queued is how many bytes wait to leave the link.
func (l *Link) Queued(now time.Duration) uint64 {
	if l.rate == 0 || l.free <= now {
		return 0
	}
	return uint64((l.free - now).Seconds() * float64(l.rate))
}

// Arrives returns the arrival time of a frame that would arrive at the given time if it were alone: no earlier than
// the frame before it in the stream.
func (l *Link) Arrives(stream uint32, at time.Duration) time.Duration {
	at = max(at, l.last[stream])
	l.last[stream] = at
	return at
}

// Delay delays all frames on the streams in use to the given time at least.
func (l *Link) Delay(until time.Duration) {
	for stream := range l.last { // any order: they are independent
		l.last[stream] = max(l.last[stream], until)
	}
}

// Backed reports whether frames take longer than a trip, which ends at the given time: the link is narrow, or was
// recently, and frames that waited then are still ahead.
func (l *Link) Backed(by time.Duration) bool {
	if l.rate > 0 {
		return true
	}
	for _, last := range l.last { // any order: one is enough
		if last > by {
			return true
		}
	}
	return false
}

// Hold stalls the link: frames wait and are not lost.
func (l *Link) Hold() { l.held = true }

// Held reports whether the link is stalled.
func (l *Link) Held() bool { return l.held }

// Waits reports whether the link is stalled. Then it keeps deliver until it is released.
func (l *Link) Waits(deliver func()) bool {
	if l.held {
		l.waiting = append(l.waiting, deliver)
	}
	return l.held
}

// Release ends the stall. It returns the waiting deliveries, in the order in which the frames were sent.
func (l *Link) Release() (waiting []func()) {
	waiting, l.held, l.waiting = l.waiting, false, nil
	return waiting
}
