package tracker

import (
	"fmt"

	"github.com/braidlog/braid/protocol"
)

// Check verifies the invariants; last is the end of the log, and window how many bytes may be in flight.
func (p *Progress) Check(last protocol.Index, window int) error {
	if p.Match > last || p.Next <= p.Match || p.Next > last+1 {
		return fmt.Errorf("peer %s: match %d, next %d, last %d", p.ID, p.Match, p.Next, last)
	}
	bytes, small, to := 0, 0, p.Match
	for _, f := range p.frames {
		if f.last <= to {
			return fmt.Errorf("peer %s: frame to %d after %d", p.ID, f.last, to)
		}
		to = f.last
		bytes += f.bytes
		if f.small {
			small++
		}
	}
	if bytes != p.bytes || small != p.small || len(p.frames) > 0 && (p.Phase != Stream || to != p.Next-1) {
		return fmt.Errorf("peer %s in %s: %d bytes in %d frames to %d, says %d, next %d", p.ID, p.Phase, bytes, len(p.frames),
			to, p.bytes, p.Next)
	}
	if p.bytes > window && len(p.frames) > 1 {
		return fmt.Errorf("peer %s: %d bytes in flight", p.ID, p.bytes)
	}
	return nil
}
