package slots

import "github.com/braidlog/braid/protocol"

// Ballot orders proposals for a slot. No two members have the same ballot: its low byte is the member's slot in the
// configuration, which no other member ever has.
type Ballot uint64

// After is a member's lowest ballot that is higher than b.
func (b Ballot) After(m *protocol.Member) Ballot { return (b>>8+1)<<8 | Ballot(m.Slot) }

// Number is the number of ballots that were taken one after the other, up to this one.
func (b Ballot) Number() uint64 { return uint64(b >> 8) }

func (b Ballot) String() string { return protocol.Term(b).BallotText() }
