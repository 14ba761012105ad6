// Package raft is Raft as a pure state machine: a protocol.Core.
//
// It decides who leads, what is in the log, what is committed, who is a member and at which index a
// read is current. It has pre-vote, check-quorum and leader stickiness; batches, pipelines and
// writes its log while it sends it; changes membership through joint configurations; and leaves the
// placement of large bodies to a strategy: whole on all members, or as rows of a Reed–Solomon code
// (CRaft).
//
// How to read: config.go (settings), raft.go (the state, the step, the table of handlers) with leading.go (what only a
// leader has), votes.go and chance.go, package message (its messages), package raftlog (the log in memory, and what is
// known of the disk), package effects (what a step gives out), persist.go (what is written), package members (who takes
// part under the configurations of the log), election.go; propose.go, replicate.go with package tracker (a leader's
// view of one follower, the window) and follower.go; read.go, change.go, leaving.go, transfer.go, snapshot.go; package
// code (the placement of bodies) with bodies.go (what a member does with them) and prepare.go (what a new leader does
// before it leads); package lane with lanes.go (what a member does with lanes), park.go (messages that wait for
// batches) and barrier.go (reads that wait for all that was accepted); seal.go (a log that ends). info.go: what others
// know of the core; wrote.go: which records are Raft's. check.go verifies the invariants that are stated at the fields;
// mutant.go lists the rules that tests break deliberately.
//
// "Raft §5.4.2" is a section of the paper or of the thesis; docs/internals/raft.md says which. C and G with
// a number are invariants and gaps of docs/internals/craft.md, 2.8 and 2.2.
//
// May import: protocol, protocol/quorum and erasure, and nothing that waits, does I/O or reads the clock.
package raft
