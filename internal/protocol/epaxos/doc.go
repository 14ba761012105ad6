// Package epaxos is EPaxos: every member proposes, and commands are ordered only where they interfere.
// docs/internals/epaxos.md has the rules; comments cite their numbers.
//
// For each command the members decide whether it is executed or replaced by a no-op, and which commands it depends
// on. From this all members derive the same order of interfering commands. A member's log has the commands in the
// order in which that member executed them.
//
// How to read: deps.go (ids and dependencies), index.go (which commands interfere), size.go (sizes of quorums),
// replica.go and validate.go (a member's state of undecided commands, and its answers), opening.go (a proposer's
// ballot 0), recover.go and wait.go (a recovery), graph.go (the order of execution): these are the rules. Around them
// is the core: epaxos.go (the state, inputs, timers), propose.go, attempt.go (this member's attempts, and what it
// waits for), window.go (the limit of concurrent recoveries), answer.go (messages), learn.go (execution, the log,
// catching up, snapshots), read.go, disk.go (the durable state), note.go (how a command is encoded in messages and in
// the log), derived.go (the state in snapshots), wrote.go (which records are its own), check.go (the invariants),
// message.go and record.go (encodings of messages and of records), info.go (what others know of the core).
//
// May import: protocol, internal/protocol/slots.
package epaxos
