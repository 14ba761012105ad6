package message

import (
	"encoding/binary"
	"fmt"

	"github.com/braidlog/braid/protocol"
)

// A part is encoded as two bytes that say which of its fields are not zero, and those of them that
// are numbers, in their order.
const (
	hasIndex = 1 << iota
	hasLogTerm
	hasHint
	hasHintTerm
	hasRound
	hasReason
	hasPartial
	hasRestripes
	hasMember
	hasIncarnation
	hasSeq
	hasFence
	hasForce
	hasLacking
	hasLanes
	hasLater
	numbers = iota - 4
)

// fields are those that a type may have.
var fields = [messageTypes - own]uint16{
	PreVote - own:       hasIndex | hasLogTerm | hasForce,
	Vote - own:          hasIndex | hasLogTerm | hasForce,
	Append - own:        hasIndex | hasLogTerm | hasRound | hasMember | hasIncarnation | hasSeq | hasFence,
	AppendResp - own:    hasIndex | hasHint | hasHintTerm | hasRound | hasLacking | hasPartial | hasRestripes,
	Heartbeat - own:     hasIndex | hasLogTerm | hasRound,
	HeartbeatResp - own: hasIndex | hasHint | hasRound | hasLacking | hasPartial | hasRestripes | hasLanes | hasFence,
	ProposeResp - own:   hasReason | hasMember | hasIncarnation | hasSeq,
	Read - own:          hasRound | hasForce,
	ReadResp - own:      hasIndex | hasRound | hasReason,
	Holdings - own:      hasRound,
	HoldingsResp - own:  hasRound,
	Bodies - own:        hasRound,
	Fence - own:         hasRound,
	FenceResp - own:     hasRound | hasLanes,
	Lane - own:          hasRound | hasForce | hasLater | hasMember | hasIncarnation,
	LaneResp - own:      hasRound | hasIndex | hasMember | hasIncarnation,
	LaneFetch - own:     hasIndex | hasMember | hasIncarnation,
	LaneMissing - own:   hasIndex,
	LaneOpen - own:      hasRound | hasMember | hasIncarnation | hasSeq,
}

// Append implements protocol.Part.
func (p *Part) Append(dst []byte) []byte {
	at, has := len(dst), 0
	if p.Force {
		has |= hasForce
	}
	if p.Lacking {
		has |= hasLacking
	}
	if p.Later {
		has |= hasLater
	}
	dst = append(dst, 0, 0)
	for i, v := range [numbers]uint64{
		uint64(p.Index), uint64(p.LogTerm), uint64(p.Hint), uint64(p.HintTerm), p.Round, uint64(p.Reason), uint64(p.Partial),
		uint64(p.Restripes), uint64(p.ID.Session.Member), p.ID.Session.Incarnation, p.ID.Seq, p.Fence,
	} {
		if v != 0 {
			has |= 1 << i
			dst = binary.AppendUvarint(dst, v)
		}
	}
	if len(p.Lanes) > 0 {
		has |= hasLanes
		for _, h := range p.Lanes {
			dst = AppendHigh(dst, h.Lane, h.High)
		}
	}
	binary.LittleEndian.PutUint16(dst[at:], uint16(has))
	return dst
}

// decodePart reads what Append wrote.
func decodePart(t protocol.MessageType, b []byte) (*protocol.Message, error) {
	wrong := func(what string) error {
		return &protocol.CorruptError{What: "message", Detail: fmt.Sprintf("%s: part %x %s", types[t-own].Name, b, what)}
	}
	if len(b) < 2 {
		return nil, wrong("is cut short")
	}
	has, rest := binary.LittleEndian.Uint16(b), b[2:]
	if has&^fields[t-own] != 0 {
		return nil, wrong("has fields that are not this type's")
	}
	var v [numbers]uint64
	for i := range v {
		if has>>i&1 == 0 {
			continue
		}
		n := 0
		if v[i], n = binary.Uvarint(rest); n <= 0 || v[i] == 0 {
			return nil, wrong("has a number that is none")
		}
		rest = rest[n:]
	}
	var lanes []LaneHigh
	for has&hasLanes != 0 && len(rest) > 0 {
		lane, n, more, ok := NextHigh(rest)
		if !ok {
			return nil, wrong("has a lane that is none")
		}
		lanes, rest = append(lanes, LaneHigh{lane, n}), more
	}
	if len(rest) > 0 || v[5] > 0xff || v[6] > 0xff || v[7] > 0xffffffff {
		return nil, wrong("has too much")
	}
	return With(protocol.Message{}, Part{
		Index: protocol.Index(v[0]), LogTerm: protocol.Term(v[1]), Hint: protocol.Index(v[2]), HintTerm: protocol.Term(v[3]),
		Round:  v[4],
		Reason: protocol.Reason(v[5]), Partial: uint8(v[6]), Restripes: uint32(v[7]), Force: has&hasForce != 0,
		Lacking: has&hasLacking != 0, Later: has&hasLater != 0,
		ID:    protocol.ProposalID{Session: protocol.Session{Member: protocol.MemberID(v[8]), Incarnation: v[9]}, Seq: v[10]},
		Fence: v[11], Lanes: lanes,
	}).Message, nil
}
