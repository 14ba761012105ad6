// Package members is who takes part under the configurations that a log of Raft has: who decides, which row a member
// holds, and which configuration follows from a change.
//
// How to read: members.go (the configurations of a log), next.go (what follows from a change).
//
// May import: protocol, quorum and raftlog.
package members
