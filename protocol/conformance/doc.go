// Package conformance is the suite that every protocol passes: what the comments of
// protocol.Core and its inputs and effects promise, and no more.
//
// [Run] takes a function that starts a core and runs it in small deterministic clusters
// in memory: agreement under lost, repeated and late messages and crashes; restart from
// records; reads; snapshots; membership; the same inputs giving the same effects.
//
// net.go is the cluster: members with a disk that may lag, and a network that does as it
// is told. It is open to a protocol's own scripted tests. judge.go is what it watches
// over; trace.go writes down the conversation; run.go and chaos.go are the suite.
//
// May import: protocol, the standard library and test helpers.
package conformance
