// Package paxos has the acceptors and proposers of slots that multi-Paxos (docs/internals/multi-paxos.md) and ISS
// (docs/internals/iss.md) share. It has no messages, timers or disk.
//
// A slot is an index of the instance's log. A [Segment] is a set of slots with ballots of its own. Multi-Paxos has
// one segment, of all slots. ISS has one for each leader of an epoch. An [Acceptor] promises ballots and accepts
// entries in a segment, and encodes both as cells. A [Proposer] asks acceptors for promises once, for all slots that
// are not decided, and then proposes slot after slot. A [Peer] is a proposer's view of another member.
//
// How to read:
//
//	segment.go   a set of slots
//	spans.go     slots of a segment, as runs
//	entry.go     the entries of slots
//	acceptor.go  what a member promised and accepted, and its cells
//	proposer.go  one attempt to have the slots of a segment decided
//	peer.go      a proposer's view of another member: acknowledged slots, frames in flight, round trip
//	behind.go    what was accepted after the end of the log
package paxos
