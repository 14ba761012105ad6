// Package protocol is the contract between a replication protocol and the replica that runs it, with the arithmetic
// and encodings that all protocols share.
//
// A protocol is a [Core]: every event is an [Input], every action to take is in [Effects]. It never waits, reads no
// clock, draws no random number, starts no goroutine and writes no log line, so the simulator runs the very code that
// production runs.
//
// Replicas agree on a log of entries. An [Entry] is an envelope (index, term, kind, proposal id, payload size and
// digest) and a payload, whose bytes a member may hold whole, as a fragment or not at all. The envelope is encoded
// once, by the leader; the same bytes go to the leader's disk, over the wire and to the followers' disks.
//
// Terms: a *term* and an *index* belong to one instance's log; a *position* belongs to the global log and counts
// commands, so an entry with n commands covers n positions (an entry without commands covers one).
//
// How to read: ids.go, entry.go, batch.go, config.go, zone.go, profile.go (the log's contents), message.go, codec.go
// (messages), core.go (the contract itself), propose.go, stages.go (the options of a proposal, and when it passed its
// stages), seal.go and seals.go (the end of a log, for its order and for a core),
// info.go and judged.go (the description of a core), errors.go.
//
// May import: the standard library only, without packages that wait, do I/O or read the clock.
package protocol
