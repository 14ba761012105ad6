// Package membertest is what tests of the packages below member share: a state machine that remembers what it
// applied, batches, entries and snapshots. Only tests import it.
//
//   - toy.go: all of it.
package membertest
