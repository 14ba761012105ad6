// Package epaxosmodel has a model of the rules by which EPaxos decides and recovers commands, and searches its
// states. It has only tests: nothing imports it, and it shares no code with package epaxos. It was written before
// that package, to find out which rules are needed (docs/internals/epaxos.md, "Models").
//
// How to read: state_test.go (the state of members and messages), rules_test.go (the rules of members), steps_test.go
// (the possible steps), judge_test.go (the invariants), run_test.go and variants_test.go (the expected results of the
// rules and of each variant). Runs that take minutes belong to campaign deep.
//
// May import: internal/explore.
package epaxosmodel
