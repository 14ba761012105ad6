// Package member decides all that one member decides around its protocols: which proposal goes on
// when, what waits for the disk, what is applied and to whom an answer goes, which bodies are held in
// which form, how far a log may be cut. It carries out nothing itself: it has no goroutine, channel,
// lock, clock, file or socket. Package replica runs it in production and package sim in the simulator.
//
//   - batch.go: the commands of one entry on the member that proposed them.
//   - numbers.go, sessions.go: at most once: the numbers of proposals, and which took effect already.
//   - instance.go, outbox.go, backlog.go: a core with what surrounds it: messages that are held back until
//     the disk is done, this member's pending proposals and reads, and their repetition.
//   - hosted.go, hosted_send.go, hosted_read.go, hosted_tend.go: an instance from turn to turn;
//     host.go: what it asks of the rest of the member.
//   - withdraw.go: commands whose proposers wait no longer.
//   - tokens.go: who waits until a command is applied that was accepted.
//   - clientqueue.go: the order of the commands of a client that does not wait for answers.
//   - keyed.go, groups.go, merge.go: groups of keys, which have no common order: where a command goes, a state
//     machine for each, and a snapshot that is ahead in some of them.
//   - proposals.go, readqueue.go, inbox.go: what waits for an instance, and how much may wait.
//   - applier.go, machine.go: order, at-most-once and state machine: committed entries in, results out.
//   - apply.go, applyqueue.go, applied.go: Apply, and what waits for it; when a snapshot is taken or put in
//     the place of the state; what others know of how far it has applied, and who waits for that.
//   - weaver.go: when woven instances skip for each other, and which takes the next batch.
//   - readvector.go, readgroup.go: the read points of all instances, as one, and who waits for them.
//   - operation.go, request.go, execution.go: what operators ask for: at the member that is asked, and at the
//     leader that carries it out.
//   - leaders.go, leaving.go, followconfig.go: who should lead an instance, and to whom a member hands over
//     before it stops; memberships that follow the first instance's.
//   - keep.go, diskneed.go: how much log is kept for members that catch up; how much space the disk must
//     have.
//   - exchange.go, streams.go, intake.go, mending.go: which snapshots are sent to other members, which are
//     taken of those that others offer, and whom to ask for a state if this member's is damaged.
//   - meta.go, recover.go, ahead.go: what a snapshot says; what a member reads from its disk to start; a state
//     on disk that is further than the log.
//   - derive.go: what cores derive from their logs, and which sections of snapshots are refused.
//   - body.go: bodies cut for their receivers, questions about them answered from the disk.
//   - gather.go, decode.go: a body made whole from other members' fragments, or an error.
//   - retain.go, kept.go, holdercount.go: which bodies of an instance, and of all, are live and missing,
//     and what the cores are told of it; when a whole copy may become a row.
//   - bodies.go, bodyinbox.go: what gathers, restores and trims bodies, and what waits for that, within
//     limits.
//   - bodyaccess.go, bodycache.go, upgrades.go: bodies that are read, for other members, for readers and to
//     see whether they are damaged; whole bodies in memory; bodies on their way to the disk.
//   - damage.go, scrub.go, diskhealth.go: what to do about damage; log, snapshots and bodies that are read
//     again and again to find it; what is known of it.
//   - missing.go, departure.go: what to do about an instance without a leader, and if the cluster goes on
//     without this member.
//   - planner.go, instances.go, early.go: where the global log says that instances begin or end, ahead of
//     the state machine; which instances a member has, and in which order they begin and retire;
//     messages for those that have not begun.
//   - register.go, handshakes.go, lineage.go, founders.go, origin.go, links.go, places.go: who the others are; what follows from that when members meet;
//     with whom there is a link.
//   - birth.go: with which state a cluster began, and what a member does that joins it.
//   - logkind.go: what of a log never changes, and how its records are read without it.
//   - clock.go: how an event loop reads the time.
//   - machine.go, errors.go, lineages.go, token.go: the state machine and the errors that programs see.
//   - session.go, sections.go, found.go, offer.go, records.go: what snapshots and the log say of sessions, cores and bodies.
//   - committed.go, awaited.go: entries between an instance and the applier; tokens for whose commands proposals and readers wait.
//   - fault.go, unreadable.go: what an error of reading means; what a leader does that cannot read an entry.
//   - membership.go: several instances' memberships as one. operating.go, limits.go: settings of operations, and limits that
//     several parts keep to.
//   - mutant.go: rules broken on purpose, for the simulator to catch.
//
// May import: protocol, order, wal (what a record is), transport (why a link is refused), erasure.
package member
