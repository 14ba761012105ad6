package protocol

// EpochStatus is the core's view of its epoch (docs/internals/iss.md). In a protocol with epochs the log determines the
// leaders. So leadership is not handed over, see ReasonLeaderFollows.
type EpochStatus struct {
	Number uint64
	// First and Last are its slots.
	First, Last Index
	// Ending: all leaders use up their slots, so that the next epoch comes.
	Ending bool
	// Unsettled: a membership change is decided, and what follows it in the log is not applied until a quorum of the next
	// epoch has it.
	Unsettled bool
	// Segments are those of the epoch's leaders, ascending by leader.
	Segments []SegmentStatus
	// Banned are the voters that do not lead, ascending.
	Banned []MemberID
	// BannedUntil says of each of these in which epoch it leads again, if no one is suspected before; 0: it is not banned,
	// but there are too many voters.
	BannedUntil []uint64
	// Slots are those that came into the log in this incarnation of the member. Skipped are those of them that have no
	// value.
	Slots, Skipped uint64
}

// SegmentStatus is the member's view of the slots of one leader.
type SegmentStatus struct {
	Leader MemberID
	Last   Index
	// Decided: all of its slots up to here are decided.
	Decided Index
	Slots   int
	// Skipped are slots that are decided and have no value.
	Skipped int
	// Ballot is the highest one in which this member takes part; 0: the leader proposes itself. By opened it; 0: the
	// member is gone.
	Ballot uint64
	By     MemberID
}
