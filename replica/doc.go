// Package replica is the corridor between the rooms: it runs the protocol instances of
// one member, makes what they want durable, sends what they say, merges what they commit
// and applies it to a state machine.
//
// Its rules are pure and run in the simulator as they run here:
//
//   - batch.go: the commands of one entry on the member that proposed them.
//   - sessions.go: at most once: which proposals took effect already.
//   - instance.go: a core with what surrounds it: messages held back until the disk is
//     done, this member's pending proposals and reads, and their repetition.
//   - applier.go: order, at-most-once and state machine: committed entries in, results out.
//   - weaver.go: when woven instances skip for each other, and which takes the next batch.
//   - readvector.go: the read points of all instances, as one.
//   - leaders.go, followconfig.go: who should lead an instance; memberships that follow the
//     first instance's.
//   - keep.go, intake.go: how much log is kept for members that catch up; which of the
//     snapshots that others offer are taken.
//   - meta.go, recover.go: what a snapshot says; from disk to a running member.
//   - body.go: bodies cut for their receivers, questions about them answered from the disk.
//   - gather.go, decode.go: a body made whole from other members' fragments, or an error.
//   - retain.go, census.go: which bodies are alive and missing; when a whole copy may become
//     a row.
//
// Around them is what waits: replica.go opens and closes a member, loop.go is an
// instance's event loop, router.go what the loops of one member are to each other, reshape.go
// begins and retires them, applyloop.go the apply goroutine, propose.go, client.go and read.go
// the clients' side, snapshots.go and snapfile.go files and streams, links.go the transport;
// bodies.go, bodyread.go, bodycache.go and scrub.go keep the bodies.
//
// May import: protocol, order, wal, transport, erasure.
package replica
