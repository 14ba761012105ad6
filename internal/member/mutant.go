package member

// Mutant names a deliberately unsafe variant of one rule of this package, for tests alone. The
// simulator must catch each of them. The field that holds one is named Mutant; "" breaks nothing.
// A name that a type does not know breaks nothing there, so one name can be handed to all types.
type Mutant string

// The mutants; Mutants says what each does.
const (
	MutantClientOvertakes   Mutant = "client-overtakes"
	MutantUnconfirmed       Mutant = "operation-unconfirmed"
	MutantReleaseEarly      Mutant = "release-before-durable"
	MutantDurableEarly      Mutant = "durable-when-submitted"
	MutantReadBeforeApplied Mutant = "read-before-applied"
	MutantOldClock          Mutant = "old-clock"
	MutantNoSessions        Mutant = "no-sessions"
	MutantForgetSessions    Mutant = "forget-sessions"
	MutantForgetSections    Mutant = "forget-sections"
	MutantGroupAsOne        Mutant = "group-as-one"
	MutantSessionOfInstance Mutant = "weave-session-of-instance"
	MutantLowEarly          Mutant = "low-passes-unsettled"
	MutantReadOne           Mutant = "weave-read-one"
	MutantMix               Mutant = "weave-mix"
	MutantCutCommitted      Mutant = "weave-cut-committed"
	MutantHasty             Mutant = "weave-hasty"
	MutantDepartAny         Mutant = "weave-depart-any"
	MutantKeepNothing       Mutant = "keep-nothing"
	MutantGiveUpEarly       Mutant = "weave-give-up-early"
	MutantAnyLog            Mutant = "identity-unchecked"
	MutantForgetful         Mutant = "identity-in-memory"
	MutantAnyLife           Mutant = "life-unchecked"
	MutantTrimUncounted     Mutant = "code-trim-uncounted"
	MutantTrimByApplied     Mutant = "code-trim-by-applied"
	MutantReshapeUnchecked  Mutant = "weave-reshape-unchecked"
	MutantSweepReferenced   Mutant = "code-sweep-referenced"
	MutantRestoreRow        Mutant = "code-restore-row"
	MutantNoGuests          Mutant = "no-guests"
	MutantForgetPending     Mutant = "weave-forget-pending"
	MutantPlanEarly         Mutant = "weave-plan-early"
	MutantOfferEarly        Mutant = "snapshot-before-durable"
	MutantAnyState          Mutant = "any-state"
	MutantNeedsNoFile       Mutant = "needs-no-file"
	MutantTokensUnchecked   Mutant = "tokens-unchecked"
	MutantAnyGroup          Mutant = "keyed-any-group"
	MutantSessionOfAll      Mutant = "keyed-session-of-all"
	MutantWholeSnapshot     Mutant = "keyed-whole-snapshot"
	MutantStateUnchecked    Mutant = "state-unchecked"
	MutantTurnedAway        Mutant = "turned-away"
	MutantWithdrawSent      Mutant = "withdraw-sent"
	MutantGivenUnused       Mutant = "given-unused"
	MutantToldUnused        Mutant = "told-unused"
	MutantAnyBirth          Mutant = "birth-unchecked"
	MutantAdoptNothing      Mutant = "birth-not-adopted"
	MutantAnyLineage        Mutant = "lineage-unchecked"
)

// MutantInfo describes a mutant. Where is the type that holds the field.
type MutantInfo struct {
	Name        Mutant
	Where, Does string
}

// Mutants lists all of them.
var Mutants = [...]MutantInfo{
	{MutantClientOvertakes, "ClientQueue", "two batches of a client are unsettled at a time"},
	{MutantUnconfirmed, "Execution", "an operation counts as done if it is in force as far as the member that was asked knows"},
	{MutantReleaseEarly, "Instance", "answers leave before the disk is done"},
	{MutantDurableEarly, "Hosted", "what is handed to the disk counts as durable"},
	{MutantReadBeforeApplied, "ReadVector", "a read is answered as soon as its points are known, before they are applied"},
	{MutantOldClock, "Clock", "everything in a turn of an event loop is judged by the time at which the turn began"},
	{MutantNoSessions, "Applier", "a proposal takes effect as often as it stands in the log"},
	{MutantForgetSessions, "Applier", "snapshots do not say which proposals took effect"},
	{MutantForgetSections, "Applier", "a snapshot that is installed leaves what the core derived from its log as it was"},
	{MutantGroupAsOne, "Applier", "all batches of a group are known by the numbers of its first one"},
	{MutantSessionOfInstance, "Sessions", "each instance remembers by itself what took effect"},
	{MutantLowEarly, "Proposals", "a batch says of those before it that they are settled"},
	{MutantReadOne, "ReadVector", "one instance alone is asked for a read point"},
	{MutantMix, "Applier", "a snapshot's place is taken in one instance alone"},
	{MutantCutCommitted, "LogKeeper", "logs are cut at what is committed, not at a snapshot's points"},
	{MutantHasty, "Instance", "a leader's skip is in the order as soon as it is appended"},
	{MutantDepartAny, "Departure", "a member that one instance removed stops, whatever the others decided"},
	{MutantKeepNothing, "LogKeeper", "the log is cut whoever is being sent a snapshot"},
	{MutantGiveUpEarly, "Hosted", "the log of a retired instance is given up when the newest snapshot does not need it"},
	{MutantAnyLog, "Register", "a member with another log is taken for the one that was known"},
	{MutantForgetful, "Register", "with whom there was a link is forgotten at a restart"},
	{MutantAnyLife, "Register", "an earlier life of a member is taken for a later one"},
	{MutantTrimUncounted, "HolderCount", "a whole copy becomes a row whatever the others hold"},
	{MutantTrimByApplied, "Bodies", "a whole copy becomes a row by the membership that is applied, whatever the log says"},
	{MutantReshapeUnchecked, "Execution", "a change of the number of instances that is proposed again is not checked again"},
	{MutantSweepReferenced, "Kept", "a body is given up with its entry, although the state refers to it"},
	{MutantRestoreRow, "Bodies", "a whole copy that is damaged is restored as a row"},
	{MutantForgetPending, "Instances", "an instance begins as if the log had nothing of it"},
	{MutantPlanEarly, "Planner", "instances are retired as soon as the change is committed, not when the global log has come there"},
	{MutantNoGuests, "Links", "a member has no link to one that it does not know, although that one has a link to it"},
	{MutantGivenUnused, "Links", "the URLs of the membership take the place of those that were given at the start"},
	{MutantToldUnused, "Links", "a member that moved is looked for where the membership says, although it has a link and says where it is"},
	{MutantAnyState, "StateExchange", "a damaged state is replaced by any other, also by one that is behind it"},
	{MutantNeedsNoFile, "DiskNeed", "a member needs no more of the disk for files of its log and bodies than these have"},
	{MutantTokensUnchecked, "Applier", "the commands of all tokens count as applied"},
	{MutantAnyGroup, "Proposals", "a group that has nothing to do takes commands of another group"},
	{MutantSessionOfAll, "Sessions", "groups share what they remember of what took effect"},
	{MutantWholeSnapshot, "Applier", "a snapshot takes the place of all groups, also of those in which it is behind"},
	{MutantStateUnchecked, "Applier", "a state on disk may be further than the log, whatever the log goes on with"},
	{MutantTurnedAway, "Instance", "what a removed leader refuses fails, at members that stay"},
	{MutantWithdrawSent, "Proposals", "a command is withdrawn although its batch was proposed"},
	{MutantAnyBirth, "Handshakes", "members whose clusters began with different states are linked"},
	{MutantAdoptNothing, "Handshakes", "a member that joins keeps its empty state, although the cluster began with another"},
	{MutantAnyLineage, "Register", "a member whose log is of another lineage is taken for one of this log"},
	{MutantOfferEarly, "StateExchange", "instances are offered a snapshot before it is on the disk"},
}
