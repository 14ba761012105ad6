package sim

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

// What faults, clients and phases ask of a member.

func (m *Member) behind() bool {
	if !m.up || m.sick() || m.w.set.woven() && m.gap() != "" {
		return true
	}
	if m.machines.Behind() {
		return true
	}
	return slices.ContainsFunc(m.inForce, func(s *memberInstance) bool { return uint64(m.applier.Added(s.instance)) < s.judges.Ledger.Decided() })
}

// owes reports whether bodies are missing on the member, or held in part where it is to hold them
// whole. Other code judges that the bodies to which its state refers arrive. Some others may exist on no
// member any more: the state dropped them, and others have a snapshot that says so. The member forgets
// these with its next snapshot, and without writes there may be none. Until then an instance may wait
// with a change of its members.
func (m *Member) owes() bool {
	return m.up && m.body.kept.Lacking()+m.body.kept.Short() > 0
}

// last is the last index in the instance's log.
func (s *memberInstance) last() protocol.Index { return s.witness.Core.Status().Last }

// instancesApplied is how many instances there are as far as the member's state knows.
func (m *Member) instancesApplied() int {
	at := m.applier.Cursor()
	return len(at.Points)
}

// twice reports whether a body stands in two places, because it was proposed twice.
func (m *Member) twice(b *wal.Body) bool {
	found := false
	m.body.store.Each(func(o wal.Body) bool {
		found = found || o.Digest == b.Digest && (o.Index != b.Index || o.Instance != b.Instance)
		return !found
	})
	return found
}

// opens reports whether the log on a disk opens with a snapshot; nil means the newest whole one
// there. With knows the damage must be noticed. At the end of a log, damage looks like a write that
// was never finished, until more is written behind it.
func (m *Member) opens(d *device.Disk, meta *member.Meta, knows bool) bool {
	if meta == nil {
		snaps, err := datadir.OpenSnapshots(d, snapDir)
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

// readAll verifies once everything that is held.
func (m *Member) readAll() {
	if !m.up {
		return
	}
	scrub := m.body.access.Scrubber()
	var next func()
	next = func() {
		if _, more := scrub.Next(); more {
			m.later(m.w.hop(), next)
		}
	}
	next()
}

// judgeTurnedAway judges that a command is not refused because a member was removed, if that is another member than the
// one that was asked. The next leader takes the command.
func (m *Member) judgeTurnedAway(number int, err error) {
	var refused *member.RefusedError
	if !errors.As(err, &refused) || refused.Reason != protocol.ReasonRemoved {
		return
	}
	if !slices.ContainsFunc(m.w.court.All, func(c *judge.Instance) bool { return c.Left[m.id] }) {
		m.w.Violate(m.id, fmt.Errorf("command %d is refused because a member was removed, and this one stays: %w", number, err))
	}
}
