package iss

import (
	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
)

// count counts a slot of the log.
func (c *counter) count(e *protocol.Entry) {
	c.slots++
	if isNil(e) {
		c.skipped++
	}
}

func (s *ISS) epochStatus() *protocol.EpochStatus {
	if s.epoch == nil {
		return nil
	}
	st := &protocol.EpochStatus{
		Number: s.epoch.Number, First: s.epoch.First, Last: s.epoch.Last, Ending: s.ending,
		Unsettled: s.settled() < s.log.Last(), NoQuorum: s.noQuorum,
		Slots: s.counter.slots, Skipped: s.counter.skipped,
	}
	for _, b := range s.parts {
		st.Segments = append(st.Segments, b.status())
	}
	for _, id := range s.epoch.Voters {
		if !s.epoch.Leads(id) {
			st.Banned = append(st.Banned, id)
			st.BannedUntil = append(st.BannedUntil, s.history.BannedUntil(id))
		}
	}
	return st
}

func (b *broadcast) status() protocol.SegmentStatus {
	st := protocol.SegmentStatus{
		Leader: b.leader, Last: b.seg.Last, Decided: b.upto, Slots: b.turns.Len(), Ballot: uint64(b.acc.Promised >> 8),
	}
	for _, x := range b.nils {
		st.Skipped += b.turns.Before(x.To+1) - b.turns.Before(x.From)
	}
	if st.Ballot == 0 {
		return st
	}
	for i := range b.s.conf.Members {
		if m := &b.s.conf.Members[i]; paxos.Ballot(m.Slot) == b.acc.Promised&0xff {
			st.By = m.ID
		}
	}
	return st
}
