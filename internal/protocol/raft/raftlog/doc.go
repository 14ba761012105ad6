// Package raftlog is the log of Raft as a member has it in memory, and what is known of the disk below it.
//
// How to read: log.go (the entries, and which of them have payloads), pack.go (old envelopes, as differences), disk.go
// (which writes are durable).
//
// May import: protocol.
package raftlog
