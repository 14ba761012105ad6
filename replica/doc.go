// Package replica is the corridor between the rooms: it runs the protocol instances of
// one member, makes what they want durable, sends what they say, merges what they commit
// and applies it to a state machine.
//
// What can be decided without waiting is decided in package member, which runs in the
// simulator as it runs here. This package is what waits: replica.go opens and closes a member, loop.go is an
// instance's event loop, host.go what its turns ask for, router.go what the loops of one member are to each other, reshape.go
// begins and retires them, applyloop.go and applyworld.go the apply goroutine, propose.go, client.go and read.go
// the clients' side, snapshots.go and snapfile.go files and streams, links.go the transport;
// bodies.go, bodyworld.go, bodyread.go and kept.go run what keeps the bodies; identity.go, registerfile.go and
// who.go say who a member is.
//
// May import: member, protocol, order, wal, transport, erasure.
package replica
