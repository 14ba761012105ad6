package raft

import "github.com/braidlog/braid/protocol"

// NewMessage makes a message of Raft for tests.
func NewMessage(m protocol.Message, p Part) *protocol.Message { return msg(m, p).Message }
