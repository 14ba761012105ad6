// Package datadir manages the files of a member's directory other than the log and the bodies: its identity, the
// register of known members, its snapshots, and space reserved for a start on a full disk. The file system is passed
// in, so production and the simulator run the same code. It starts no goroutine and reads no clock.
//
//   - open.go: the steps of a start, in order, and their results.
//   - identity.go: the member to which the directory belongs, and its incarnations.
//   - inspect.go: the recorded settings of a directory, for tools.
//   - logkind.go: the kind of the log, even if it is not recorded.
//   - furthest.go: which of several stopped members has the longest logs.
//   - birth.go: with which state the cluster began; memory.go: a state machine in memory that waits for it.
//   - registerfile.go: the register of known members (cluster.Register).
//   - snapshots.go: the snapshot files; each is complete or does not count.
//   - restore.go: the snapshot with which a member starts.
//   - ballast.go: the file that takes space until a start on a full disk needs it.
//
// May import: member, protocol, order, wal, internal/sys.
package datadir
