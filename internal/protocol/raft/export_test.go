package raft

import (
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

// NewMessage makes a message of Raft for tests.
func NewMessage(m protocol.Message, p message.Part) *protocol.Message {
	return message.With(m, p).Message
}
