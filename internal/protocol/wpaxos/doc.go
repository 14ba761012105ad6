// Package wpaxos is WPaxos (docs/internals/wpaxos.md): each group of keys has a log of its own, an instance of
// multi-Paxos, and an owner, which leads it. The owner transfers a group to the zone that sends most of its commands.
// Quorums may be formed by zones.
//
// The package decides which member should own a group. Package multipaxos does the rest; wpaxos uses its messages. It
// may import protocol, protocol/quorum, internal/protocol/multipaxos and internal/protocol/paxos.
//
// How to read: demand.go (which members request a group, and when it moves), wpaxos.go (the core), steal.go
// (settings), info.go (what others know of the core), mutant.go.
package wpaxos
