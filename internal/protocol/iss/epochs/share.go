package epochs

// A leader that needs few of its slots gets fewer turns, so that others wait less often for it to skip. An epoch
// in which everybody needs few gets fewer rounds.

// busy and spare say that so many of some slots were needed that there should be more, or that fewer are
// enough.
func busy(needed, slots int) bool  { return 4*needed >= 3*slots }
func spare(needed, slots int) bool { return 4*needed < slots }

// firstShare is the share of a voter of which nothing is known.
func (s *Settings) firstShare() uint8 {
	if s.EqualShares {
		return fullShare
	}
	return 1
}

// adapt gives each leader of the epoch that ends its share of the next one, and that its length. A member that
// is suspected begins with the smallest share, unless all shares are equal.
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
