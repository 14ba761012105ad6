package raft

import "github.com/braidlog/braid/protocol"

// Codec is what members know of Raft's messages.
var Codec = &protocol.Codec{Types: types[:]}

// types are the messages of Raft and its placements.
var types = [...]protocol.Traits{
	protocol.MsgPreVote - protocol.FirstOwnType:       {Name: "PreVote", Way: protocol.Urgent},
	protocol.MsgPreVoteResp - protocol.FirstOwnType:   {Name: "PreVoteResp", Way: protocol.Urgent},
	protocol.MsgVote - protocol.FirstOwnType:          {Name: "Vote", Way: protocol.Urgent},
	protocol.MsgVoteResp - protocol.FirstOwnType:      {Name: "VoteResp", Way: protocol.Urgent},
	protocol.MsgAppend - protocol.FirstOwnType:        {Name: "Append", Brings: protocol.BringsLog},
	protocol.MsgAppendResp - protocol.FirstOwnType:    {Name: "AppendResp"},
	protocol.MsgHeartbeat - protocol.FirstOwnType:     {Name: "Heartbeat", Way: protocol.BothWays},
	protocol.MsgHeartbeatResp - protocol.FirstOwnType: {Name: "HeartbeatResp", Way: protocol.SameWay},
	protocol.MsgPropose - protocol.FirstOwnType:       {Name: "Propose", Brings: protocol.BringsProposals},
	protocol.MsgProposeResp - protocol.FirstOwnType:   {Name: "ProposeResp"},
	protocol.MsgRead - protocol.FirstOwnType:          {Name: "Read", Way: protocol.Urgent},
	protocol.MsgReadResp - protocol.FirstOwnType:      {Name: "ReadResp", Way: protocol.Urgent},
	protocol.MsgTimeoutNow - protocol.FirstOwnType:    {Name: "TimeoutNow", Way: protocol.Urgent},
	protocol.MsgHoldings - protocol.FirstOwnType:      {Name: "Holdings"},
	protocol.MsgHoldingsResp - protocol.FirstOwnType:  {Name: "HoldingsResp"},
	protocol.MsgBodies - protocol.FirstOwnType:        {Name: "Bodies"},
}
