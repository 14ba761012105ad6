// Package store is etcd's state machine: keys by revision, watches, leases, users and
// roles, alarms. It is put together from etcd's own packages (go.etcd.io/etcd/server/v3),
// so a database written here is one that etcd can read, and the other way round.
//
// It decides what a command does once its place in the order is known, and nothing about
// that place: it imports nothing of braid and knows neither members nor connections.
// Everything that must be equal on every member is a function of the commands alone.
//
// How to read it: store.go (what a store is made of, opening it), command.go (what a
// command looks like, how one is made), apply.go (what it does), then the rest by subject:
// primary.go (who may expire leases), snapshot.go and restore.go (state between members),
// read.go, permit.go and lease.go (local reads), quota.go, maintain.go, importing.go
// (starting from an etcd snapshot), fatal.go (what happens when the disk fails).
//
// etcd's packages register Prometheus metrics in the process-wide registry; with several
// stores in one process these metrics mix.
package store
