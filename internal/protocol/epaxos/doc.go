// Package epaxos is EPaxos: every member proposes, and commands are ordered only where they interfere.
// docs/internals/epaxos.md has the rules, whose numbers stand in the comments.
//
// What is decided where: of each command, whether it is executed or a no-op takes its place, and on which others it
// depends. From that all members derive an order of those that interfere. A member's log has what it executed, in its
// own order.
//
// How to read: deps.go (ids and dependencies), index.go (which commands interfere), size.go (who is enough), replica.go
// and validate.go (what a member keeps of undecided commands, and answers), opening.go (a proposer's ballot 0),
// recover.go and wait.go (a recovery), graph.go (in which order decided commands are executed): these are the rules.
// Around them is the core: epaxos.go (the state, inputs, timers), propose.go, attempt.go (what this member tries to
// have decided, and what it waits for), room.go (how many recoveries at once), answer.go (messages), learn.go
// (execution, the log, catching up, snapshots), read.go, disk.go (what is durable), note.go (how a command stands in
// messages and in the log), derived.go (what snapshots have), wrote.go (which records are its own), check.go (the
// invariants), message.go and record.go (what is sent, and what is on disk).
//
// May import: protocol, internal/protocol/slots.
package epaxos
