package protocol

import "fmt"

// Reason says why an input was refused. Every reason tells whether the refused thing
// certainly did not happen, and whether trying again is sensible.
type Reason uint8

// Reasons of refusal.
const (
	// ReasonNone is the zero value: not refused.
	ReasonNone Reason = iota
	// ReasonNoLeader: no leader is known. Nothing happened; retry later.
	ReasonNoLeader
	// ReasonNotLeader: this member cannot decide it; ask Leader. Nothing happened here.
	ReasonNotLeader
	// ReasonOverloaded: a queue is at its limit in bytes. Nothing happened; retry later.
	ReasonOverloaded
	// ReasonTransferring: leadership is being handed over. Nothing happened; retry soon.
	ReasonTransferring
	// ReasonChangePending: an earlier membership change is not finished. Retry later.
	ReasonChangePending
	// ReasonInvalidChange: the membership change makes no sense. Do not retry as it is.
	ReasonInvalidChange
	// ReasonUnsafeChange: the change would leave too few members up to date or
	// reachable to decide anything. Retry when they are.
	ReasonUnsafeChange
	// ReasonTooLarge: the entry exceeds the limit. Do not retry as it is.
	ReasonTooLarge
	// ReasonRemoved: this member is not part of the cluster any more. Final.
	ReasonRemoved
	// ReasonBodies: with the members after the change, bodies of committed entries would
	// have too few holders. Retry when members have caught up, or write the values again.
	ReasonBodies
	// ReasonRestriping: the change waits until enough members hold whole copies of bodies whose
	// rows would be too few after it. They are being made. Retry later.
	ReasonRestriping
	// ReasonPeerURLTaken: another member has one of the peer URLs. Do not retry as it is.
	ReasonPeerURLTaken
	// ReasonMalformed: the proposal is not what it says it is. Whoever made it has a fault, or
	// its memory. Do not retry as it is.
	ReasonMalformed
	// ReasonLeaderFollows: leadership is not handed over, because who leads follows from the log. Final.
	ReasonLeaderFollows
	// ReasonQuorums: with so many voters the quorums that the cluster was given do not meet, or there are none. Do not
	// retry as it is.
	ReasonQuorums
	// ReasonFixed: in this protocol the members do not change. Final.
	ReasonFixed
)

var reasonTexts = [...]string{
	ReasonNone: "none", ReasonNoLeader: "no leader", ReasonNotLeader: "not the leader", ReasonOverloaded: "overloaded",
	ReasonTransferring: "leadership transfer in progress", ReasonChangePending: "membership change in progress",
	ReasonInvalidChange: "invalid membership change", ReasonUnsafeChange: "membership change would endanger the quorum",
	ReasonTooLarge: "too large", ReasonRemoved: "member removed from the cluster",
	ReasonBodies:     "membership change would leave large values with too few holders",
	ReasonRestriping: "membership change waits for whole copies of large values",

	ReasonPeerURLTaken: "another member has one of the peer URLs",
	ReasonMalformed:    "malformed",

	ReasonQuorums:       "the cluster's quorums do not fit so many voters",
	ReasonFixed:         "the members do not change in this protocol",
	ReasonLeaderFollows: "the leader follows from the log: it is the one of the epoch's leaders that was suspected least",
}

func (r Reason) String() string {
	if int(r) < len(reasonTexts) {
		return reasonTexts[r]
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// Retryable reports whether the same request may succeed later.
func (r Reason) Retryable() bool {
	switch r {
	case ReasonNoLeader, ReasonNotLeader, ReasonOverloaded, ReasonTransferring, ReasonChangePending, ReasonUnsafeChange, ReasonBodies,
		ReasonRestriping:
		return true
	}
	return false
}

// CorruptError says that bytes are not what was written. They are never used; whether
// to retry depends on where they came from (a link: yes; a disk: no).
type CorruptError struct {
	What   string // what was being read
	Detail string
}

func (e *CorruptError) Error() string { return "corrupt " + e.What + ": " + e.Detail }
