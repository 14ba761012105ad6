// Package multipaxos is multi-Paxos (docs/internals/multi-paxos.md): one segment of all slots, and one leader.
//
// The leader is the member whose ballot a quorum has promised. It sends entries as they are proposed, several
// messages ahead of the acknowledgements. Members acknowledge up to where they have accepted without a gap. What a
// quorum has accepted is decided, and the next message says so. Decided entries are appended to the log. What is
// accepted and not known to be decided is stored in cells.
//
// How to read:
//
//	paxos.go      the core: its state, inputs, timers
//	message.go    messages and their codec
//	election.go   elections, phase 1, promises in parts
//	lead.go       phase 2 at the leader: what is proposed, what is decided, heartbeats
//	replicate.go  what a peer is sent, and how much at a time
//	learn.go      phase 2 at the others, catching up, snapshots
//	read.go       read indexes
//	change.go     membership; transfer.go: transfer of leadership
//	seal.go       a log that ends
//	relay.go      messages through relays
//	settings.go   the settings of its own; tune.go: changes of settings; info.go: what others know of the core
//	bodies.go     large values: their names, and which members have them
//	disk.go       what is written, and what is durable; wrote.go: which records multi-Paxos writes
//	check.go      the invariants; mutant.go: rules that can be broken on purpose
package multipaxos
