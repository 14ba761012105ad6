// Package leaseclock has the rule by which the primary lessor decides when leases end, and what it may promise to a
// renewal. It is pure: its callers pass the time, and order what it decides. docs/internals/leases.md has the rules and
// why they hold; leasemodel_test.go runs the clocks of several members against each other.
//
// lease.go (a lease and its states), clock.go (all leases, and terms of primary lessors), renewals.go (holding a lease
// and answering a renewal), due.go (what is due), checkpoints.go (checkpoints that shorten leases or clear that).
//
// It imports nothing of braid.
package leaseclock
