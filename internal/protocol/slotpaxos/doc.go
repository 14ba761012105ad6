// Package slotpaxos is a teaching protocol: single-decree Paxos for each slot. Package raft is faster in every
// respect. This one shows how little a protocol needs (docs/internals/writing-a-protocol.md).
//
// A slot is an index of the instance's log. For each slot members agree on one entry, by single-decree Paxos: a
// proposer asks the voters to promise a ballot (phase 1), and then to accept an entry under it (phase 2). Slots are
// decided one after the other. The log has decided entries only, so nothing in it is ever replaced. An entry's term
// is the ballot under which it was first proposed.
//
// Any voter may propose. To make dueling proposers rare, only the leader does; the others forward to it while it is
// alive. Leadership is a hint: safety depends neither on a single leader nor on clocks.
//
// A voter's promise and accepted entry of an undecided slot are in a cell on its disk. An acceptor answers only for
// the slot after its last decided one. So it has one cell at most, and an acceptor of a slot holds all slots before
// it. The body of an entry is stored next to the cell, and stays there when the slot is decided.
//
// The membership that is decided in a slot is active from the next one on. It is reported as committed when that next
// slot is decided: a majority of its own voters has all slots before it then, and the members that it removes may
// leave. So no joint configuration is needed.
//
// How to read:
//
//	slotpaxos.go  the state, inputs, timers
//	message.go    ballots, messages and their codec
//	acceptor.go   what a voter promises and accepts, and its cell
//	proposer.go   the two phases of a slot
//	lead.go       the leader: the hint, elections, transfer of leadership
//	early.go      answers before a slot is known to be decided
//	learn.go      the log: decided entries, catching up, snapshots
//	read.go       read indexes
//	bodies.go     large values: their names, and which members have them
//	change.go     membership
//	chain.go      a digest of the log, which snapshots contain
//	disk.go       the durable state; wrote.go: which records are this protocol's
//	info.go       what others know of the core
//	check.go      the invariants; mutant.go: rules that can be broken on purpose
package slotpaxos
