// Package datadir keeps the files of a member's directory other than the log and the bodies: its identity, the members
// that it has met, its snapshots, and space reserved for a start on a full disk. The file system is passed in, so
// production and the simulator run the same code. It starts no goroutine and reads no clock.
//
//   - open.go: the steps of a start, in their order, and what they find.
//   - identity.go: to whom the directory belongs, and the incarnations of that member.
//   - tell.go: what a directory tells of itself, for tools.
//   - logkind.go: which kind of log it holds, also where it does not tell.
//   - furthest.go: whose logs go furthest, of members that do not run.
//   - birth.go: with which state the cluster began.
//   - registerfile.go: whom the member has met (cluster.Register).
//   - snapshots.go: the snapshot files; each is complete or does not count.
//   - restore.go: with which snapshot a member starts.
//   - ballast.go: the file that takes space until a start on a full disk needs it.
//
// May import: member, protocol, order, wal, internal/sys.
package datadir
