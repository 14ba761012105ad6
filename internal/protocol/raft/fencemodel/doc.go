// Package fencemodel is a model of LCR's fence, and a search of all its states. It is only tests:
// nothing imports it, and it shares no code with what ships. It was there before that code, to find
// out which rules are needed.
//
// The fence is what keeps an accepted entry from being lost while the members change
// (docs/internals/lcr.md, "The fence, and how it was checked").
//
// How to read: model_test.go (the state, the rules and their variants, Raft's commitment),
// steps_test.go (what may happen next), judge_test.go (what must hold), search_test.go (what the model says,
// for internal/explore, which searches), fence_test.go (the changes of members and what is expected of
// each variant), off_test.go (lanes are turned off and on), deep_test.go (what takes minutes: campaign deep).
//
// May import: internal/explore.
package fencemodel
