// Package message is the messages of Raft and of its placements, and how they are encoded.
//
// How to read: message.go (types, and what a message of each type says), part.go (the encoding of what is Raft's own),
// lanehigh.go (how far a disk holds a lane).
//
// May import: protocol.
package message
