// Package slots is shared by protocols that decide slots of a log and never replace an entry in it.
//
// How to read: ballot.go (ballots), log.go (the log of what is decided), setup.go (settings, and what a member has
// of what is decided, at its start and after a snapshot), disk.go (what is known of the member's own disk),
// config.go (changes of the membership), bodies.go (large values: who has them), part.go (the protocol's part of a
// message).
package slots
