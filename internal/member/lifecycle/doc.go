// Package lifecycle decides which instances a member has: when they begin and retire, and what they recover from the
// log. It is pure, as package member is; nothing in it is safe for concurrent use.
//
//   - instances.go: the active and the retired instances, and the order in which a plan is carried out.
//   - early.go: messages for instances that have not begun here.
//   - recover.go: what a start reads from the log.
//
// May import: member, apply, body, protocol, order, wal.
package lifecycle
