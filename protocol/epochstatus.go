package protocol

// EpochStatus is the core's view of its epoch (docs/internals/iss.md). In a protocol with epochs the log determines
// the leaders. So leadership is not transferred, see ReasonLeaderFollows.
type EpochStatus struct {
	Number uint64
	// First and Last are its slots.
	First, Last Index
	// Ending: all leaders use up their slots, to begin the next epoch.
	Ending bool
	// Unsettled: a membership change is decided, and later entries are not applied until a quorum of the next epoch has
	// it.
	Unsettled bool
	// NoQuorum: at the last heartbeat too few members had been active within an election timeout to decide anything.
	NoQuorum bool
	// Segments are those of the epoch's leaders, ascending by leader.
	Segments []SegmentStatus
	// Banned are the voters that do not lead, ascending.
	Banned []MemberID
	// BannedUntil is the epoch in which each of these leads again, unless it is suspected before; 0: it is not banned,
	// but there are too many voters.
	BannedUntil []uint64
	// Slots counts the slots that were appended to the log in this incarnation of the member. Skipped are those of them
	// without a value.
	Slots, Skipped uint64
}

// SegmentStatus is the member's view of the slots of one leader.
type SegmentStatus struct {
	Leader MemberID
	Last   Index
	// Decided: all of its slots up to here are decided.
	Decided Index
	Slots   int
	// Skipped counts slots that are decided without a value.
	Skipped int
	// Ballot is the highest one in which this member participates; 0: the leader's own proposals. By is the member that
	// started it; 0: that member is gone.
	Ballot uint64
	By     MemberID
}
