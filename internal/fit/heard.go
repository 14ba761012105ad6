package fit

import (
	"time"

	"github.com/braidlog/braid/protocol"
)

// Heard has the newest report of each member. The zero value has none. Not safe for concurrent use.
type Heard struct {
	of map[protocol.MemberID]heard
}

// heard is a report, and when it came.
type heard struct {
	Report
	at time.Duration
}

// fresh is for how many times the span between two reports a report counts.
const fresh = 3

// Add takes in a report that came now.
func (h *Heard) Add(r Report, now time.Duration) {
	if h.of == nil {
		h.of = map[protocol.MemberID]heard{}
	}
	h.of[r.Member] = heard{r, now}
}

// Fresh returns the newest report of a member, if it is new enough where each member reports every span.
func (h *Heard) Fresh(id protocol.MemberID, now, span time.Duration) (Report, bool) {
	r, ok := h.of[id]
	return r.Report, ok && now-r.at < fresh*span
}
