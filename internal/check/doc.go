// Package check judges what a cluster did: did its members agree, is everything that was
// acknowledged still there, did anything happen twice, does the history that clients saw
// have an order that explains it.
//
// Judges do not know how the cluster works. They are told plain facts (a member wrote this entry,
// applied that command, a client saw that result) and return an error at the first fact that must
// not be. The simulator tells them after every step. A load generator tells the client-side ones
// about a real cluster.
//
// How to read: history.go (what clients saw) and linear.go (has it an order?); ledger.go
// and copy.go (what members wrote, voted and decided); bodies.go and bodies_decide.go (in what
// form disks hold large values); sequence.go (what members applied).
//
// Imports nothing of braid.
package check
