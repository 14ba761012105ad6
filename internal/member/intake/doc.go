// Package intake holds the commands and reads of a member until an instance takes them. It is pure, as package member
// is; nothing in it is safe for concurrent use.
//
//   - batch.go: the commands of one entry on the member that proposed them, and what became of them.
//   - proposals.go, keyed.go: batches that wait, within limits; which group of keys takes which.
//   - clientqueue.go: the order of the commands of a client that does not wait for answers.
//   - withdraw.go: commands whose callers gave up before the commands were proposed.
//   - numbers.go: the sequence numbers of batches, and which of them are resolved.
//   - asked.go: how many commands clients asked for, and how long they waited.
//   - awaited.go: tokens whose commands must be applied before a proposal or a read continues.
//   - readqueue.go, readgroup.go, readvector.go, readstate.go: readers that share a read index, the read indexes of
//     several instances as one, and the state that serves them.
//   - inbox.go: how many bytes of messages wait for the instances of a member.
//   - committed.go: committed entries on their way to package apply.
//
// May import: member, protocol, order.
package intake
