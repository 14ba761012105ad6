// Package members has the configurations of a log of Raft: the voters that decide, the row that a member
// holds, and which configuration follows from a change.
//
// How to read: members.go (the configurations of a log), tuned.go (what their profiles mean), next.go (what follows
// from a change). check.go verifies the invariants; mutant.go names the rules that tests break deliberately.
//
// May import: protocol, quorum and raftlog.
package members
