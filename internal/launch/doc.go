// Package launch runs the members of a local cluster, each as a process of its own.
//
// It decides which ports and names the members have and remembers that in the data directory (manifest.go), keeps a
// second launcher out of it (lock.go), starts and stops the processes (process.go) and watches over them (cluster.go).
// When it resumes a cluster it finds out what became of a member that ends permanently (fate.go). What a member's
// process does is the caller's: launch is given the command line.
//
// The members end with the launcher: orderly when it stops, at once when it is killed
// (death_linux.go, and a pipe that [WatchParent] reads).
//
// It may import internal/ports, internal/durable and wal (small files), and no other package of braid.
package launch
