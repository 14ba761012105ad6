// Package leasemodel is a model of reads in Raft, by a leader's lease and by index, and a search of all its
// states. It is only tests: nothing imports it, and it shares no code with what ships.
//
// A lease is safe if no other member can be elected while it is valid. That rests on what voters promise
// (docs/internals/raft.md, "What clocks are assumed to do"). The model found that a promise must hold in every term: a
// refusal takes a member into a higher term without a vote, and the candidate's request then has its own term.
//
// In it: three members, PreVote, votes, forced votes, appends and heartbeats with the instant at which they were sent,
// transfers, restarts, one change of the members, of one step or joint. Messages are late, lost and in any order; few
// are in progress at once. One clock goes for all, and instants are relative to now, so time has no end. Disks are done
// at once. A read by index is asked for at the leader, or at a follower, which asks its leader. Not in it: several
// instances, coded entries, lanes, snapshots, drift (a lease that is too long stands for it), a vote that waits for a
// disk, messages that come twice.
//
// How to read: model_test.go (the state, the rules and their variants), receive_test.go (what members do with
// messages), leader_test.go (elections and leaders), steps_test.go (what may happen next), judge_test.go (what must
// hold, and what internal/explore is told), lease_test.go (what is expected of the rules and of each variant; in
// campaign models also what takes longer).
//
// May import: internal/explore.
package leasemodel
