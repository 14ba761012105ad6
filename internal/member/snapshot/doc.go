// Package snapshot decides which snapshots a member sends, receives and requests. It is pure, as package member is;
// nothing in it is safe for concurrent use.
//
//   - exchange.go, streams.go: snapshots to and from other members, one at a time with each.
//   - intake.go: which of several offered snapshots is received.
//   - mending.go: whom to ask for a state if this member's is damaged.
//
// May import: member, intake (committed entries), apply, protocol, order.
package snapshot
