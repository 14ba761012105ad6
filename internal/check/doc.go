// Package check verifies the history of a cluster: members agree, no acknowledged command is lost
// or applied twice, and the history that clients observed is linearizable.
//
// Judges do not depend on how the cluster works. They receive facts (a member wrote this entry,
// applied that command, a client observed that result) and return an error at the first violation.
// The simulator reports facts after every step. A load generator reports the client-side ones of a
// real cluster.
//
// How to read: history.go (what clients observed) and linear.go (linearizability); ledger.go and copy.go (what
// members wrote, voted and decided); bodies.go and bodies_decide.go (the forms of large values on disks); sequence.go
// (what members applied); merge.go, sealed.go (the order of merged instances); profiles.go (the settings that members
// share).
//
// Imports nothing of braid.
package check
