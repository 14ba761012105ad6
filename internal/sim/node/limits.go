package node

import (
	"cmp"
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/protocol"
)

// Limits of a member: the size of its files, and the messages that its leaders have in flight.

// JudgeLogSize checks that snapshots keep the log short. The log may begin at the snapshot before the last one, in
// whole segments, and have some more segments. Entries that are applied at once are between two snapshots, whatever
// their size.
func (m *Member) JudgeLogSize() error {
	s := m.Own
	limit := 8*int64(s.SnapshotBytes) + 2*m.between + 2*s.KeepLogBytes + 64*s.SegmentBytes + 8*int64(s.Padding+s.BatchBytes)
	// A compaction moves cells of an eighth of the bytes that were written since the last one, and the other cells keep
	// the log long. They may be replaced by now, without a compaction since.
	limit += 8 * max(m.CellBytes, m.Log.CellBytes())
	limit *= int64(max(len(m.InForce), s.Instances, m.ended)) // the logs of retired instances stay
	switch {
	case m.Env.Set.ByKey():
		// A command is written to a cell at its preaccept, at the promise of another ballot and at its decision, and then
		// to the log.
		limit *= 4
	case m.Env.Set.cells().Accepted() != nil:
		limit *= 2 // an entry is written to a cell, and then to the log
	}
	if size := m.Log.Size(); size > limit {
		return fmt.Errorf("the log of member %s takes %d bytes; with a snapshot every %d bytes it should be below %d", m.ID, size, s.SnapshotBytes, limit)
	}
	return nil
}

// JudgeBodyFiles checks that files without needed bodies are deleted. A file that is mostly dead is compacted. Some
// files may be dead for the moment, or have a damaged body.
func (m *Member) JudgeBodyFiles() error {
	store, set := m.Body.Store, &m.Env.Set.Bodies
	live, total := store.Size()
	if limit := 3*live + 6*(set.SegmentBytes+int64(set.Max)); total > limit {
		return fmt.Errorf("the bodies of member %s take %d bytes in files of %d; with %d bytes of live ones it should be below %d", m.ID, total, set.SegmentBytes, live, limit)
	}
	if n := store.Count(); n > 0 && live == 0 {
		return fmt.Errorf("member %s holds %d bodies in no bytes", m.ID, n)
	}
	return nil
}

// Judge checks, at a tick, the messages that a leader has in flight, and how long its disk has been stalled.
func (s *MemberInstance) Judge() {
	m, w := s.Member, s.Member.Env
	if w.Set.Merged() && s.ticked {
		w.Violate(m.ID, s.Inst.Check())
	}
	// The leader there follows from the log, and is not judged here.
	if judged := &s.Judges.Core.Judged; !s.Leads() || judged.ManyLead || judged.ByKey {
		return
	}
	now := s.Inst.Core().Status()
	s.judgePrompt(&now)
	awake := time.Duration(float64(w.Now()-m.Still()) * m.rate) // since the last pause of the process itself
	if d := min(m.Clock()-s.unwritten, awake); s.unwritten != 0 && d > (protocol.StallTimeouts+1)*w.Set.Election {
		w.Violate(m.ID, fmt.Errorf("it leads instance %d, and its disk has stood still for %s", s.Instance, d))
	}
	limit := max(m.Own.Core.MaxInflightBytes, m.Own.Core.MaxFrameBytes) + maxEntryBytes
	for _, p := range now.Peers {
		if p.InflightBytes >= cmp.Or(m.Own.Core.MaxInflightBytes, limit) {
			w.Count(fullFlights)
		}
		if p.InflightBytes > limit {
			w.Violate(m.ID, fmt.Errorf("%d bytes are in flight to %s; the limit is %d", p.InflightBytes, p.ID, limit))
		}
	}
}

var fullFlights = count.New("times_that_bytes_in_flight_were_at_their_limit", "bytes in flight at their limit")

// maxEntryBytes is the largest entry that clients make: one batch.
const maxEntryBytes = 8 << 20
