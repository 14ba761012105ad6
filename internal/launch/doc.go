// Package launch runs the members of a local cluster, each as a process of its own.
//
// It assigns ports and names to the members and records them in the data directory (manifest.go), locks the directory
// against a second launcher (lock.go), and starts, stops and supervises the processes (process.go, cluster.go). While
// the cluster runs, members can be killed, paused and started, and the emulation of their links changed (operate.go).
// When it resumes a cluster, it finds out why a member ended permanently (fate.go). The caller provides the command
// line of a member.
//
// The members end with the launcher: gracefully when it stops, immediately when it is killed
// (death_linux.go, and a pipe that [WatchParent] reads). On other systems than Linux, a member that is paused when
// the launcher is killed ends once it is resumed.
//
// It may import internal/ports, internal/durable and wal (small files), and no other package of braid.
package launch
