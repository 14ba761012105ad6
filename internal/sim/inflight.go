package sim

import (
	"cmp"
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/protocol"
)

var fullFlights = count.New("times_that_bytes_in_flight_were_at_their_limit", "bytes in flight at their limit")

// ticked implements observer: it judges what the member holds and does.
func (w *World) ticked(m *Member) {
	m.cellBytes = max(m.cellBytes, m.log.CellBytes())
	config := m.applier.Config()
	if !config.Joint() && len(config.Removed) > 0 && m.settled() {
		w.retire(config.Removed)
	}
	for _, s := range m.inForce {
		s.judge()
	}
}

func (s *memberInstance) judge() {
	m, w := s.m, s.m.w
	if w.set.woven() && s.ticked {
		w.Violate(m.id, s.inst.Check())
	}
	if !s.leads() || w.set.protocol.Core.Judged.ManyLead || w.set.byKey() { // who leads there follows from the log, and is asked for nothing more
		return
	}
	now := s.inst.Core().Status()
	s.judgePrompt(&now)
	awake := time.Duration(float64(w.Now()-m.still()) * m.rate) // since the process itself last stood still
	if d := min(m.clock()-s.unwritten, awake); s.unwritten != 0 && d > (protocol.StallTimeouts+1)*w.set.Election {
		w.Violate(m.id, fmt.Errorf("it leads instance %d, and its disk has stood still for %s", s.instance, d))
	}
	limit := max(m.own.Core.MaxInflightBytes, m.own.Core.MaxFrameBytes) + maxEntryBytes
	for _, p := range now.Peers {
		if p.InflightBytes >= cmp.Or(m.own.Core.MaxInflightBytes, limit) {
			w.Count(fullFlights)
		}
		if p.InflightBytes > limit {
			w.Violate(m.id, fmt.Errorf("%d bytes are in flight to %s; the limit is %d", p.InflightBytes, p.ID, limit))
		}
	}
}

// maxEntryBytes is the largest entry that clients make: one batch.
const maxEntryBytes = 8 << 20
