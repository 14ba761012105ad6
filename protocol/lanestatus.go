package protocol

import "time"

// LanesStatus is the core's view of lanes (docs/internals/lcr.md). Batches are counted since lanes were turned on last.
type LanesStatus struct {
	// Own is the lane of this incarnation of the member. Open: it can carry proposals, unless the member leads.
	Own  Lane
	Open bool
	// Accepted is the last number of its own lane that it reported as accepted or committed.
	Accepted uint64
	// Generation is the last one that is committed here. Accepting: it is active, so lanes can be accepted. Otherwise
	// the member answers blind commands when they are applied.
	Generation uint64
	Accepting  bool
	// Fence: this member leads, and a membership change waits for a fence.
	Fence bool
	// ByLeader: the member's blind commands go to the leader, because that is shorter now. LaneTime is how long it
	// took, recently, until its own disk and a quorum acknowledged what it put into its lane, and LeaderTime until what
	// it sent to the leader was committed here; 0: not known.
	ByLeader             bool
	LaneTime, LeaderTime time.Duration
	// Window is the maximal number of uncommitted bytes of one lane that are held.
	Window int
	// Lanes are all that are open or hold anything, sorted by member and incarnation.
	Lanes  []LaneStatus
	Counts LaneCounts
}

// LaneStatus describes what a member holds of one lane.
type LaneStatus struct {
	Lane Lane
	// Confirmed is how far the lane is committed. The member holds all batches up to Held, and its disk all up to
	// Durable. Confirmed ≤ Durable ≤ Held.
	Confirmed, Durable, Held uint64
	HeldBytes                int // of the batches after Confirmed
}

// LaneCounts count a core's work for lanes since its start. Bytes are of entries, repeated ones included.
type LaneCounts struct {
	// SentBytes were sent to other members by lanes, ReceivedBytes arrived by lanes and were new.
	SentBytes, ReceivedBytes uint64
	// SparedBytes are those that a leader did not send to followers because it sent signals.
	SparedBytes uint64
	// WholeGroups are groups of lanes that a leader sent itself, because batches were missing on a follower or it
	// catches up, and WholeBytes their bytes.
	WholeGroups, WholeBytes uint64
	// Missed counts the groups that this member requested from its leader, because batches were missing.
	Missed uint64
	// Refused counts proposals of this member for which its lane's window had no space.
	Refused uint64
	// ByLeader counts how often this member's blind commands began to go to the leader, because that was shorter.
	ByLeader uint64
}
