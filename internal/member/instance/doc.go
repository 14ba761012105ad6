// Package instance runs a protocol core from turn to turn. It is pure, as package member is; nothing in it is safe
// for concurrent use.
//
//   - instance.go, outbox.go: a core with its pending proposals and reads: what waits for the disk before it is sent,
//     what is proposed again, and what a turn produced.
//   - turn.go: what a turn takes in and what it wants, as values; calls.go: what an instance asks during a turn.
//   - hosted.go, hosted_read.go, hosted_tend.go: how the one follows from the other; send.go: how messages leave.
//   - backlog.go: how much may be committed and not applied; quiet.go: that nothing happens.
//   - weaver.go: when merged instances skip rounds for each other, and which one takes the next batch.
//   - keep.go: how much log is kept for members that catch up.
//   - leaders.go, leaving.go, drained.go, followconfig.go: who should lead an instance; to whom a member hands over
//     before it stops; drained members, which are to lead nothing; memberships that follow the first instance's.
//   - missing.go, departure.go: an instance without a leader; a member that was removed. hosted_seal.go: an instance
//     that a seal ends.
//   - unreadable.go, upgrades.go: entries that a leader cannot read; bodies on their way to the disk.
//
// May import: member, intake, body (keys of bodies), protocol, order, wal (records), transport (why a link is
// refused).
package instance
