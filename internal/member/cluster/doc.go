// Package cluster carries out what operators ask for: changes of members, transfers of leadership, changes of the
// number of instances. It is pure, as package member is; nothing in it is safe for concurrent use.
//
//   - operation.go: what can be asked for.
//   - request.go: an operation at the member that was asked.
//   - execution.go: an operation at the member that leads the global log.
//
// May import: member, apply, protocol, order.
package cluster
