// Package tunemodel is a model of changes of the settings that promises to a leader depend on: the election timeout
// and lease reads. A search visits all its states. It is only tests: nothing imports it, and it shares no code with
// what ships.
//
// A voter that hears from a leader elects no other for an election timeout, and a leader with a lease relies on that.
// The two may have different profiles in their logs (docs/internals/raft.md, "Changes of the timeout and of leases").
// The model shows which length each may use: the voter the longest from the last profile that it knows to be decided
// on, the leader the shortest from the newest one that the voter acknowledged on. A member that acknowledged none of
// those that the leader has counts for nothing.
//
// In it: three members, elections, terms that are entered without a vote, truncation, profiles that replace each other
// before all members have the first, restarts that forget the commit index, logs that begin after a snapshot. A message
// arrives at once or never, and so does its answer: a lease counts from the sending and a promise from the arrival, so
// a message that is late gives a longer promise and the same lease. One clock goes for all, and instants are relative
// to now. Not in it: votes that are forced (leasemodel), changes of the members, drift.
//
// How to read: model_test.go (the state and the rules), steps_test.go (what may happen), judge_test.go (what must hold,
// and what internal/explore is told), tune_test.go (what is expected of the rules and of each variant).
//
// May import: internal/explore.
package tunemodel
