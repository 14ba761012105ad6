// Package issmodel holds models of what ISS over Paxos relies on, and searches of all their states.
// It is only tests: nothing imports it, and it shares no code with what ships. It was there before
// that code, to find out which rules are needed (docs/reports/iss-models.md).
//
// How to read: search_test.go (what a model says, for internal/explore, which searches), paxos_test.go
// (ballots, values and promises, which the models share). Then a model at a time:
//
//   - skip_test.go: a leader skips sequence numbers, and forgets what was not durable.
//   - checkpoint_test.go: what an acceptor may forget, and when.
//   - change_test.go: decisions change the members at the end of an epoch; changesteps_test.go: what
//     may happen then; future_test.go: its judge, which lets the members go on from each state as far
//     as they can.
//
// What is expected of each variant is in skiprun_test.go, checkpointrun_test.go and
// changerun_test.go. What takes minutes belongs to campaign deep.
//
// May import: internal/explore.
package issmodel
