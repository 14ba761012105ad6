package multipaxos

import (
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// The mutants.
const (
	MutantAcceptBelowPromise protocol.Mutant = "paxos-accept-below-promise"
	MutantPromiseEarly       protocol.Mutant = "paxos-promise-early"
	MutantAcceptedEarly      protocol.Mutant = "paxos-accepted-early"
	MutantPromiseForgets     protocol.Mutant = "paxos-promise-forgets"
	MutantPromiseUndecided   protocol.Mutant = "paxos-promise-leaves-out-decided"
	MutantPromiseFirstPart   protocol.Mutant = "paxos-promise-first-part"
	MutantOwnValue           protocol.Mutant = "paxos-own-value"
	MutantAnyFound           protocol.Mutant = "paxos-any-found"
	MutantCountOlderBallot   protocol.Mutant = "paxos-count-older-ballot"
	MutantLearnOlderBallot   protocol.Mutant = "paxos-learn-older-ballot"
	MutantBallotReused       protocol.Mutant = "paxos-ballot-reused"
	MutantReadAlone          protocol.Mutant = "paxos-read-alone"
	MutantReadBelowFloor     protocol.Mutant = "paxos-read-below-floor"
	MutantChangeEarly        protocol.Mutant = "paxos-change-early"
	MutantSettleAtOnce       protocol.Mutant = "paxos-settle-at-once"
	MutantChangeLosesBodies  protocol.Mutant = "paxos-change-loses-bodies"
	MutantRelayEarly         protocol.Mutant = "paxos-relay-early"
	MutantRelayListsSilent   protocol.Mutant = "paxos-relay-lists-silent"
	MutantElectTooFew        protocol.Mutant = "paxos-elect-too-few"
	MutantCommitLate         protocol.Mutant = "paxos-commit-late"
	MutantChangeUnasked      protocol.Mutant = "paxos-change-unasked"
	MutantLeadUnasked        protocol.Mutant = "paxos-lead-unasked"
	MutantProfileForgotten   protocol.Mutant = "paxos-profile-forgotten"
	MutantSealKeepsReads     protocol.Mutant = "paxos-seal-keeps-reads"
	MutantProposeBehindSeal  protocol.Mutant = "paxos-propose-behind-seal"
	MutantClosedTakesPart    protocol.Mutant = "paxos-closed-takes-part"
)

// twoRelays are clusters in which mutants of relays are found.
var twoRelays = mutant.Cluster{Nodes: 5, Settings: setting.MustParse("relays=2")}

// Mutants lists all of them.
var Mutants = [...]protocol.MutantInfo{
	{Name: MutantAcceptBelowPromise, Does: "an acceptor accepts entries under a ballot below the one that it promised"},
	{Name: MutantPromiseEarly, Does: "an acceptor sends its promise before that is durable"},
	{Name: MutantAcceptedEarly, Does: "an acceptor acknowledges entries before they are durable"},
	{Name: MutantPromiseForgets, Does: "a promise leaves out what the acceptor has accepted"},
	{Name: MutantPromiseUndecided, Does: "a promise leaves out the slots that the acceptor knows to be decided"},
	{Name: MutantPromiseFirstPart, Does: "a promise counts when its first part has arrived", In: mutant.Cluster{Nodes: 5}},
	{Name: MutantOwnValue,
		Does: "a new leader proposes no-ops and entries of its own although promises report accepted ones"},
	{Name: MutantAnyFound,
		Does: "a new leader proposes the accepted entry that was reported last, not the one with the highest ballot"},
	{Name: MutantCountOlderBallot,
		Does: "an acceptor that accepted an entry under an older ballot lets it count under the new one"},
	{Name: MutantLearnOlderBallot, Does: "a member takes what it accepted under an older ballot as decided"},
	{Name: MutantBallotReused,
		Does: "a member sends messages under a ballot before that is durable, and may use it twice"},
	{Name: MutantReadAlone, Does: "a leader serves reads without asking a quorum"},
	{Name: MutantReadBelowFloor, Does: "a new leader serves reads before it knows what was decided before it"},
	{Name: MutantChangeEarly,
		Does: "a configuration is active on each member when it is accepted there, not when it is decided"},
	{Name: MutantSettleAtOnce, Does: "a configuration is committed before its own voters have it"},
	{Name: MutantChangeLosesBodies, Does: "the membership changes although the new voters are missing bodies",
		In: mutant.Cluster{Nodes: 1}},
	{Name: MutantRelayEarly, Does: "a relay lists what it accepted itself before that is durable", In: twoRelays},
	{Name: MutantRelayListsSilent, Does: "a relay lists members of its group that did not answer", In: twoRelays},
	{Name: MutantElectTooFew,
		Does: "a member leads with the promises of as many as decide, not as many as elect (--quorums)",
		In:   mutant.Cluster{Nodes: 5, Settings: setting.MustParse("quorums=4/2")}},
	{Name: MutantLeadUnasked, Does: "a member to which leadership is transferred leads without promises"},
	{Name: MutantCommitLate,
		Does: "a member drops decided entries if the same message shows that what it accepted before is decided"},
}

// scripted are mutants that need a certain order of events, which random runs hardly find. A script plays it.
var scripted = [...]protocol.MutantInfo{
	{Name: MutantChangeUnasked, Does: "a leader proposes to other voters without asking them for promises first"},
	{Name: MutantProfileForgotten, Does: "a member that restarts has the settings of its flags, not those of the log"},
	{Name: MutantSealKeepsReads, Does: "a leader answers reads after a seal is decided"},
	{Name: MutantProposeBehindSeal, Does: "a leader proposes more behind a seal without a verdict"},
	{Name: MutantClosedTakesPart, Does: "a member promises and accepts after the seal counted"},
}
