// Package store is etcd's state machine: keys by revision, watches, leases, users and roles, alarms. It is put together
// from etcd's own packages (go.etcd.io/etcd/server/v3), so a database written here is one that etcd can read, and the
// other way round.
//
// It decides what a command does once its position is known. It imports nothing of braid but internal/sys, and knows
// neither members nor connections. Everything that must be equal on every member depends on the commands alone.
// docs/internals/etcd.md has the rules for working with etcd's packages.
//
// Large values are not in the database. They leave a request before it is ordered and become the body of its command,
// which the log keeps, whole or in fragments. A record of size and SHA-256 takes their place. It is equal on every
// member, and applying needs nothing else. record.go and large.go have the formats and the way in. keys.go and refs.go
// have what applying keeps of them. resolve.go, byvalue.go and compare.go are for reading them (txnwalk.go walks over
// transactions), release.go and clientcopy.go for giving them up and for copies for clients.
//
// How to read it: store.go (what a store is made of, opening it), command.go (what a command looks like, how one is
// made), apply.go (what it does), accepted.go (puts that cannot fail there), then the rest by subject: positions.go
// (waiting for a position), passwords.go (checking them in turn), primary.go, lessor.go, renewal.go and package
// leaseclock (who may expire leases, who may renew them, and when), snapshot.go and restore.go (state between members),
// read.go, permit.go and lease.go (local reads), quota.go, maintain.go, importing.go and birth.go (starting from an
// etcd snapshot), awaitspace.go and package filespace (space before it is needed), fatal.go (what happens when the disk
// fails).
//
// A damaged database is found and replaced: package sums has the checksums of keys and buckets, scrub.go reads
// everything in the background, damage.go says what then happens, alarms.go whom it concerns.
//
// etcd's packages register Prometheus metrics in the process-wide registry; with several stores in one process these
// metrics mix.
package store
