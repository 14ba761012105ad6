package member

import "github.com/braidlog/braid/internal/mutant"

// The mutants; Mutants says what each does.
const (
	MutantClientOvertakes   mutant.Name = "client-overtakes"
	MutantUnconfirmed       mutant.Name = "operation-unconfirmed"
	MutantReleaseEarly      mutant.Name = "release-before-durable"
	MutantDurableEarly      mutant.Name = "durable-when-submitted"
	MutantReadBeforeApplied mutant.Name = "read-before-applied"
	MutantOldClock          mutant.Name = "old-clock"
	MutantNoSessions        mutant.Name = "no-sessions"
	MutantForgetSessions    mutant.Name = "forget-sessions"
	MutantForgetSections    mutant.Name = "forget-sections"
	MutantGroupAsOne        mutant.Name = "group-as-one"
	MutantSessionOfInstance mutant.Name = "weave-session-of-instance"
	MutantLowEarly          mutant.Name = "low-passes-unsettled"
	MutantReadOne           mutant.Name = "weave-read-one"
	MutantReadShort         mutant.Name = "weave-read-short"
	MutantBarrierAdded      mutant.Name = "barrier-before-place"
	MutantReplacesOwed      mutant.Name = "ends-earlier-incarnation-early"
	MutantMix               mutant.Name = "weave-mix"
	MutantCutCommitted      mutant.Name = "weave-cut-committed"
	MutantHasty             mutant.Name = "weave-hasty"
	MutantDepartAny         mutant.Name = "weave-depart-any"
	MutantKeepNothing       mutant.Name = "keep-nothing"
	MutantGiveUpEarly       mutant.Name = "weave-give-up-early"
	MutantAnyLog            mutant.Name = "identity-unchecked"
	MutantForgetful         mutant.Name = "identity-in-memory"
	MutantAnyLife           mutant.Name = "life-unchecked"
	MutantTrimUncounted     mutant.Name = "code-trim-uncounted"
	MutantTrimByApplied     mutant.Name = "code-trim-by-applied"
	MutantReshapeUnchecked  mutant.Name = "weave-reshape-unchecked"
	MutantGrowUnproven      mutant.Name = "weave-grow-unproven"
	MutantRaiseUnproven     mutant.Name = "format-raise-unproven"
	MutantSweepReferenced   mutant.Name = "code-sweep-referenced"
	MutantRestoreRow        mutant.Name = "code-restore-row"
	MutantNoGuests          mutant.Name = "no-guests"
	MutantForgetPending     mutant.Name = "weave-forget-pending"
	MutantPlanEarly         mutant.Name = "weave-plan-early"
	MutantOfferEarly        mutant.Name = "snapshot-before-durable"
	MutantAnyState          mutant.Name = "any-state"
	MutantNeedsNoFile       mutant.Name = "needs-no-file"
	MutantTokensUnchecked   mutant.Name = "tokens-unchecked"
	MutantAnyGroup          mutant.Name = "keyed-any-group"
	MutantSessionOfAll      mutant.Name = "keyed-session-of-all"
	MutantWholeSnapshot     mutant.Name = "keyed-whole-snapshot"
	MutantStateUnchecked    mutant.Name = "state-unchecked"
	MutantTurnedAway        mutant.Name = "turned-away"
	MutantWithdrawSent      mutant.Name = "withdraw-sent"
	MutantGivenUnused       mutant.Name = "given-unused"
	MutantToldUnused        mutant.Name = "told-unused"
	MutantAnyBirth          mutant.Name = "birth-unchecked"
	MutantAdoptNothing      mutant.Name = "birth-not-adopted"
	MutantAnyLineage        mutant.Name = "lineage-unchecked"
	MutantBeginUnclosed     mutant.Name = "seal-begin-unclosed"
	MutantEndsUnnamed       mutant.Name = "seal-ends-unnamed"
	MutantSnapshotByIndex   mutant.Name = "seal-snapshot-by-index"
	MutantNumberedAgain     mutant.Name = "seal-numbered-again"
	MutantSealsForget       mutant.Name = "seal-forgets-sessions"
	MutantSealUnanswered    mutant.Name = "seal-unanswered"
	MutantDrainUnheeded     mutant.Name = "drain-unheeded"
	MutantDrainOnce         mutant.Name = "drain-announced-once"
	MutantDrainToDrained    mutant.Name = "drain-to-drained"
)

// The mutants that scripts find (lifecycle/testdata/verdict): no member proposes a seal that only the verdict refuses.
const (
	// MutantAnyVersion has a seal count whatever profile it replaces. MutantFirstMembers has one count although an
	// instance besides the first one has other members.
	MutantAnyVersion   mutant.Name = "seal-any-version"
	MutantFirstMembers mutant.Name = "seal-first-members"
)

// Clusters in which several of them are found.
var (
	inNiagara = mutant.Cluster{Protocol: "niagara"}
	// mergedLanes are logs of lcr that get other instances.
	mergedLanes = mutant.Cluster{Protocol: "lcr", Instances: 1}
	slots       = mutant.Cluster{Protocol: "slotpaxos"}
	codedFive   = mutant.Cluster{Protocol: "craft", Nodes: 5}
	keyed       = mutant.Cluster{Protocol: "multi-raft"}
)

// Mutants lists all of them.
var Mutants = [...]mutant.Info{
	{Name: MutantClientOvertakes, Where: "ClientQueue", Does: "two batches of a client are unsettled at a time"},
	{Name: MutantUnconfirmed, Where: "Execution",
		Does: "an operation counts as done if it is in force as far as the member that was asked knows", In: inNiagara},
	{Name: MutantReleaseEarly, Where: "Instance", Does: "answers leave before the disk is done"},
	{Name: MutantDurableEarly, Where: "Hosted", Does: "what is handed to the disk counts as durable"},
	{Name: MutantReadBeforeApplied, Where: "ReadVector",
		Does: "a read is answered as soon as its points are known, before they are applied"},
	{Name: MutantOldClock, Where: "Clock",
		Does: "everything in a turn of an event loop is judged by the time at which the turn began"},
	{Name: MutantNoSessions, Where: "Applier", Does: "a proposal takes effect as often as it stands in the log"},
	{Name: MutantForgetSessions, Where: "Applier", Does: "snapshots do not say which proposals took effect"},
	{Name: MutantForgetSections, Where: "Applier",
		Does: "a snapshot that is installed leaves what the core derived from its log as it was", In: slots},
	{Name: MutantGroupAsOne, Where: "Applier", Does: "all batches of a group are known by the numbers of its first one",
		In: slots},
	{Name: MutantSessionOfInstance, Where: "Sessions", Does: "each instance remembers by itself what took effect",
		In: inNiagara},
	{Name: MutantLowEarly, Where: "Proposals", Does: "a batch says of those before it that they are settled"},
	{Name: MutantReadShort, Where: "ReadVector",
		Does: "a read that asked one instance does not wait for slots of others behind its last one", In: inNiagara},
	{Name: MutantReadOne, Where: "ReadVector", Does: "one instance alone is asked for a read point", In: inNiagara},
	{Name: MutantBarrierAdded, Where: "ReadGroups",
		Does: "a barrier read does not wait until the first instance's entries have their place", In: mergedLanes},
	{Name: MutantReplacesOwed, Where: "Hosted", Does: "a new incarnation ends the earlier ones by an instance without " +
		"lanes, although not all that they had accepted is applied",
		In: mutant.Cluster{Protocol: "lcr", Instances: 1, Seeds: 5000}},
	{Name: MutantMix, Where: "Applier", Does: "a snapshot's place is taken in one instance alone", In: inNiagara},
	{Name: MutantCutCommitted, Where: "LogKeeper", Does: "logs are cut at what is committed, not at a snapshot's points",
		In: inNiagara},
	{Name: MutantHasty, Where: "Instance", Does: "a leader's skip is in the order as soon as it is appended",
		In: inNiagara},
	{Name: MutantDepartAny, Where: "Departure",
		Does: "a member that one instance removed stops, whatever the others decided", In: inNiagara},
	{Name: MutantKeepNothing, Where: "LogKeeper", Does: "the log is cut whoever is being sent a snapshot"},
	{Name: MutantGiveUpEarly, Where: "Hosted",
		Does: "the log of a retired instance is given up when the newest snapshot does not need it", In: inNiagara},
	{Name: MutantAnyLog, Where: "Register", Does: "a member with another log is taken for the one that was known"},
	{Name: MutantForgetful, Where: "Register", Does: "with whom there was a link is forgotten at a restart"},
	{Name: MutantAnyLife, Where: "Register", Does: "an earlier life of a member is taken for a later one"},
	{Name: MutantTrimUncounted, Where: "HolderCount", Does: "a whole copy becomes a row whatever the others hold",
		In: codedFive},
	{Name: MutantTrimByApplied, Where: "Bodies",
		Does: "a whole copy becomes a row by the membership that is applied, whatever the log says",
		In:   mutant.Cluster{Protocol: "craft", Nodes: 4}},
	{Name: MutantReshapeUnchecked, Where: "Execution",
		Does: "a change of the number of instances that is proposed again is not checked again",
		In:   mutant.Cluster{Protocol: "niagara", Placement: "code", Nodes: 4}},
	{Name: MutantGrowUnproven, Where: "Execution",
		Does: "a log of one instance gets others before it has a profile, so members may not know what that means",
		In:   mutant.Cluster{Instances: 1}},
	{Name: MutantRaiseUnproven, Where: "Handshakes",
		Does: "the leader raises the format of the log to the one that it knows, without regard to what others know"},
	{Name: MutantSweepReferenced, Where: "Kept",
		Does: "a body is given up with its entry, although the state refers to it", In: codedFive},
	{Name: MutantRestoreRow, Where: "Bodies", Does: "a whole copy that is damaged is restored as a row", In: codedFive},
	{Name: MutantForgetPending, Where: "Instances", Does: "an instance begins as if the log had nothing of it",
		In: inNiagara},
	{Name: MutantPlanEarly, Where: "Planner",
		Does: "instances are retired as soon as the change is committed, not when the global log has come there",
		In:   inNiagara},
	{Name: MutantNoGuests, Where: "Links",
		Does: "a member has no link to one that it does not know, although that one has a link to it"},
	{Name: MutantGivenUnused, Where: "Links",
		Does: "the URLs of the membership take the place of those that were given at the start"},
	{Name: MutantToldUnused, Where: "Links",
		Does: "a member that moved is looked for where the membership says, although it has a link and says where it is"},
	{Name: MutantAnyState, Where: "StateExchange",
		Does: "a damaged state is replaced by any other, also by one that is behind it"},
	{Name: MutantNeedsNoFile, Where: "DiskNeed",
		Does: "a member needs no more of the disk for files of its log and bodies than these have"},
	{Name: MutantTokensUnchecked, Where: "Applier", Does: "the commands of all tokens count as applied", In: slots},
	{Name: MutantAnyGroup, Where: "Proposals", Does: "a group that has nothing to do takes commands of another group",
		In: keyed},
	{Name: MutantSessionOfAll, Where: "Sessions", Does: "groups share what they remember of what took effect", In: keyed},
	{Name: MutantWholeSnapshot, Where: "Applier",
		Does: "a snapshot takes the place of all groups, also of those in which it is behind", In: keyed},
	{Name: MutantStateUnchecked, Where: "Applier",
		Does: "a state on disk may be further than the log, whatever the log goes on with"},
	{Name: MutantTurnedAway, Where: "Instance", Does: "what a removed leader refuses fails, at members that stay"},
	{Name: MutantWithdrawSent, Where: "Proposals", Does: "a command is withdrawn although its batch was proposed"},
	{Name: MutantAnyBirth, Where: "Handshakes", Does: "members whose clusters began with different states are linked"},
	{Name: MutantAdoptNothing, Where: "Handshakes",
		Does: "a member that joins keeps its empty state, although the cluster began with another"},
	{Name: MutantAnyLineage, Where: "Register",
		Does: "a member whose log is of another lineage is taken for one of this log"},
	{Name: MutantBeginUnclosed, Where: "Instances",
		Does: "instances begin behind a seal, and the old ones are not closed"},
	{Name: MutantEndsUnnamed, Where: "Instances",
		Does: "the first records behind a seal do not say which instances ended"},
	{Name: MutantSnapshotByIndex, Where: "SnapshotIntake",
		Does: "a snapshot is behind if its index is, whatever was sealed between"},
	{Name: MutantNumberedAgain, Where: "Proposals",
		Does: "a batch that is proposed again, through another instance, has other numbers"},
	{Name: MutantSealsForget, Where: "Applier",
		Does: "behind a seal no one knows which proposals took effect before it"},
	{Name: MutantSealUnanswered, Where: "Hosted",
		Does: "a member that is behind a seal gets no answer from others, and asks for none"},
	{Name: MutantDrainUnheeded, Where: "Hosted",
		Does: "an instance is handed over to the member that is preferred, although it is drained", In: inNiagara},
	{Name: MutantDrainOnce, Where: "DrainNotice",
		Does: "a drained member announces it once, so others forget it", In: inNiagara},
	{Name: MutantDrainToDrained, Where: "StopHandover", Does: "a drained member hands over to another drained one",
		In: mutant.Cluster{Nodes: 5}},
	{Name: MutantOfferEarly, Where: "StateExchange", Does: "instances are offered a snapshot before it is on the disk"},
}
