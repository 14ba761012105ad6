package message

import (
	"fmt"
	"strings"
	"time"

	"github.com/braidlog/braid/protocol"
)

// The messages of Raft and its placements. An answer has the type after its question.
const (
	PreVote = protocol.FirstOwnType + iota
	PreVoteResp
	Vote
	VoteResp
	Append
	AppendResp
	Heartbeat
	HeartbeatResp
	// Propose forwards sealed batches to the leader. It is answered only when refused.
	Propose
	ProposeResp
	// Read asks the leader for a read index on behalf of a follower.
	Read
	ReadResp
	// TimeoutNow tells a member to stand for election at once (leadership transfer).
	TimeoutNow
	// Holdings: a leader that was just elected asks in what form each member holds the
	// bodies of the Holdings' entries (docs/internals/craft.md, 2.5).
	Holdings
	HoldingsResp
	// Bodies brings a follower more of the bodies of entries that it has: the whole in place of
	// a row. It is answered by AppendResp.
	Bodies
	// Lane brings batches of a lane. It is answered by LaneResp if its own member sent it with
	// a Context.
	Lane
	LaneResp
	// LaneFetch asks for a lane's batches from Index on. It is answered by a Lane.
	LaneFetch
	// LaneOpen asks the leader to open the sender's lane.
	LaneOpen
	// Fence asks a voter for the promise to count for no generation below Round. The answer says how
	// far it holds lanes.
	Fence
	FenceResp
	// LaneMissing asks a leader for the group at Index in place of its signal.
	LaneMissing
	messageTypes
)

// Codec is what is known of Raft's messages.
var Codec = &protocol.Codec{Types: types[:], Decode: decodePart, Describe: describe, Claims: claims}

const own = protocol.FirstOwnType

var types = [messageTypes - own]protocol.Traits{
	PreVote - own:       {Name: "PreVote", Delivery: protocol.Urgent},
	PreVoteResp - own:   {Name: "PreVoteResp", Delivery: protocol.Urgent},
	Vote - own:          {Name: "Vote", Delivery: protocol.Urgent},
	VoteResp - own:      {Name: "VoteResp", Delivery: protocol.Urgent},
	Append - own:        {Name: "Append", Brings: protocol.BringsLog},
	AppendResp - own:    {Name: "AppendResp"},
	Heartbeat - own:     {Name: "Heartbeat", Delivery: protocol.BothWays},
	HeartbeatResp - own: {Name: "HeartbeatResp", Delivery: protocol.SameWay},
	Propose - own:       {Name: "Propose", Brings: protocol.BringsProposals},
	ProposeResp - own:   {Name: "ProposeResp"},
	Read - own:          {Name: "Read", Delivery: protocol.Urgent},
	ReadResp - own:      {Name: "ReadResp", Delivery: protocol.Urgent},
	TimeoutNow - own:    {Name: "TimeoutNow", Delivery: protocol.Urgent},
	Holdings - own:      {Name: "Holdings"},
	HoldingsResp - own:  {Name: "HoldingsResp"},
	Bodies - own:        {Name: "Bodies"},
	Lane - own:          {Name: "Lane", Brings: protocol.BringsProposals},
	LaneResp - own:      {Name: "LaneResp"},
	LaneFetch - own:     {Name: "LaneFetch"},
	LaneOpen - own:      {Name: "LaneOpen"},
	Fence - own:         {Name: "Fence"},
	FenceResp - own:     {Name: "FenceResp"},
	LaneMissing - own:   {Name: "LaneMissing"},
}

// Part is what Raft's messages have alongside what all protocols' messages have. Which fields mean
// something depends on the type; unused ones are zero. Of the common ones, Commit is the sender's
// commit index, in a HeartbeatResp Applied of [protocol.Tick].
type Part struct {
	// Force: Votes: asked for by a leadership transfer, so stickiness does not apply. Lane: someone
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
	// ReadResp: the read index. Heartbeat: the last entry that the receiver acknowledged in this
	// term; LogTerm is 0 if the leader does not know it any more.
	Index   protocol.Index
	LogTerm protocol.Term
	// LaneResp: the disk holds the lane up to here. LaneFetch: what is missing begins here.
	// Hint and HintTerm: AppendResp with Reject: where the follower's log may match.
	Hint     protocol.Index
	HintTerm protocol.Term
	// Round numbers the leader's confirmations of its leadership; answers repeat it. LaneOpen: the
	// incarnation of an earlier lane of which the sender holds something up to ID.Seq. Lane: the
	// generation active. LaneResp: that for which the answer counts; 0: none.
	Round uint64
	// ID is the refused proposal's id (ProposeResp). In messages about a lane its Session is the lane.
	ID protocol.ProposalID
	// Append: if ID has a Seq, the sender's disk holds the receiver's lane up to there; ID.Session is the lane,
	// Fence the generation for which that counts, 0: none.
	// Fence: HeartbeatResp: the generation below which the sender promised not to count.
	Fence uint64
	// Lanes: HeartbeatResp, FenceResp: how far the disk holds lanes, where that is more than is
	// committed.
	Lanes []LaneHigh
}

// Message is a message with its part.
type Message struct {
	*protocol.Message
	*Part
}

// With makes a message and its part in one piece of memory.
func With(m protocol.Message, p Part) Message {
	made := protocol.WithPart(m, p)
	return Message{made, made.Part.(*Part)}
}

// Stamp turns an instant into a mark that is never 0.
func Stamp(t time.Duration) uint64 { return uint64(t) + 1 }

// Trip is how long before an instant the question was sent that the message answers; negative if not known.
func (m Message) Trip(now time.Duration) time.Duration {
	if m.Context == 0 {
		return -1
	}
	return now - time.Duration(m.Context-1)
}

// Of is a message that this member or another one made with msg.
func Of(m *protocol.Message) Message { return Message{m, m.Part.(*Part)} }

// describe is what the part says, for a person.
func describe(in *protocol.Message) string {
	m := Of(in)
	text := ""
	switch m.Type {
	case PreVote, Vote:
		text = fmt.Sprintf("last %d/%d", m.Index, m.LogTerm)
	case Append:
		text = fmt.Sprintf("after %d/%d", m.Index, m.LogTerm)
		if m.ID.Seq > 0 {
			text += fmt.Sprintf(" holds %s to %d, counts for %d", m.ID.Session, m.ID.Seq, m.Fence)
		}
	case AppendResp:
		text = fmt.Sprintf("match %d", m.Index)
		if m.Reject {
			text = fmt.Sprintf("refused %d, perhaps %d/%d", m.Index, m.Hint, m.HintTerm)
		}
	case Heartbeat:
		if m.Index > 0 {
			text = fmt.Sprintf("acknowledged %d/%d", m.Index, m.LogTerm)
		}
	case HeartbeatResp:
		text = fmt.Sprintf("match %d seen %d", m.Index, m.Hint)
	case Lane, LaneResp, LaneFetch, LaneOpen:
		text = describeLane(m)
	case LaneMissing:
		text = fmt.Sprint(m.Index)
	case Read:
		text = fmt.Sprint(m.Context)
	case ReadResp:
		text = fmt.Sprintf("%d at %d", m.Context, m.Index)
	}
	if m.Force && m.Type == Read {
		text += " barrier"
	} else if m.Force && m.Type != Lane {
		text = "forced " + text
	}
	switch {
	case m.Type == Fence || m.Type == FenceResp:
		text += fmt.Sprintf("below %d", m.Round)
	case m.Type == LaneResp && m.Round > 0:
		text += fmt.Sprintf(", counts for %d", m.Round)
	case m.Fence > 0 && m.Type != Append:
		text += fmt.Sprintf(" fenced below %d", m.Fence)
	}
	for _, h := range m.Lanes {
		text += fmt.Sprintf(" lane %s to %d", h.Lane, h.High)
	}
	if m.Reason != protocol.ReasonNone {
		text += fmt.Sprintf(" (%s)", m.Reason)
	}
	if m.Round > 0 && (m.Type == Heartbeat || m.Type == HeartbeatResp) {
		text += fmt.Sprintf(" round %d", m.Round)
	}
	if m.Lacking {
		text += " lacking"
	}
	return strings.TrimSpace(text)
}

// describeLane is what a message about a lane says.
func describeLane(m Message) string {
	text := fmt.Sprintf("of %s", m.ID.Session)
	switch {
	case m.Type == Lane:
		if m.Force {
			text += " urgent"
		}
		if m.Later {
			text += " answer later"
		}
	case m.Type == LaneResp && m.Reject:
		text += fmt.Sprintf(" holds %d, a gap follows", m.Index)
	case m.Type == LaneResp:
		text += fmt.Sprintf(" holds %d", m.Index)
	case m.Type == LaneFetch:
		text += fmt.Sprintf(" from %d", m.Index)
	case m.Type == LaneOpen && m.Round > 0:
		text += fmt.Sprintf(", ending %s at %d", protocol.Lane{Member: m.From, Incarnation: m.Round}, m.ID.Seq)
	}
	return text
}

// claims is what a message says that must be so.
func claims(in *protocol.Message) (c protocol.Claims) {
	m := Of(in)
	switch m.Type {
	case Vote:
		c.Vote = m.From
	case VoteResp:
		if !m.Reject {
			c.Vote = m.To
		}
	case Append:
		c.Term = true
	case AppendResp, HeartbeatResp:
		c.Holds = true
		if c.Term = !m.Reject; c.Term {
			c.Stored = m.Index
		}
	case Heartbeat:
		c.Acked = m.Index
	case TimeoutNow:
		c.Moves = true
	case HoldingsResp: // it is bound to the new leader's term (docs/internals/craft.md, G2)
		c.Term, c.Holds, c.Asked = true, true, true
	}
	return c
}
