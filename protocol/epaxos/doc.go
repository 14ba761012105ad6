// Package epaxos holds the rules of EPaxos, in which every member proposes and commands are ordered only
// where they interfere: docs/epaxos.md, whose numbers of rules stand in the comments.
//
// These are parts that a core is to be made of, and not yet a core. How to read: deps.go (ids and
// dependencies), index.go (which commands interfere), size.go (who is enough), replica.go and validate.go
// (what a member keeps of undecided commands, and answers), opening.go (a proposer's ballot 0), recover.go
// and wait.go (a recovery), graph.go (in which order decided commands are executed), message.go and
// record.go (what is sent, and what is on the disk).
//
// May import: protocol, protocol/slots.
package epaxos
