// Package store is etcd's state machine: keys by revision, watches, leases, users and roles, alarms. It is put together
// from etcd's own packages (go.etcd.io/etcd/server/v3), so etcd can read a database written here, and vice
// versa.
//
// It decides what a command does once its position is known. It imports nothing of braid but internal/sys, and knows
// neither members nor connections. Everything that must be equal on every member depends on the commands alone.
// docs/internals/etcd.md has the rules for working with etcd's packages.
//
// Large values are not in the database. They leave a request before it is ordered and become the body of its command,
// which the log keeps, whole or in fragments. A record of size and SHA-256 takes their place. It is equal on every
// member, and applying needs nothing else. record.go and largecommand.go have the formats, large.go the write path.
// keys.go and refs.go have what applying stores of them. resolve.go, byvalue.go and compare.go read them (txnwalk.go
// walks over transactions), release.go and clientcopy.go release them and copy them for clients.
//
// How to read it: store.go (the parts of a store, opening and closing it), options.go, database.go (a database file),
// command.go (the format of commands, and encoding them), check.go (requests that no state machine accepts), apply.go
// (applying), plainput.go and plaingrant.go (the most frequent commands), plainget.go and recentgets.go (the most
// frequent read), accepted.go (puts that cannot fail), positions.go (waiting for a position). Then by part:
//
//   - Rights, in rights.go, passwords.go and turns.go: users, what they may do, and checking their passwords.
//   - Leases, in lease.go, primary.go, lessor.go, renewal.go and package leaseclock: which member ends leases, who may
//     renew them, and when they end. leaseids.go makes their ids, leasewrites.go writes them.
//   - limits, in quota.go, space.go and alarms.go: the quota, the disk's reserve and the alarms. prefixquota.go has the
//     quotas of prefixes, which all members apply, and prefixcount.go what is used of them. awaitspace.go and package
//     filespace get space before it is needed, fatal.go ends a store whose disk fails.
//   - Reads, in read.go and rangestream.go.
//   - Snapshots, in snapshot.go and restore.go (between members), clientcopy.go (for clients), importing.go and
//     birth.go (starting from an etcd snapshot).
//   - Backups, in incremental.go (the changes since a backup), applying.go (starting from increments), and
//     packages increment (the format) and backups (a directory of them).
//   - Defragmentation, in defragment.go (a copy while the store works), movable.go (a database whose file can be
//     exchanged), changes.go (keys that were written meanwhile) and defragmetrics.go.
//   - maintain.go (hashes, sizes) and wanted.go (commands that the store itself wants ordered).
//
// A damaged database is found and replaced: package sums has the checksums of keys and buckets, scrub.go reads
// everything in the background, damage.go keeps what was found.
//
// etcd's packages register Prometheus metrics in the process-wide registry; with several stores in one process these
// metrics mix.
package store
