// Package transport links the members of a cluster: frames, requests and snapshots over
// TCP, with or without mutual TLS.
//
// It decides how bytes reach a peer, never what they mean. A frame that [Transport.Send] accepted
// arrives whole, once and in order, or not at all. What is lost when a connection breaks stays
// lost; the protocol above repeats it. Handler.PeerDown tells that a link broke, and why.
//
// # Connections
//
// The sender dials. So each direction of each (peer, stream) has its own connection, and members need not agree on
// whose connection to keep. Requests have a few connections per peer and are told apart by number. A snapshot has a
// connection of its own, so that frames of the log never wait behind it. Each connection starts with a handshake that
// checks, on both sides, version, cluster, members, the settings that must be equal, and with which state the cluster
// began (handshake.go, settings.go, birth.go). A stranger costs one bounded slot and a deadline, and gets nothing.
// Someone who is to become a member may ask one question in place of the handshake, once it has passed TLS (joiner.go).
//
// # Bounds
//
// A queue is bounded in bytes per (peer, stream), frames and requests in size, streams per peer and
// handshakes in progress in number. Nothing waits without a deadline: both sides of an idle
// connection ping (timing.go).
//
// # Emulation
//
// Options.Net puts a delay line and a network card's egress budget under a connection (emulate.go,
// shape.go); TLS and the handshake are above it, so they are as slow as on a real link. Links of pairs
// and regions may differ (package netspec): each member delays what it sends by what the way to that
// peer takes. An accepted connection has the delay of all links until the peer has said who it is.
// SetNet changes all that while links are in use. When it is off, there is no code of it in the way.
//
// # How to read
//
// transport.go (the interface), peer.go, sender.go and queue.go (the way out), accept.go
// and reader.go (the way in), frame.go, handshake.go, birth.go and lineage.go (the formats), request.go and
// answer.go, snapshot.go and snapshotin.go, then emulate.go, shape.go and package netspec.
//
// May import: internal/sys.
package transport
