package fault

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// Members that lose their disk, or get an old copy of it, and are started again as if nothing had happened
// (docs/internals/identity.md). Such a member has failed permanently: it must not vote, its acknowledgements must not
// count, and it must detect the loss and stop. The judges keep the old member with the disk that it lost. To them the
// process on the new disk is another member, and its messages prove nothing.

// losses is the source of chance for lost disks.
var losses = draw.New("losses")

var (
	faultWipe = &Fault{Name: "wipe", Thinned: true,
		Does: "a member loses its disk and is started as if nothing had happened"}
	faultOldDisk = &Fault{Name: "old-disk", Thinned: true, Does: "an old copy of a disk replaces the disk"}
)

func init() {
	faultWipe.Draw = (*Settings).drawLost
	faultWipe.Strike = func(w *World, m *node.Member) { loseDisk(w, m, nil) }
	faultOldDisk.Strike = func(w *World, m *node.Member) {
		if m.Backup != nil {
			loseDisk(w, m, m.Backup)
		}
	}
}

var (
	disksLost       = count.New("disks_lost", "disks lost")
	oldDisksPutBack = count.New("old_disks_put_back", "old disks put back")
)

// drawLost draws whether disks are lost. If bodies or logs were damaged too, that could be more than the protocol
// tolerates.
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
func backUp(w *World, m *node.Member) {
	if w.Set.Faults[faultOldDisk] == 0 || m.Strange() || m.Lives == 0 || !w.From(losses).Yes(0.5) {
		return
	}
	config := m.Inst.Core().Status().Config
	m.Backup = &node.Backup{Disk: m.Disk.Copy(), Saved: m.Saved, Life: m.Lives, Alone: len(config.Voters()) == 1}
}

// loseDisk replaces a member's disk with an empty one, or with an old copy. The member starts again later.
func loseDisk(w *World, m *node.Member, old *node.Backup) {
	if anySick(w) || !MayLose(w, m, old) {
		return
	}
	m.Crash()
	m.Strangers++
	m.Backup = nil
	if old == nil {
		m.Disk, m.Saved, m.Restored = device.NewDisk(), rebornState(w, m), false
		w.Count(disksLost)
		w.Tracef("FAULT %s has a new disk", m.ID)
	} else {
		m.Disk, m.Saved, m.Restored = old.Disk, old.Saved, true
		w.Count(oldDisksPutBack)
		w.Tracef("FAULT %s has an old disk, of life %d", m.ID, old.Life)
	}
	w.StartLater(m, w.Between(0, w.Set.Election))
}

// MayLose reports whether the cluster promises to tolerate the loss. The others must be able to continue without the
// member, even if a leader is about to make it a voter. And each of them must know the member, or an incarnation of
// it that began after the copy was made.
func MayLose(w *World, m *node.Member, old *node.Backup) bool {
	if w.Calm || m.Strange() || m.Gone || m.Retiring || !m.Up || w.Joins(m) {
		return false
	}
	if w.Set.Nodes == 1 && !m.Join {
		return false // its command line names no other member that could know it
	}
	if old != nil && old.Alone {
		return false
	}
	left := slices.DeleteFunc(w.Except(m), (*node.Member).Strange)
	for _, o := range left {
		if life := w.Acquainted[device.Pair{From: o.ID, To: m.ID}]; life == 0 || old != nil && life <= old.Life {
			return false
		}
	}
	return w.Decisive(left)
}

// lostOf returns the members of a configuration that do not run on their own disk.
func lostOf(w *World, c *protocol.Config) (lost []*node.Member) {
	for _, id := range c.All() {
		if m := w.Member(id); m.Strange() {
			lost = append(lost, m)
		}
	}
	return lost
}

// replaceLost returns the operator's changes for a lost member: it is removed. If the configuration names its log,
// sometimes a new member replaces it.
func replaceLost(w *World, c *protocol.Config, lost *node.Member) (changes []protocol.Change) {
	m := c.Find(lost.ID)
	if m == nil {
		return nil
	}
	changes = append(changes, protocol.Change{Kind: protocol.RemoveMember, Member: protocol.Member{ID: lost.ID}})
	if !m.Learner && !lost.Restored && !m.Log.IsZero() &&
		len(w.Members) < w.Set.Nodes+maxAdded && w.From(losses).Yes(0.5) {
		changes = append(changes, protocol.Change{Kind: protocol.AddVoter, Member: AddMember(w)})
	}
	return changes
}

// WouldAsk reports whether an operator who knows the lost disks and the damaged bodies would ask for these changes.
func (w *World) WouldAsk(m *node.Member, changes []protocol.Change) bool {
	if w.Calm {
		return false // a member that these changes add may never start
	}
	config := m.Inst.Core().Status().Config
	if tooFew(&config, changes) && damaged(w) || !keepState(w, &config, changes) {
		return false
	}
	lost := lostOf(w, &config)
	return len(lost) == 0 || slices.ContainsFunc(changes, func(c protocol.Change) bool {
		return c.Kind == protocol.RemoveMember &&
			slices.ContainsFunc(lost, func(l *node.Member) bool { return l.ID == c.Member.ID })
	})
}
