package raft

import (
	"fmt"
	"strings"
	"time"

	"github.com/braidlog/braid/protocol"
)

// The messages of Raft and its placements. An answer has the type after its question.
const (
	MsgPreVote = protocol.FirstOwnType + iota
	MsgPreVoteResp
	MsgVote
	MsgVoteResp
	MsgAppend
	MsgAppendResp
	MsgHeartbeat
	MsgHeartbeatResp
	// MsgPropose forwards sealed batches to the leader. It is answered only when refused.
	MsgPropose
	MsgProposeResp
	// MsgRead asks the leader for a read point on behalf of a follower.
	MsgRead
	MsgReadResp
	// MsgTimeoutNow tells a member to stand for election at once (leadership transfer).
	MsgTimeoutNow
	// MsgHoldings: a leader that was just elected asks in what form each member holds the
	// bodies of the Holdings' entries (docs/internals/craft.md, 2.5).
	MsgHoldings
	MsgHoldingsResp
	// MsgBodies brings a follower more of the bodies of entries that it has: the whole in place of
	// a row. It is answered by MsgAppendResp.
	MsgBodies
	// MsgLane brings batches of a lane. It is answered by MsgLaneResp if its own member sent it with
	// a Context.
	MsgLane
	MsgLaneResp
	// MsgLaneFetch asks for a lane's batches from Index on. It is answered by a MsgLane.
	MsgLaneFetch
	// MsgLaneOpen asks the leader to open the sender's lane.
	MsgLaneOpen
	// MsgFence asks a voter for the promise to count for no generation below Round. The answer says up
	// to where it holds lanes.
	MsgFence
	MsgFenceResp
	// MsgLaneMissing asks a leader for the group at Index in place of its signal.
	MsgLaneMissing
	messageTypes
)

// Codec is what is known of Raft's messages.
var Codec = &protocol.Codec{Types: types[:], Decode: decodePart, Describe: describe, Claims: claims}

const own = protocol.FirstOwnType

var types = [messageTypes - own]protocol.Traits{
	MsgPreVote - own:       {Name: "PreVote", Way: protocol.Urgent},
	MsgPreVoteResp - own:   {Name: "PreVoteResp", Way: protocol.Urgent},
	MsgVote - own:          {Name: "Vote", Way: protocol.Urgent},
	MsgVoteResp - own:      {Name: "VoteResp", Way: protocol.Urgent},
	MsgAppend - own:        {Name: "Append", Brings: protocol.BringsLog},
	MsgAppendResp - own:    {Name: "AppendResp"},
	MsgHeartbeat - own:     {Name: "Heartbeat", Way: protocol.BothWays},
	MsgHeartbeatResp - own: {Name: "HeartbeatResp", Way: protocol.SameWay},
	MsgPropose - own:       {Name: "Propose", Brings: protocol.BringsProposals},
	MsgProposeResp - own:   {Name: "ProposeResp"},
	MsgRead - own:          {Name: "Read", Way: protocol.Urgent},
	MsgReadResp - own:      {Name: "ReadResp", Way: protocol.Urgent},
	MsgTimeoutNow - own:    {Name: "TimeoutNow", Way: protocol.Urgent},
	MsgHoldings - own:      {Name: "Holdings"},
	MsgHoldingsResp - own:  {Name: "HoldingsResp"},
	MsgBodies - own:        {Name: "Bodies"},
	MsgLane - own:          {Name: "Lane", Brings: protocol.BringsProposals},
	MsgLaneResp - own:      {Name: "LaneResp"},
	MsgLaneFetch - own:     {Name: "LaneFetch"},
	MsgLaneOpen - own:      {Name: "LaneOpen"},
	MsgFence - own:         {Name: "Fence"},
	MsgFenceResp - own:     {Name: "FenceResp"},
	MsgLaneMissing - own:   {Name: "LaneMissing"},
}

// Part is what Raft's messages have beside what all protocols' messages have. Which fields mean
// something depends on the type; unused ones are zero. Of the common ones, Commit is the sender's
// commit index, in a HeartbeatResp Applied of [protocol.Tick].
type Part struct {
	// Force: Votes: asked for by a leadership transfer, so stickiness does not apply. Lane: somebody
	// waits for the results. Read: it is a barrier.
	Force   bool
	Lacking bool // AppendResp, HeartbeatResp: bodies of committed entries are still missing here
	Later   bool // Lane: the receiver's answer is not needed soon
	Reason  protocol.Reason
	// Partial and Restripes: AppendResp, HeartbeatResp: as in [protocol.Bodies].
	Partial   uint8
	Restripes uint32
	// Index and LogTerm: Append: the entry before Entries. AppendResp: the highest index
	// known to match, or, if Reject, the refused Index. Votes: the candidate's last entry.
	// ReadResp: the read point. Heartbeat: the last entry that the receiver acknowledged in this
	// term; LogTerm is 0 if the leader does not know it any more.
	Index   protocol.Index
	LogTerm protocol.Term
	// LaneResp: the disk holds the lane up to here. LaneFetch: what is missing begins here.
	// Hint and HintTerm: AppendResp with Reject: where the follower's log may match.
	Hint     protocol.Index
	HintTerm protocol.Term
	// Round numbers the leader's confirmations of its leadership; answers repeat it. LaneOpen: the
	// incarnation of an earlier lane of which the sender holds something up to ID.Seq. Lane: the
	// generation in force. LaneResp: that for which the answer counts; 0: none.
	Round uint64
	// ID is the refused proposal's id (ProposeResp). In messages about a lane its Session is the lane.
	ID protocol.ProposalID
	// Append: if ID has a Seq, the sender's disk holds the receiver's lane up to there; ID.Session is the lane,
	// Fence the generation for which that counts, 0: none.
	// Fence: HeartbeatResp: the generation below which the sender promised not to count.
	Fence uint64
	// Lanes: HeartbeatResp, FenceResp: up to where the disk holds lanes, where that is more than is
	// committed.
	Lanes []LaneHigh
}

// message is a message with its part.
type message struct {
	*protocol.Message
	*Part
}

// msg makes a message and its part in one piece of memory.
func msg(m protocol.Message, p Part) message {
	both := &struct {
		m protocol.Message
		p Part
	}{m, p}
	both.m.Part = &both.p
	return message{&both.m, &both.p}
}

// stamp turns an instant into a mark that is never 0.
func stamp(t time.Duration) uint64 { return uint64(t) + 1 }

// withPart is a message that this member or another one made with msg.
func withPart(m *protocol.Message) message { return message{m, m.Part.(*Part)} }

// describe is what the part says, for a person.
func describe(in *protocol.Message) string {
	m := withPart(in)
	text := ""
	switch m.Type {
	case MsgPreVote, MsgVote:
		text = fmt.Sprintf("last %d/%d", m.Index, m.LogTerm)
	case MsgAppend:
		text = fmt.Sprintf("after %d/%d", m.Index, m.LogTerm)
		if m.ID.Seq > 0 {
			text += fmt.Sprintf(" holds %s to %d, counts for %d", m.ID.Session, m.ID.Seq, m.Fence)
		}
	case MsgAppendResp:
		text = fmt.Sprintf("match %d", m.Index)
		if m.Reject {
			text = fmt.Sprintf("refused %d, perhaps %d/%d", m.Index, m.Hint, m.HintTerm)
		}
	case MsgHeartbeat:
		if m.Index > 0 {
			text = fmt.Sprintf("acknowledged %d/%d", m.Index, m.LogTerm)
		}
	case MsgHeartbeatResp:
		text = fmt.Sprintf("match %d seen %d", m.Index, m.Hint)
	case MsgLane, MsgLaneResp, MsgLaneFetch, MsgLaneOpen:
		text = describeLane(m)
	case MsgLaneMissing:
		text = fmt.Sprint(m.Index)
	case MsgRead:
		text = fmt.Sprint(m.Context)
	case MsgReadResp:
		text = fmt.Sprintf("%d at %d", m.Context, m.Index)
	}
	if m.Force && m.Type == MsgRead {
		text += " barrier"
	} else if m.Force && m.Type != MsgLane {
		text = "forced " + text
	}
	switch {
	case m.Type == MsgFence || m.Type == MsgFenceResp:
		text += fmt.Sprintf("below %d", m.Round)
	case m.Type == MsgLaneResp && m.Round > 0:
		text += fmt.Sprintf(", counts for %d", m.Round)
	case m.Fence > 0 && m.Type != MsgAppend:
		text += fmt.Sprintf(" fenced below %d", m.Fence)
	}
	for _, h := range m.Lanes {
		text += fmt.Sprintf(" lane %s to %d", h.Lane, h.High)
	}
	if m.Reason != protocol.ReasonNone {
		text += fmt.Sprintf(" (%s)", m.Reason)
	}
	if m.Round > 0 && (m.Type == MsgHeartbeat || m.Type == MsgHeartbeatResp) {
		text += fmt.Sprintf(" round %d", m.Round)
	}
	if m.Lacking {
		text += " lacking"
	}
	return strings.TrimSpace(text)
}

// describeLane is what a message about a lane says.
func describeLane(m message) string {
	text := fmt.Sprintf("of %s", m.ID.Session)
	switch {
	case m.Type == MsgLane:
		if m.Force {
			text += " urgent"
		}
		if m.Later {
			text += " answer later"
		}
	case m.Type == MsgLaneResp && m.Reject:
		text += fmt.Sprintf(" holds %d, a gap follows", m.Index)
	case m.Type == MsgLaneResp:
		text += fmt.Sprintf(" holds %d", m.Index)
	case m.Type == MsgLaneFetch:
		text += fmt.Sprintf(" from %d", m.Index)
	case m.Type == MsgLaneOpen && m.Round > 0:
		text += fmt.Sprintf(", ending %s at %d", protocol.Lane{Member: m.From, Incarnation: m.Round}, m.ID.Seq)
	}
	return text
}

// claims is what a message says that must be so.
func claims(in *protocol.Message) (c protocol.Claims) {
	m := withPart(in)
	switch m.Type {
	case MsgVote:
		c.Vote = m.From
	case MsgVoteResp:
		if !m.Reject {
			c.Vote = m.To
		}
	case MsgAppend:
		c.Term = true
	case MsgAppendResp, MsgHeartbeatResp:
		c.Holds = true
		if c.Term = !m.Reject; c.Term {
			c.Stored = m.Index
		}
	case MsgHeartbeat:
		c.Acked = m.Index
	case MsgTimeoutNow:
		c.Moves = true
	case MsgHoldingsResp: // it is bound to the new leader's term (docs/internals/craft.md, G2)
		c.Term, c.Holds, c.Asked = true, true, true
	}
	return c
}
