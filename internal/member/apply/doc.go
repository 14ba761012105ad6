// Package apply puts what the instances of a member commit into the global order, lets each command take effect at
// most once, and drives the state machine. It is pure, as package member is; nothing in it is safe for concurrent
// use.
//
//   - applier.go: committed entries in, results out. sessions.go: which commands took effect already.
//   - groups.go, merge.go: groups of keys that have no common order: a state machine for each, and a snapshot that is
//     ahead in some of them.
//   - apply.go, applyqueue.go: what waits to be applied; when a snapshot is taken or replaces the state.
//   - applied.go, tokens.go: how far is applied; who waits until a read index, a membership or a token is.
//   - ahead.go: a state on disk that is further than the log.
//   - derive.go: what cores derive from their logs.
//   - planner.go: where the global log says that instances begin or end, ahead of the state machine.
//
// May import: member, intake, protocol, order, wal (errors of reading).
package apply
