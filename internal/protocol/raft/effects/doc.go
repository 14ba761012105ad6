// Package effects collects what a step of Raft gives out: messages, records, refusals.
//
// File effects.go has all of it.
//
// May import: protocol and the packages message and raftlog of Raft.
package effects
