package node

import (
	"errors"
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/lifecycle"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// Queries of faults, clients and phases.

// Behind reports whether the member is down, or has not applied all decided entries.
func (m *Member) Behind() bool {
	if !m.Up || m.Sick() || m.Gap() != "" {
		return true
	}
	if m.Machines.Behind() {
		return true
	}
	return slices.ContainsFunc(m.InForce, func(s *MemberInstance) bool { return uint64(m.Applier.Added(s.Instance)) < s.Judges.Ledger.Decided() })
}

// Owes reports whether bodies are missing on the member, or are fragments that should be whole. Other code judges
// that the bodies that its state references arrive. Some other bodies may exist on no member any more: the state
// dropped them, and other members have a later snapshot. The member forgets these with its next snapshot, and without
// writes there may be none. Until then an instance may delay a membership change.
func (m *Member) Owes() bool {
	return m.Up && m.Body.kept.Lacking()+m.Body.kept.Short() > 0
}

// Last is the last index in the instance's log.
func (s *MemberInstance) Last() protocol.Index { return s.Witness.Core.Status().Last }

// InstancesApplied returns the number of instances in the member's state.
func (r *Running) InstancesApplied() int {
	at := r.Applier.Cursor()
	return len(at.Points)
}

// Twice reports whether a body is in two entries, because it was proposed twice.
func (r *Running) Twice(b *wal.Body) bool {
	found := false
	r.Body.Store.Each(func(o wal.Body) bool {
		found = found || o.Digest == b.Digest && (o.Index != b.Index || o.Instance != b.Instance)
		return !found
	})
	return found
}

// Opens reports whether the log on a disk opens with a snapshot; nil: the newest valid one there. With knows, the
// damage must be detected. At the end of a log, damage looks like an unfinished write until more is written after it.
func (m *Member) Opens(d *device.Disk, meta *member.Meta, knows bool) bool {
	if meta == nil {
		snaps, err := datadir.OpenSnapshots(d, SnapDir)
		if err != nil {
			return false
		}
		all, err := snaps.Positions()
		for len(all) > 0 && snaps.Whole(all[len(all)-1]) != nil {
			all = all[:len(all)-1]
		}
		if err != nil || len(all) == 0 {
			return false
		}
		f, err := snaps.Open(all[len(all)-1])
		if err != nil {
			return false
		}
		meta = &f.Header.Meta
	}
	log, err := wal.Open(m.logOptions(d, meta))
	if err != nil || knows && len(log.Damaged()) == 0 {
		return false
	}
	for _, id := range meta.Cursor.Instances() {
		if _, err := lifecycle.Recover(log, id, *meta); err != nil {
			return false
		}
	}
	return true
}

// ReadAll verifies all data of the member once.
func (m *Member) ReadAll() {
	if !m.Up {
		return
	}
	scrub := m.Body.access.Scrubber()
	var next func()
	next = func() {
		if _, more := scrub.Next(); more {
			m.Later(m.Env.hop(), next)
		}
	}
	next()
}

// JudgeTurnedAway checks that a command is refused because of a removal only if the asked member itself was removed.
// Otherwise the next leader takes the command.
func (m *Member) JudgeTurnedAway(number int, err error) {
	var refused *member.RefusedError
	if !errors.As(err, &refused) || refused.Reason != protocol.ReasonRemoved {
		return
	}
	if !slices.ContainsFunc(m.Env.Court.All, func(c *judge.Instance) bool { return c.Left[m.ID] }) {
		m.Env.Violate(m.ID, fmt.Errorf("command %d is refused because a member was removed, and this one stays: %w", number, err))
	}
}

// SubmitBodies writes records of bodies, as the body keeper does.
func (m *Member) SubmitBodies(records []wal.Record, done func()) {
	(&bodyWorld{m, m.Running}).Submit(records, done)
}
