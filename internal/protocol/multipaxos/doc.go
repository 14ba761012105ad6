// Package paxos is multi-Paxos (docs/internals/multi-paxos.md) and ISS (docs/internals/iss.md), made of the same acceptors and
// proposers.
//
// A slot is an index of the instance's log. A segment is a set of slots with ballots of its own; multi-Paxos
// has one, of all slots. ISS has one for each leader of an epoch, and epochs one after the other. An acceptor promises ballots and accepts entries in a segment. A proposer asks
// acceptors for promises once, for all slots that are not decided, and then proposes slot after slot. These two
// types know nothing of messages, timers or disks.
//
// The leader is the member whose ballot a quorum has promised. It sends entries as they come, several
// messages ahead of the answers. Members say up to where they have accepted without a gap. What a quorum has
// accepted is decided, and the next message says so. Decided entries go to the end of the log. What is
// accepted and not known to be decided stands in cells.
//
// In ISS all leaders of an epoch do that at once, each in its segment, under a ballot for which it needs no
// promises. One that has nothing to propose skips slots. One that is not heard of has its slots decided
// by others. The log has the slots of all segments in order, and says what the next epoch is (see epochs).
//
// How to read, for both:
//
//	segment.go   sets of slots
//	acceptor.go  what a member promised and accepted, and its cells
//	proposer.go  one attempt to have the slots of a segment decided
//	peer.go      what a proposer knows of another member, and how much is in flight to it
//	entry.go     the entries that slots have
//	settings.go  what can be set of multi-Paxos and ISS
//	relay.go     who passes messages on to whom; relaygather.go: what a relay knows of its group
//
// Multi-Paxos:
//
//	paxos.go     the core: its state, inputs, timers
//	message.go   messages and their codec
//	election.go  who stands, phase 1, promises in parts
//	lead.go      phase 2 at the leader: what is proposed, what is decided, heartbeats
//	replicate.go  what a peer is sent, and how much at a time
//	learn.go     phase 2 at the others, catching up, snapshots
//	read.go      read points
//	change.go    membership; transfer.go: handing leadership over
//	relaymulti.go  messages by relays
//	bodies.go    large values: their names, and who has them
//	wrote.go     which records multi-Paxos writes; behind.go: what is accepted behind the log
//	disk.go      what is written, and what is durable
//	check.go     the invariants; mutant.go: rules that can be broken on purpose
//
// ISS, a member's part in one segment:
//
//	sb.go        its state, what is decided, what is promised
//	sbowner.go   the segment's leader: ballot 0, skips
//	sbdrive.go   phase 2 at whoever proposes; sblearn.go: at the others
//	sbwitness.go what members learn from each other's votes
//	sbrevoke.go  ballots from 1 on: suspicion, phase 1, what is proposed after it
//	sbspans.go   sets of slots in messages
//
// ISS, the epoch and what lies around its segments:
//
//	iss.go         the core: its state, inputs, timers
//	issmessage.go  messages and their codec
//	issepoch.go    from segments to the log, and from one epoch to the next
//	isspropose.go  where proposals go, membership
//	issothers.go   what is known of the others, catching up, snapshots
//	issread.go     read points
//	issdisk.go     what is written; isswrote.go: which records ISS writes
//	isscheck.go    the invariants; issmutant.go: rules that can be broken on purpose
package multipaxos
