// Package epaxosmodel holds a model of the rules by which EPaxos decides commands and recovers them, and
// searches of its states. It is only tests: nothing imports it, and it shares no code with what ships. It
// was there before that code, to find out which rules are needed (docs/internals/epaxos.md, "Models").
//
// How to read: state_test.go (what members keep and what was sent), rules_test.go (what members do), steps_test.go
// (what may happen next), judge_test.go (what must hold), run_test.go and variants_test.go (what is expected of the
// rules and of each variant). Runs that take minutes belong to campaign deep.
//
// May import: internal/explore.
package epaxosmodel
