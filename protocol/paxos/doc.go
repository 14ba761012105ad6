// Package paxos is multi-Paxos, made of parts that other protocols on Paxos can have many of
// (docs/multi-paxos.md).
//
// A slot is an index of the instance's log. A segment is a set of slots with ballots of its own; multi-Paxos
// has one, of all slots. An acceptor promises ballots and accepts entries in a segment. A proposer asks
// acceptors for promises once, for all slots that are not decided, and then proposes slot after slot. These two
// types know nothing of messages, timers or disks.
//
// The leader is the member whose ballot a quorum has promised. It sends entries as they come, several
// messages ahead of the answers. Members say up to where they have accepted without a gap. What a quorum has
// accepted is decided, and the next message says so. Decided entries go to the end of the log. What is
// accepted and not known to be decided stands in cells.
//
// How to read:
//
//	segment.go   sets of slots
//	acceptor.go  what a member promised and accepted, and its cells
//	proposer.go  one attempt to have the slots of a segment decided
//	paxos.go     the core: its state, inputs, timers
//	message.go   messages and their codec
//	election.go  who stands, phase 1, promises in parts
//	lead.go      phase 2 at the leader: what is proposed, what is decided, heartbeats
//	peer.go      what a leader knows of another member, and what it sends it
//	learn.go     phase 2 at the others, catching up, snapshots
//	read.go      read points
//	change.go    membership; transfer.go: handing leadership over
//	bodies.go    large values: their names, and who has them
//	disk.go      what is written, and what is durable
//	check.go     the invariants; mutant.go: rules that can be broken on purpose
package paxos
