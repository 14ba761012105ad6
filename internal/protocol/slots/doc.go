// Package slots has what protocols share that decide slots of a log and never replace an entry in it.
//
// How to read: ballot.go (ballots), log.go (the log of decided entries), setup.go (settings, and a member's decided
// state at its start and after a snapshot), disk.go (the state of the member's own disk), config.go (membership
// changes), tune.go (the settings under a profile), bodies.go (large values: which members have them), queue.go
// (entries that wait for a slot), part.go (the protocol's part of a message).
package slots
