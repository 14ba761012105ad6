// Package issmodel holds models of what ISS over Paxos relies on, and searches of all their states.
// It is only tests: nothing imports it, and it shares no code with what ships. It was there before
// that code, to find out which rules are needed (docs/iss-models.md).
//
// How to read: search_test.go (the search, the nearest states first, so that what it finds wrong has
// the shortest story), paxos_test.go (ballots, values and promises, which the models share). Then a
// model at a time, each with its state and rules, its steps, and what is expected of each variant
// (skiprun_test.go, checkpointrun_test.go):
// skip_test.go (a leader skips sequence numbers, and forgets what was not durable),
// checkpoint_test.go (what an acceptor may forget, and when). What takes minutes has the flag
// -iss.deep.
//
// May import: the standard library.
package issmodel
