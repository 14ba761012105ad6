package members

import "github.com/braidlog/braid/protocol"

// The mutants; raft.Mutants has their rows.
const (
	MutantSingleQuorumJoint protocol.Mutant = "single-quorum-joint"
	MutantLeaseByMajority   protocol.Mutant = "tune-lease-by-majority"
	MutantLeaseAtOnce       protocol.Mutant = "tune-lease-at-once"
	MutantShortenLate       protocol.Mutant = "tune-shorten-late"
	MutantPromiseNewest     protocol.Mutant = "tune-promise-newest"
	MutantPromiseDecided    protocol.Mutant = "tune-promise-decided"
	MutantLaggardCounts     protocol.Mutant = "tune-laggard-counts"
)
