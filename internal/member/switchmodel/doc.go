// Package switchmodel is a model of a cluster that changes its protocol: the log of the old instance is sealed, and a
// new instance begins behind the seal. A search visits all its states. It is only tests: nothing imports it, and it
// shares no code with what ships.
//
// An entry S, the seal, names the version of the profile that it replaces and the new instance's first leader m. p is
// the last position that the old order fills; here it is the position of S. S counts if the version that it replaces is
// the effective one at p. The rules:
//
//   - W1: nothing behind p in the old log takes effect. What did not come before p is proposed again under its number.
//   - W2: a member begins in the step in which it learns that S is decided, with all that is before S. The leader that
//     decides S stops its reads and its lease in that step, before it sends anything.
//   - W3: the first record of the new instance is durable before the member sends anything in it. The membership is
//     that at p, whatever follows S in the member's log.
//     A leader that names itself as m may write its first record together with S. That record counts only if S is
//     decided at that index and term. S names its proposer, so m knows after a restart that it may have led already.
//   - W4: a member that has begun votes, acknowledges and confirms nothing in the old instance. It answers with
//     Sealed or a snapshot.
//   - W5: a read index of the old instance counts only while the member that asked has not begun, and only with
//     confirmations of members that had not begun. No lease of the old instance counts after S.
//   - W6: each member is born as if it had voted for m in term 1. m leads term 1 in the incarnation that wrote its
//     first record, never after a restart.
//   - W7: no seal is proposed while a membership change or a fence is pending, and neither of them behind a seal.
//   - W8: the old log is given up when the first record and a snapshot at or behind p are durable. Until then nothing
//     behind S is cut.
//   - W9: Sealed is sent only by a member that has begun. The receiver compares what is before S with its own log,
//     takes it, and begins in the same step. Snapshots are compared by (instance, index).
//
// The code needs fewer of these (elects and closes in the model): each member is born with no vote and in term 0, and a
// new instance elects its first leader. Votes are durable behind the first record, as all that is said in the instance,
// so W6 is not needed. A member that knows that S is decided stops reads and leases, and begins in a later step. It
// answers members that are behind with a snapshot. What a leader that has begun sends of what is before S could as well
// arrive late. A leader that has begun tells only what it decided itself: that matters with five members, which are not
// searched.
//
// In it: three members and three instances that follow each other, each with a log that Raft decides; terms, a log of
// the leader that is not durable yet, crashes that leave what is durable, one file for all instances; messages that are
// lost, late, repeated and reordered; members that are two instances behind; snapshots of any earlier place; leases
// whose promises outlive restarts; a read by index, or as in ISS; a lane with an accepted write; a joint configuration;
// proposals that are repeated; a seal of another version. What is decided is judged as one log of all instances: one
// entry at each place, nothing acknowledged is missing, no read misses a write, a command takes effect once.
//
// Not in it: several instances, members that join and leave, coded bodies (package merged below), slots that ballots
// decide (package ballots), progress.
//
// Bounds: logs of one to three entries, two or three terms, up to three elections, up to two crashes. The largest
// search of campaign models has 1.4 million states, of campaign deep 8.9 million.
//
// How to read: model_test.go (the state, the bounds, the variants), steps_test.go (Raft), switch_test.go (seals, first
// records, snapshots, crashes), reads_test.go (reads, leases, lanes), judge_test.go (what must hold), normalize_test.go
// (what has no effect any more), run_test.go (what is searched, and what each variant must break).
//
// May import: internal/explore.
package switchmodel
