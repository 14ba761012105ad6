// Package issmodel has models of the rules that ISS over Paxos relies on, and searches all their states. It has only
// tests: nothing imports it, and it shares no code with package iss. It was written before that package, to find out
// which rules are needed (docs/reports/iss-models.md).
//
// How to read: search_test.go (the interface of a model for internal/explore, which searches), paxos_test.go
// (ballots, values and promises, which the models share). Then one model after the other:
//
//   - skip_test.go: a leader skips sequence numbers, and forgets what was not durable.
//   - checkpoint_test.go: what an acceptor may forget, and when.
//   - change_test.go: decisions change the members at the end of an epoch; changesteps_test.go: what
//     may happen then; future_test.go: its judge, in which the members continue from each state as far
//     as they can.
//
// The expected results of each variant are in skiprun_test.go, checkpointrun_test.go and changerun_test.go. Searches
// that take minutes belong to campaign deep.
//
// May import: internal/explore.
package issmodel
