// Package tracker is a leader's view of one other member: how far their logs match, what is in flight, in which form
// the member holds bodies, and when it was heard from.
//
// How to read: progress.go (phases, round trips), window.go (frames in flight), held.go (bodies). check.go verifies the
// invariants.
//
// May import: protocol and the messages of Raft.
package tracker
