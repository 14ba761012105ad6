// Package tracker is a leader's view of one other member: how far their logs match, what is in flight, in which form
// the member holds bodies, and when it was heard from.
//
// How to read: progress.go (phases, the window, round trips), held.go (bodies).
//
// May import: protocol and the messages of Raft.
package tracker
