// Package wpaxos is WPaxos (docs/internals/wpaxos.md): each group of keys has a log of its own, an instance of
// multi-Paxos, and an owner, which leads it. The owner hands a group over to the zone that asks for its commands.
// Quorums may stand in zones.
//
// It decides which member should own a group. Package multipaxos does the rest; wpaxos uses its messages. It may import
// protocol, protocol/quorum, internal/protocol/multipaxos and internal/protocol/paxos.
//
// How to read: asking.go (who asks for a group, and when that is enough), wpaxos.go (the core), mutant.go.
package wpaxos
