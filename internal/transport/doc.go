// Package transport links the members of a cluster: frames, requests and snapshots over
// TCP, with or without mutual TLS.
//
// It decides how bytes reach a peer, never what they mean. A frame that [Transport.Send] accepted
// arrives whole, once and in order, or not at all. Frames lost with a connection are not sent
// again; the protocol above repeats them. Handler.PeerDown reports that a link failed, and why.
//
// # Connections
//
// The sender dials. So each direction of each (peer, stream) has its own connection, and members need not agree on
// whose connection to keep. Requests have a few connections per peer and are distinguished by number. A snapshot has a
// connection of its own, so that frames of the log never wait behind it. Each connection starts with a handshake that
// checks, on both sides, version, cluster, members, the settings that must be equal, and with which state the cluster
// began (handshakeout.go and handshakein.go, settings.go, birth.go, state.go). A connection that fails the handshake
// occupies one of a bounded number of slots until a deadline. A joiner, which is not a member yet, may ask one question
// instead of the handshake after TLS (joiner.go).
//
// # Bounds
//
// A queue is bounded in bytes per (peer, stream), frames and requests in size, streams per peer and
// handshakes in progress in number. Nothing waits without a deadline: both sides of an idle
// connection ping (timing.go).
//
// # Emulation
//
// Options.Net puts a delay line and a network card's egress budget under a connection (emulate.go, shape.go); TLS and
// the handshake are above it, so they are as slow as on a real link. Links of pairs and regions may differ (package
// netspec): each member delays what it sends by the latency of the link to that peer. An accepted connection has the
// delay of all links until the peer has sent its id. SetNet changes all that while links are in use. When emulation is
// off, none of its code runs.
//
// # How to read
//
// transport.go (the interface), peer.go, sender.go and queue.go (the send path), accept.go and reader.go (the receive
// path), dial.go and handshakeout.go (the dialer's side of a connection), handshakein.go (the listening side's),
// identity.go (who a member is), hello.go, features.go, birth.go, lineage.go and frame.go (the bytes), format.go (which
// formats members know), request.go and answer.go, snapshot.go and snapshotin.go, then emulate.go, shape.go and package
// netspec.
//
// May import: internal/format, internal/sys.
package transport
