package members

import "github.com/braidlog/braid/protocol"

// The mutants; raft.Mutants has their rows.
const MutantSingleQuorumJoint protocol.Mutant = "single-quorum-joint"
