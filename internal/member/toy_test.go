package member

import "github.com/braidlog/braid/protocol"

// The messages of a protocol for tests.
const (
	msgLog = protocol.FirstOwnType + iota
	msgAck
	msgProposals
)

var toyCodec = &protocol.Codec{Types: []protocol.Traits{
	{Name: "Log", Brings: protocol.BringsLog}, {Name: "Ack"}, {Name: "Proposals", Brings: protocol.BringsProposals},
}}
