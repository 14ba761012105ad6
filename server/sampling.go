package server

import (
	"time"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/sys"
	"github.com/braidlog/braid/server/internal/history"
	"github.com/braidlog/braid/server/internal/metrics"
)

// sample records a reading of this member each second, until the server stops.
func (s *Server) sample() {
	tick := time.NewTicker(history.Fine)
	defer tick.Stop()
	for {
		st := s.log.Status()
		s.observe(&st)
		s.history.Record(s.reading(&st))
		s.refusals.log(s.logger, st.At)
		select {
		case <-tick.C:
		case <-s.stopping:
			return
		}
	}
}

// observe logs the differences between a status and the last one.
func (s *Server) observe(st *braid.Status) {
	s.names.learn(st.Members)
	f := s.facts(st, nil)
	s.events.observe(&observation{Status: *st, alarms: f.Alarms, remedy: f.Remedy})
}

// reading reads the figures for a sample.
func (s *Server) reading(st *braid.Status) *history.Reading {
	writes, failedWrites := s.metrics.Requests(false)
	reads, failedReads := s.metrics.Requests(true)
	r := &history.Reading{
		At:      st.At,
		Writes:  history.Distribution{Counts: writes, Bound: metrics.TimesBound},
		Reads:   history.Distribution{Counts: reads, Bound: metrics.TimesBound},
		Failed:  failedWrites + failedReads,
		Applied: uint64(st.Applied), LogBytes: st.Log.Bytes,
		Syncs: history.Distribution{Counts: st.Log.SyncLatency[:], Bound: metrics.SyncBound},
		Sent:  st.Links.EgressBytes, Received: st.Links.IngressBytes,
		ClientIn: s.intake.received.Load(), ClientOut: s.intake.sent.Load(),
		CPU: sys.CPUTime(), Memory: sys.ResidentBytes(),
		DB: s.store.DBSize(), DBInUse: s.store.DBSizeInUse(), LogSize: st.LogBytes, DiskFree: -1,
		Pending:     st.PendingBytes,
		Connections: int64(s.clients.Open()), Watches: s.metrics.Watches.Load(),
	}
	if free, ok := s.store.FreeBytes(); ok {
		r.DiskFree = free
	}
	for i := range st.Progress {
		r.Lag += st.Progress[i].Waiting
	}
	r.Slots, r.Skipped, r.HasSlots = slots(st)
	return r
}

// slots is the number of slots in the log, and of those without a value, of protocols with epochs and of merged
// instances. Each leader counts its own skips of these.
func slots(st *braid.Status) (all, skipped uint64, has bool) {
	for i := range st.Instances {
		if e := st.Instances[i].Epoch; e != nil {
			all, skipped, has = all+e.Slots, skipped+e.Skipped, true
		}
	}
	if st.Order != braid.OrderNiagara {
		return all, skipped, has
	}
	for i := range st.Progress {
		all, skipped = all+st.Progress[i].AppliedRounds, skipped+st.Progress[i].Skips
	}
	return all, skipped, true
}
