package epochs

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Check verifies the invariants.
func (h *History) Check() error {
	e := h.epoch
	if e == nil {
		return nil
	}
	switch {
	case h.next < e.First || h.next > e.Last:
		return fmt.Errorf("epochs: slot %d is next in epoch %d of %d…%d", h.next, e.Number, e.First, e.Last)
	case e.Number == 0 || uint64(e.First) < e.Number || (e.Number == 1) != (e.First == 1):
		return fmt.Errorf("epochs: epoch %d begins with slot %d", e.Number, e.First)
	case h.slots < h.set.MinSlots || h.slots > h.set.MaxSlots || h.slots&(h.slots-1) != 0:
		return fmt.Errorf("epochs: segments of %d slots, %d to %d are possible", h.slots, h.set.MinSlots, h.set.MaxSlots)
	case h.since == 0 || h.since > e.Number:
		return fmt.Errorf("epochs: member %s leads since epoch %d, it is epoch %d", h.lead, h.since, e.Number)
	case len(h.voters) == 0 || len(h.records) != len(e.Voters):
		return fmt.Errorf("epochs: %d voters next, %d known of %d", len(h.voters), len(h.records), len(e.Voters))
	}
	for at := range e.Leaders {
		if err := h.checkSegment(Segment{e, at}); err != nil {
			return err
		}
	}
	for i := range h.records {
		if err := h.checkRecord(&h.records[i], e.Voters[i]); err != nil {
			return err
		}
	}
	if h.lead != h.leading() {
		return fmt.Errorf("epochs: member %s stands for the leaders %s", h.lead, e.Leaders)
	}
	return nil
}

// checkSegment verifies the counters of a segment.
func (h *History) checkSegment(s Segment) error {
	passed, loads, ended := s.Before(h.next), int(h.loads[s.at]), h.ended[s.at]
	if loads > passed || ended && s.Last() >= h.next {
		return fmt.Errorf("epochs: %d values in %d slots of %s, ended %t, slot %d is next", loads, passed, s.Leader(), ended,
			h.next)
	}
	if _, ok := slices.BinarySearch(h.epoch.Voters, s.Leader()); !ok {
		return fmt.Errorf("epochs: member %s leads in epoch %d and does not vote", s.Leader(), h.epoch.Number)
	}
	return nil
}

// checkRecord verifies the record of a voter.
func (h *History) checkRecord(r *record, voter protocol.MemberID) error {
	ban := r.penalty == 0 || int(r.penalty) >= h.set.Ban && int(r.penalty) <= h.set.MaxBan
	if h.set.EqualShares && r.share != fullShare {
		return fmt.Errorf("epochs: voter %s has a share of %d, all are equal", voter, r.share)
	}
	if r.id != voter || r.share < 1 || r.share > fullShare || r.share == 3 || !ban || r.left > r.penalty ||
		r.suspected >= h.epoch.Number || r.suspected == 0 && r.penalty > 0 {
		return fmt.Errorf("epochs: record %+v of voter %s in epoch %d", *r, voter, h.epoch.Number)
	}
	if (h.set.Policy == Backoff || h.set.Policy == Combined) && r.left > 0 && h.epoch.Leads(r.id) {
		return fmt.Errorf("epochs: member %s leads in epoch %d, and is banned for %d", r.id, h.epoch.Number, r.left)
	}
	return nil
}
