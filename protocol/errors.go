package protocol

import "fmt"

// Reason explains why an input was refused. Every reason states whether the request certainly had no effect, and
// whether a retry is sensible.
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
	// ReasonInvalidChange: the membership change is invalid. Do not retry it unchanged.
	ReasonInvalidChange
	// ReasonUnsafeChange: the change would leave too few members up to date or
	// reachable to decide anything. Retry when they are.
	ReasonUnsafeChange
	// ReasonTooLarge: the entry exceeds the limit. Do not retry it unchanged.
	ReasonTooLarge
	// ReasonRemoved: this member is not part of the cluster any more. Final.
	ReasonRemoved
	// ReasonBodies: with the members after the change, bodies of committed entries would
	// have too few holders. Retry when members have caught up, or write the values again.
	ReasonBodies
	// ReasonRestriping: the change waits until enough members hold whole copies of bodies whose
	// rows would be too few after it. They are being made. Retry later.
	ReasonRestriping
	// ReasonPeerURLTaken: another member has one of the peer URLs. Do not retry it unchanged.
	ReasonPeerURLTaken
	// ReasonMalformed: the proposal is inconsistent. The proposer has a bug or faulty memory. Do not retry it
	// unchanged.
	ReasonMalformed
	// ReasonLeaderFollows: leadership is not transferred, because the log determines the leader. Final.
	ReasonLeaderFollows
	// ReasonQuorums: the configured quorums do not intersect, or are impossible, with the new number of voters. Do not
	// retry it unchanged.
	ReasonQuorums
	// ReasonFixed: the members of this protocol cannot change. Final.
	ReasonFixed
	// ReasonUnknownMember: the membership has no member with this id. Do not retry it unchanged.
	ReasonUnknownMember
	// ReasonRemovedID: a member with this id was removed, and ids are never used again. Do not retry with this id.
	ReasonRemovedID
	// ReasonMemberKnown: the member is one already. UpdateMember changes its name and addresses. Do not retry it
	// unchanged.
	ReasonMemberKnown
	// ReasonLastVoter: no voter would be left. Do not retry it unchanged.
	ReasonLastVoter
	// ReasonNotVoter: leadership goes to voters only. Retry when the member votes.
	ReasonNotVoter
	// ReasonNoAnswer: the target of the transfer has no connection to the leader. Nothing happened; retry when it has.
	ReasonNoAnswer
	// ReasonPeerURL: a peer URL is not of the form http://host:port or https://host:port, or a new member has none. Do
	// not retry it unchanged.
	ReasonPeerURL
	// ReasonNoChange: no change was asked for, or two of the same member. Do not retry it unchanged.
	ReasonNoChange
	// ReasonLineage: the member has a log of its own, which was founded apart from this one. Do not retry before it has
	// an empty directory.
	ReasonLineage
	// ReasonMemberID: the change has a member without an id. Do not retry it unchanged.
	ReasonMemberID
	// ReasonChangeKind: there is no such kind of membership change. Do not retry it unchanged.
	ReasonChangeKind
	// ReasonMembersUsedUp: the cluster has used up its ids of members, over all its history. Final.
	ReasonMembersUsedUp
	// ReasonInstances: the log is not merged from instances, or cannot be merged from that number of them. Do not retry
	// it unchanged.
	ReasonInstances
	// ReasonProfile: another profile than the one that is to be replaced is active. Look at the active one before a
	// retry.
	ReasonProfile
	// ReasonSettings: this protocol cannot have the settings of the profile, or cannot change to them while it runs. Do
	// not retry it unchanged.
	ReasonSettings
	// ReasonZone: the zone is not a name, see [CheckZone]. Do not retry it unchanged.
	ReasonZone
	// ReasonZones: the quorums are by zones, and the voters would not be in as many zones as the quorums have, or some
	// of them would have no zone. Do not retry it unchanged.
	ReasonZones
	// ReasonNoProfile: the log has no profile yet, so members may run an earlier version, which would apply another log
	// after the change. Retry when the log has a profile: the leader proposes it once all members know profiles.
	ReasonNoProfile
	// ReasonEarlier: a member runs an earlier version, which knows no profiles, or no seals, or may run one, because it
	// has no link and the log has no profile yet, or never had a seal. Retry when all members have links and the new
	// version.
	ReasonEarlier
	// ReasonSealing: the log is being sealed, see [Seal], or it is and continues in other instances. Nothing happened;
	// retry soon.
	ReasonSealing
	// ReasonNoListener: the member that is asked to add another one accepts no connections, so the other one could not
	// reach it. Do not retry it before the member was opened with an address to listen on.
	ReasonNoListener
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
	ReasonUnknownMember: "there is no member with this id",
	ReasonRemovedID:     "a member with this id was removed, and ids never come back",
	ReasonMemberKnown:   "the member is one already, UpdateMember changes its addresses",
	ReasonLastVoter:     "nobody would vote any more",
	ReasonNotVoter:      "the member does not vote",
	ReasonNoAnswer:      "the member is down or cut off",
	ReasonPeerURL:       "a member needs peer URLs of the form http://host:port or https://host:port",
	ReasonLineage:       "the member has a log of its own, which was founded apart from this one",
	ReasonNoChange:      "there is no change, or there are two of one member",
	ReasonMemberID:      "a member has no id, or the id 0",
	ReasonChangeKind:    "there is no such kind of membership change",
	ReasonMembersUsedUp: fmt.Sprintf("the cluster has had %d members, as many as it can", Rows),
	ReasonZone:          zoneText,
	ReasonSealing:       "the log is being sealed",
	ReasonNoListener:    "this member was opened without an address to listen on, so no other member can connect to it",
	ReasonZones:         "the cluster's quorums are by zones: every voter needs one, and their number is fixed",
	ReasonNoProfile:     "the log has no profile yet, so members may run a version that ignores the change",
	ReasonEarlier:       "a member runs an earlier version, or is away and may run one, which cannot follow",
	ReasonInstances:     "the log is not merged from instances, or not from that number of them",
	ReasonProfile:       "the settings were changed meanwhile",
	ReasonSettings:      "the protocol cannot have these settings, or cannot change to them while it runs",
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
	case ReasonNoLeader, ReasonNotLeader, ReasonOverloaded, ReasonTransferring, ReasonChangePending, ReasonUnsafeChange,
		ReasonBodies, ReasonRestriping, ReasonNoAnswer, ReasonEarlier, ReasonSealing:
		return true
	}
	return false
}

// DivergedError indicates that the log of another member differs from this member's below what is decided here: they
// are different logs. The member used nothing of the other log, and stops. A retry does not help: one of the two must
// be replaced.
type DivergedError struct {
	Instance InstanceID
	From     MemberID
	// Index is the position of the difference. If no single entry was compared, it is the last index of the range that
	// differs.
	Index Index
	// Term is that of this member's entry at Index, and Other that of the other one's; 0: no single entry was compared.
	Term, Other Term
}

func (e *DivergedError) Error() string {
	if e.Term == 0 {
		return fmt.Sprintf("braid: the log of member %s differs from what this member has decided, at index %d of instance "+
			"%d or before: they are two logs",
			e.From, e.Index, e.Instance)
	}
	return fmt.Sprintf("braid: the log of member %s has another entry at index %d of instance %d (term %d) than this "+
		"member has decided (term %d): they are two logs",
		e.From, e.Index, e.Instance, e.Other, e.Term)
}

// CorruptError indicates that bytes are not those that were written. They are never used; whether to retry depends on
// their source (a connection: yes; a disk: no).
type CorruptError struct {
	What   string // what was being read
	Detail string
}

func (e *CorruptError) Error() string { return "corrupt " + e.What + ": " + e.Detail }
