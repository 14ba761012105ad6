// Package reshapemodel is a model of bodies, of members that change, and of a number of instances that changes,
// and a search of all its states. It is only tests: nothing imports it, and it shares no code with what ships.
//
// There are two instances of four members, and the second one is retired. Each instance's log is the one that Raft
// agrees on. Members get it entry by entry, in any order among members and instances. So a member may be behind in one
// instance alone. The questions are whether bodies stay durable whichever member leaves (docs/internals/craft.md, 2.7),
// and whether those that are left can come to the state (docs/internals/niagara.md, 3.5).
//
// Not in it: Raft itself, trims, joint configurations, restarts, instances that begin.
//
// How to read: model_test.go (the state, the rules and their variants), view_test.go (what members know, and what they
// say of it), steps_test.go (what may happen next), judge_test.go (what must hold), run_test.go (clusters, and
// what is expected of each variant; campaign models searches them whole).
//
// May import: internal/explore.
package reshapemodel
