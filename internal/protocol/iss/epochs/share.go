package epochs

// A leader that uses few of its slots gets fewer turns, so that others wait less often for it to skip. If all leaders
// use few, the next epoch has fewer rounds.

// busy reports that enough slots were used to increase their number; spare, that fewer are enough.
func busy(needed, slots int) bool  { return 4*needed >= 3*slots }
func spare(needed, slots int) bool { return 4*needed < slots }

// firstShare is the share of a voter without a history.
func (s *Settings) firstShare() uint8 {
	if s.EqualShares {
		return fullShare
	}
	return 1
}

// adapt sets the share of each leader in the next epoch, and the length of that epoch. A member that is suspected
// begins with the smallest share, unless all shares are equal.
func (h *History) adapt() {
	grow, shrink := false, true
	for at, id := range h.epoch.Leaders {
		r, slots, needed := h.of(id), Segment{h.epoch, at}.Len(), int(h.loads[at])
		shrink = shrink && spare(needed, slots)
		switch {
		case h.set.EqualShares:
			grow = grow || h.ended[at] && busy(needed, slots)
		case !h.ended[at]:
			r.share = 1
		case busy(needed, slots):
			grow = grow || r.share == fullShare
			r.share = min(2*r.share, fullShare)
		case spare(needed, slots):
			r.share = max(r.share/2, 1)
		}
	}
	switch {
	case grow:
		h.slots = min(2*h.slots, h.set.MaxSlots)
	case shrink:
		h.slots = max(h.slots/2, h.set.MinSlots)
	}
}
