// Package transport links the members of a cluster: frames, requests and snapshots over
// TCP, with or without mutual TLS.
//
// It decides how bytes reach a peer, never what they mean. A frame that was accepted by
// [Transport.Send] arrives whole, once and in order, or not at all; whatever is lost
// when a connection breaks stays lost, and the protocol above repeats itself. That a
// link broke, and why, is told by Handler.PeerDown.
//
// # Connections
//
// Whoever sends dials, so each direction of each (peer, stream) has its own connection
// and nobody has to agree on whose connection is kept. Requests have one connection per
// peer, shared by number; a snapshot has its own, so that it never stands before the
// log's frames. Each connection starts with a handshake that checks, on both sides,
// version, cluster, members, and the settings that must be equal (handshake.go,
// settings.go). A stranger costs one bounded slot and a deadline, and gets nothing.
//
// # Bounds
//
// A queue is bounded in bytes per (peer, stream), frames and requests in size, streams
// per peer and handshakes under way in number. Nothing waits without a deadline: both
// sides of an idle connection ping (timing.go).
//
// # Emulation
//
// Options.Net puts a delay line and a network card's egress budget under a connection
// (emulate.go, shape.go); TLS and the handshake are above it, so they are as slow as
// they would be. When it is off it is not there at all.
//
// # How to read
//
// transport.go (the interface), peer.go, sender.go and queue.go (the way out), accept.go
// and reader.go (the way in), frame.go and handshake.go (the formats), request.go and
// answer.go, snapshot.go and snapshotin.go, then emulate.go and shape.go.
//
// May import: nothing of braid.
package transport
