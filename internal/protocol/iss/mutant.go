package iss

import (
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// The mutants of ISS.
const (
	MutantSkipElected    protocol.Mutant = "iss-skip-elected"
	MutantSkipLast       protocol.Mutant = "iss-skip-last"
	MutantStartedEarly   protocol.Mutant = "iss-started-early"
	MutantZeroReused     protocol.Mutant = "iss-zero-reused"
	MutantNeverFromDisk  protocol.Mutant = "iss-never-from-disk"
	MutantPromiseEarly   protocol.Mutant = "iss-promise-early"
	MutantVoteEarly      protocol.Mutant = "iss-vote-early"
	MutantHidesDecided   protocol.Mutant = "iss-promise-leaves-out-decided"
	MutantPromiseForgets protocol.Mutant = "iss-promise-forgets"
	MutantBallotReused   protocol.Mutant = "iss-ballot-reused"
	MutantLearnOlder     protocol.Mutant = "iss-learn-older-ballot"
	MutantPastDropped    protocol.Mutant = "iss-past-epochs-dropped"
	MutantClosedVotes    protocol.Mutant = "iss-closed-epoch-forgotten-early"
	MutantReadAlone      protocol.Mutant = "iss-read-alone"
	MutantSettleAtOnce   protocol.Mutant = "iss-settle-at-once"
	MutantLastWaits      protocol.Mutant = "iss-last-slot-waits"
	MutantElectTooFew    protocol.Mutant = "iss-elect-too-few"
	MutantWitnessAny     protocol.Mutant = "iss-votes-of-any-ballot"
	MutantLogUnsent      protocol.Mutant = "iss-log-unsent"
	MutantUsedUnheard    protocol.Mutant = "iss-used-unheard"
	MutantSkipInLastSlot protocol.Mutant = "iss-skip-in-last-slot"

	MutantProfileForgotten protocol.Mutant = "iss-profile-forgotten"
	MutantSealAtEntry      protocol.Mutant = "iss-seal-at-entry"
	MutantSealPassed       protocol.Mutant = "iss-seal-passed"
	MutantClosedTakesPart  protocol.Mutant = "iss-closed-takes-part"
	MutantSnapshotKept     protocol.Mutant = "iss-proposes-past-snapshot"
)

// twoRelays are clusters in which mutants of relays are found.
var twoRelays = mutant.Cluster{Nodes: 5, Settings: setting.MustParse("relays=2")}

// Mutants lists those that the simulator finds by chance.
var Mutants = [...]protocol.MutantInfo{
	{Name: MutantSkipElected, Does: "the ⊥ of an elected proposer is decided when it is sent"},
	{Name: MutantSkipLast, Does: "a leader skips the last slot of its segment too", In: mutant.Cluster{Nodes: 5}},
	{Name: MutantStartedEarly, Does: "a leader proposes before it is durable that it started the segment"},
	{Name: MutantZeroReused, Does: "a leader that restarted uses ballot 0 again"},
	{Name: MutantRelayEarly, Does: "a relay lists what it accepted itself in a segment before that is durable",
		In: twoRelays},
	{Name: MutantRelayListsSilent, Does: "a relay lists members of its group that did not answer in a segment",
		In: twoRelays},
	{Name: MutantVoteEarly, Does: "an acceptor of a segment acknowledges entries before they are durable"},
	{Name: MutantHidesDecided, Does: "a promise leaves out the slots that are known to be decided, and votes there"},
	{Name: MutantPromiseForgets, Does: "a promise leaves out what the acceptor of a segment has accepted"},
	{Name: MutantLearnOlder, Does: "a member takes what it accepted under another ballot as decided"},
	{Name: MutantPastDropped, Does: "messages of past epochs are dropped, and a member that is in one gets no answer"},
	{Name: MutantClosedVotes, Does: "a member drops its votes when an epoch ends, before the decisions are durable"},
	{Name: MutantReadAlone, Does: "a member serves reads without asking a quorum"},
	{Name: MutantSettleAtOnce, Does: "a configuration is committed before its own voters have it"},
	{Name: MutantLastWaits,
		Does: "an idle leader gives the last slot of its segment a value only when the epoch is ending"},
	{Name: MutantWitnessAny, Does: "a member that receives votes of others counts those of different ballots together"},
	{Name: MutantElectTooFew,
		Does: "a segment is revoked, and a read asked, with as many as decide, not as many as elect (--quorums)",
		In:   mutant.Cluster{Nodes: 5, Settings: setting.MustParse("quorums=4/2")}},
	{Name: MutantSkipInLastSlot, Does: "a skip or a seal may take the last slot of a segment",
		In: mutant.Cluster{Instances: 3,
			Settings: setting.MustParse("epochs=slots 8-64, shares by load, policy combined, bans 8-256")}},
	{Name: MutantLogUnsent, Does: "a leader sends nothing that its log has to members that are slower than a quorum"},
}

// scripted are mutants that need a certain order of events, which random runs hardly find. A script plays it.
var scripted = [...]protocol.MutantInfo{
	{Name: MutantNeverFromDisk,
		Does: "a leader that restarted declares that it never proposed where its disk has no vote"},
	{Name: MutantPromiseEarly, Does: "an acceptor of a segment sends its promise before that is durable"},
	{Name: MutantUsedUnheard, Does: "a leader uses up free slots only before values that their proposers send it"},
	{Name: MutantSealAtEntry, Does: "a seal ends the log where it stands, not at the end of its epoch"},
	{Name: MutantSealPassed, Does: "a member begins the next epoch behind a seal without its verdict"},
	{Name: MutantClosedTakesPart, Does: "a member takes part in the next epoch after a seal counted"},
	{Name: MutantSnapshotKept, Does: "a proposer continues although a snapshot has slots in which it proposed"},
	{Name: MutantProfileForgotten, Does: "a member that restarts has the settings of its flags, not those of the log"},
	{Name: MutantBallotReused,
		Does: "a member sends messages under a ballot of a segment before that is durable, and may use it twice"},
}
