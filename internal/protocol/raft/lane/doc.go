// Package lane is what a member does with lanes (docs/internals/lcr.md): it brings commands to all members by a lane of
// its own, holds what others bring, and as a leader makes groups of it for the log. Lanes are alongside the log and its
// placement, on the leader and on followers alike. In the log there are whole groups. So whatever is committed is
// recovered, sent to laggards and compacted as anything else. What is held of lanes only goes before that.
//
// Its functions decide from a View of their member. Messages, records and refusals go to View.Out; entries for the log
// and the change that a fence delayed are returned, and Raft appends, commits and replicates.
//
// How to read: view.go (what is seen of the member), held.go (what a member holds of lanes that is not committed),
// marks.go (what the log says about lanes) with log.go (as it grows, is cut and committed), own.go (a member and its
// own lane), shorter.go (whether the leader is nearer than the lane), lead.go (a leader makes groups), body.go (rows of
// large bodies), signal.go (groups on the wire), owed.go (answers that go along with Appends),
// fence.go (what is accepted, and changes of the voters), earlier.go (what earlier incarnations of the member had
// accepted), recover.go, setting.go, status.go (what people see), behind.go (what a disk holds behind its log).
// check.go verifies the invariants; mutant.go lists the rules that tests break deliberately.
//
// May import: protocol, quorum, setting, erasure, mutant, and the packages message, raftlog, effects, tracker, members
// and code of Raft.
package lane
