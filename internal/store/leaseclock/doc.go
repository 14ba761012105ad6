// Package leaseclock is the time of leases: when each expires, who may renew it, and what the other members must know of it.
// It is a rule without input, output or clock of its own; leasemodel_test.go runs several of them against each other.
//
// leaseclock.go is all of it.
//
// It imports nothing of braid.
package leaseclock
