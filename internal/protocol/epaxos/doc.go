// Package epaxos is EPaxos: every member proposes, and commands are ordered only where they interfere.
// docs/internals/epaxos.md has the rules, whose numbers stand in the comments.
//
// For each command the members decide whether it is executed or replaced by a no-op, and which commands it depends on.
// From this all members derive the same order of interfering commands. A member's log has the commands in the order in
// which that member executed them.
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
