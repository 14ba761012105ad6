// Package iss is ISS (docs/internals/iss.md): a sequence of epochs, with many leaders in each.
//
// Each leader of an epoch has a segment: slots in which it proposes under ballot 0, for which it needs no promises. A
// leader that has nothing to propose skips slots. If a leader fails, others have its slots decided under higher
// ballots. The log has the slots of all segments in order, and determines the next epoch (see package epochs).
//
// How to read, first a member's part in one segment:
//
//	broadcast.go  its state, what is decided, what is promised
//	owner.go      the segment's leader: ballot 0, skips
//	drive.go      phase 2 at the proposer; learn.go: at the others
//	witness.go    what members learn from each other's votes
//	revoke.go     ballots from 1 on: suspicion, phase 1, what is proposed after it
//
// The epoch, and what all segments share:
//
//	iss.go      the core: its state, inputs, timers
//	message.go  messages; part.go: how they are encoded
//	epoch.go    from segments to the log, and from one epoch to the next
//	propose.go  where proposals are sent, membership
//	others.go   the state of the other members, heartbeats, snapshots
//	catchup.go  a member that is behind requests entries, and is sent them
//	read.go     read indexes
//	seal.go     a log that ends
//	woven.go    merged logs: an instance skips rounds, and takes over the membership of the first instance
//	relay.go    messages through relays
//	disk.go     what is written; wrote.go: which records ISS writes
//	settings.go the settings of its own; tune.go: changes of settings; info.go: what others know of the core
//	status.go   the epoch and its segments in the status
//	check.go    the invariants; mutant.go: rules that can be broken on purpose
package iss
