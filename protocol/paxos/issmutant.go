package paxos

import "github.com/braidlog/braid/protocol"

// The mutants of ISS.
const (
	MutantSkipElected       protocol.Mutant = "iss-skip-elected"
	MutantSkipDeclared      protocol.Mutant = "iss-skip-declared-last"
	MutantSkipLast          protocol.Mutant = "iss-skip-last"
	MutantStartedEarly      protocol.Mutant = "iss-started-early"
	MutantZeroReused        protocol.Mutant = "iss-zero-reused"
	MutantNeverFromDisk     protocol.Mutant = "iss-never-from-disk"
	MutantNeverBroken       protocol.Mutant = "iss-never-broken"
	MutantISSPromiseEarly   protocol.Mutant = "iss-promise-early"
	MutantISSVoteEarly      protocol.Mutant = "iss-vote-early"
	MutantISSHidesDecided   protocol.Mutant = "iss-promise-leaves-out-decided"
	MutantISSPromiseForgets protocol.Mutant = "iss-promise-forgets"
	MutantISSBallotReused   protocol.Mutant = "iss-ballot-reused"
	MutantISSLearnOlder     protocol.Mutant = "iss-learn-older-ballot"
	MutantISSPastDropped    protocol.Mutant = "iss-past-epochs-dropped"
	MutantISSClosedVotes    protocol.Mutant = "iss-closed-epoch-forgotten-early"
	MutantISSReadOnce       protocol.Mutant = "iss-read-asks-once"
	MutantISSReadAlone      protocol.Mutant = "iss-read-alone"
	MutantISSSettleAtOnce   protocol.Mutant = "iss-settle-at-once"
	MutantISSLosesBodies    protocol.Mutant = "iss-change-loses-bodies"
)

// ISSMutants lists all of them.
var ISSMutants = [...]protocol.MutantInfo{
	{Name: MutantSkipElected, Does: "the ⊥ of an elected proposer is decided when it is sent"},
	{Name: MutantSkipDeclared, Does: "⊥ is decided without votes in the last slot of a segment, if its leader declared that it proposes nothing there"},
	{Name: MutantSkipLast, Does: "a leader skips the last slot of its segment too"},
	{Name: MutantStartedEarly, Does: "a leader proposes before it is durable that it started the segment"},
	{Name: MutantZeroReused, Does: "a leader that restarted uses ballot 0 again"},
	{Name: MutantNeverFromDisk, Does: "a leader that restarted declares that it never proposed where its disk has no vote"},
	{Name: MutantNeverBroken, Does: "a leader promises any other ballot, and goes on to propose under ballot 0"},
	{Name: MutantISSPromiseEarly, Does: "an acceptor of a segment sends its promise before that is durable"},
	{Name: MutantISSVoteEarly, Does: "an acceptor of a segment says what it has accepted before that is durable"},
	{Name: MutantISSHidesDecided, Does: "a promise says nothing of slots that are known to be decided, also not of votes there"},
	{Name: MutantISSPromiseForgets, Does: "a promise does not say what the acceptor of a segment has accepted"},
	{Name: MutantISSBallotReused, Does: "a member speaks under a ballot of a segment before that is durable, and may use it twice"},
	{Name: MutantISSLearnOlder, Does: "a member takes what it accepted under another ballot to be what was decided"},
	{Name: MutantISSPastDropped, Does: "messages of past epochs are dropped, and nobody answers a member that is in one"},
	{Name: MutantISSClosedVotes, Does: "a member drops its votes when an epoch ends, before the decisions are durable"},
	{Name: MutantISSReadOnce, Does: "a read that has to wait for the end of its epoch does not ask again in the next one"},
	{Name: MutantISSReadAlone, Does: "a member gives read points without asking a quorum"},
	{Name: MutantISSSettleAtOnce, Does: "a configuration is handed over as committed before its own voters have it"},
	{Name: MutantISSLosesBodies, Does: "the membership changes although the new voters lack bodies"},
}
