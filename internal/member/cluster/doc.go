// Package cluster decides who the other members are, with whom there is a link, and how operations of operators are
// carried out: changes of members, transfers of leadership, changes of the number of instances, seals. It is pure, as
// package member is; nothing in it is safe for concurrent use.
//
//   - register.go, handshakes.go: what a member notes of itself and the others, and what follows from a handshake.
//   - lineage.go, founders.go, origin.go, birth.go: whether two members are of one log and one beginning.
//   - settings.go: the settings that members compare, and the first profile of a log of an earlier version.
//   - versions.go: whether all members know profiles, and seals.
//   - formats.go: the format that all members know, and in which they write.
//   - links.go, places.go: with which members there is a link, and at which addresses they are tried.
//   - operation.go: what can be asked for.
//   - request.go: an operation at the member that was asked.
//   - execution.go, sealing.go: an operation at the member that leads the global log.
//   - fitting.go: what that member's fitter knows.
//
// May import: member, apply, fit, protocol (with quorum), order, wal (a full disk), transport (why a link is refused).
package cluster
