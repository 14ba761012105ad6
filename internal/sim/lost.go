package sim

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/protocol"
)

// Members that lose their disk, or get an old copy of it, and are started again as if nothing had
// happened (docs/internals/identity.md). Such a member counts as one that never comes back: it must not
// vote, it must not count, and it must find out and stop. The judges keep the old member with its
// disk as it was when the disk was lost. To them the process on the new disk is another member,
// whose messages prove nothing.

// losses draws what concerns lost disks.
var losses = draw.New("losses")

var (
	// faultWipe: a member loses its disk and is started as if nothing had happened.
	faultWipe = &Fault{Name: "wipe", Thinned: true}
	// faultOldDisk: an old copy of a disk is put in its place.
	faultOldDisk = &Fault{Name: "old-disk", Thinned: true}
)

func init() {
	faultWipe.Draw = (*Settings).drawLost
	faultWipe.Strike = func(w *World, m *Member) { w.loseDisk(m, nil) }
	faultOldDisk.Strike = func(w *World, m *Member) {
		if m.backup != nil {
			w.loseDisk(m, m.backup)
		}
	}
}

var (
	disksLost       = count.New("disks_lost", "disks lost")
	oldDisksPutBack = count.New("old_disks_put_back", "old disks put back")
)

// drawLost draws whether disks are lost. If bodies or logs are damaged too, that could be more than
// the protocol survives.
func (s *Settings) drawLost(d draw.Chance) {
	if s.Faults[faultDamage] > 0 || s.Faults[faultRot] > 0 || s.Core.Placement == protocol.PlacementRS {
		return
	}
	if d.Yes(0.3) {
		s.Faults[faultWipe] = s.Election * time.Duration(3+d.Below(20))
	}
	if d.Yes(0.4) {
		s.Faults[faultOldDisk] = s.Election * time.Duration(2+d.Below(6))
	}
}

// backUp sometimes copies the disk of a member that is stopped.
func (w *World) backUp(m *Member) {
	if w.set.Faults[faultOldDisk] == 0 || m.strange() || m.lives == 0 || !w.From(losses).Yes(0.5) {
		return
	}
	config := m.inst.Core().Status().Config
	m.backup = &backup{disk: m.disk.Copy(), saved: m.saved, life: m.lives, alone: len(config.Voters()) == 1}
}

// loseDisk takes a member's disk away, or puts an old copy in its place. The member starts again later.
func (w *World) loseDisk(m *Member, old *backup) {
	if w.anySick() || !w.mayLose(m, old) {
		return
	}
	m.crash()
	m.strangers++
	m.backup = nil
	if old == nil {
		m.disk, m.saved, m.restored = device.NewDisk(), w.rebornState(m), false
		w.Count(disksLost)
		w.Tracef("FAULT %s has a new disk", m.id)
	} else {
		m.disk, m.saved, m.restored = old.disk, old.saved, true
		w.Count(oldDisksPutBack)
		w.Tracef("FAULT %s has an old disk, of life %d", m.id, old.life)
	}
	w.startLater(m, w.Between(0, w.set.Election))
}

// mayLose reports whether the cluster promises to survive the loss. The others must be able to go
// on without the member, also if a leader is about to make it a voter. And each of them must know the
// member, or a life of it after the copy was made.
func (w *World) mayLose(m *Member, old *backup) bool {
	if w.calm || m.strange() || m.gone || m.retiring || !m.up || w.joins(m) {
		return false
	}
	if w.set.Nodes == 1 && !m.join {
		return false // its command names no other member that could know it
	}
	if old != nil && old.alone {
		return false
	}
	left := slices.DeleteFunc(w.except(m), (*Member).strange)
	for _, o := range left {
		if life := w.acquainted[device.Pair{From: o.id, To: m.id}]; life == 0 || old != nil && life <= old.life {
			return false
		}
	}
	return w.decisive(left)
}

// lostOf returns the members of a configuration that run on another disk than their own.
func (w *World) lostOf(c *protocol.Config) (lost []*Member) {
	for _, id := range c.All() {
		if m := w.member(id); m.strange() {
			lost = append(lost, m)
		}
	}
	return lost
}

// replaceLost returns what the operator does while a member is lost: the member is removed. If the configuration
// names its log, sometimes a new member takes its place.
func (w *World) replaceLost(c *protocol.Config, lost *Member) (changes []protocol.Change) {
	m := c.Find(lost.id)
	if m == nil {
		return nil
	}
	changes = append(changes, protocol.Change{Kind: protocol.RemoveMember, Member: protocol.Member{ID: lost.id}})
	if !m.Learner && !lost.restored && !m.Log.IsZero() && len(w.members) < w.set.Nodes+maxAdded && w.From(losses).Yes(0.5) {
		changes = append(changes, protocol.Change{Kind: protocol.AddVoter, Member: w.addMember()})
	}
	return changes
}

// wouldAsk reports whether an operator would ask for these changes that knows which disks are lost, and whether bodies
// are damaged.
func (w *World) wouldAsk(m *Member, changes []protocol.Change) bool {
	if w.calm {
		return false // a member that these changes add may never start
	}
	config := m.inst.Core().Status().Config
	if tooFew(&config, changes) && w.damaged() || !w.keepState(&config, changes) {
		return false
	}
	lost := w.lostOf(&config)
	return len(lost) == 0 || slices.ContainsFunc(changes, func(c protocol.Change) bool {
		return c.Kind == protocol.RemoveMember && slices.ContainsFunc(lost, func(l *Member) bool { return l.id == c.Member.ID })
	})
}
