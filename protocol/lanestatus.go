package protocol

// LanesStatus is the core's view of lanes (docs/internals/lcr.md).
type LanesStatus struct {
	// Own is the lane of this incarnation of the member. Open: it can bring proposals by it, unless it leads.
	Own  Lane
	Open bool
	// Accepted is how far it said that its own lane is accepted, or committed.
	Accepted uint64
	// Generation is the last one that is committed here. Accepting: it is active, so lanes can be
	// accepted. A member that does not accept answers blind commands when they are applied.
	Generation uint64
	Accepting  bool
	// Fence: this member leads, and a membership change waits for a fence.
	Fence bool
	// Window is how many bytes of one lane are held at most that are not committed.
	Window int
	// Lanes are all that are open or with anything held, sorted by member and incarnation.
	Lanes  []LaneStatus
	Counts LaneCounts
}

// LaneStatus is what a member holds of one lane.
type LaneStatus struct {
	Lane Lane
	// Confirmed is how far the lane is committed. Of what follows the member holds all up to Held, and
	// its disk all up to Durable. Confirmed ≤ Durable ≤ Held.
	Confirmed, Durable, Held uint64
	HeldBytes                int // of the batches after Confirmed
}

// LaneCounts count what a core did with lanes since it started. Bytes are of entries, repeated ones
// included.
type LaneCounts struct {
	// SentBytes went to other members by lanes, ReceivedBytes came by lanes and was new.
	SentBytes, ReceivedBytes uint64
	// SparedBytes are those that a leader did not send to followers because it sent signals.
	SparedBytes uint64
	// WholeGroups are groups of lanes that a leader sent itself, because a follower lacked batches or
	// catches up, and WholeBytes their bytes.
	WholeGroups, WholeBytes uint64
	// Missed are the groups for which this member asked its leader, because it lacked batches.
	Missed uint64
	// Refused are proposals of this member for which its lane's window had no space.
	Refused uint64
}
