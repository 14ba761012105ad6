// Package conformance is the suite that every protocol passes. It tests the contract in the comments of protocol.Core
// and its inputs and effects.
//
// [Run] takes a function that starts a core and runs it in small deterministic clusters in memory: agreement under
// lost, repeated and late messages and crashes; restart from records; reads; snapshots; membership; changes of the
// profile; determinism.
//
// net.go is the cluster: members with a disk that may lag, and a scripted network. A protocol's own scripted tests may
// use it. judge.go has the invariants; seal.go seals the log; trace.go records the messages; run.go, tune.go and
// chaos.go are the suite.
//
// May import: protocol, the standard library and test helpers.
package conformance
