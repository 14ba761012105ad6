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
func backUp(w *World, m *node.Member) {
	if w.Set.Faults[faultOldDisk] == 0 || m.Strange() || m.Lives == 0 || !w.From(losses).Yes(0.5) {
		return
	}
	config := m.Inst.Core().Status().Config
	m.Backup = &node.Backup{Disk: m.Disk.Copy(), Saved: m.Saved, Life: m.Lives, Alone: len(config.Voters()) == 1}
}

// loseDisk takes a member's disk away, or puts an old copy in its place. The member starts again later.
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

// MayLose reports whether the cluster promises to survive the loss. The others must be able to go
// on without the member, also if a leader is about to make it a voter. And each of them must know the
// member, or a life of it after the copy was made.
func MayLose(w *World, m *node.Member, old *node.Backup) bool {
	if w.Calm || m.Strange() || m.Gone || m.Retiring || !m.Up || w.Joins(m) {
		return false
	}
	if w.Set.Nodes == 1 && !m.Join {
		return false // its command names no other member that could know it
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

// lostOf returns the members of a configuration that run on another disk than their own.
func lostOf(w *World, c *protocol.Config) (lost []*node.Member) {
	for _, id := range c.All() {
		if m := w.Member(id); m.Strange() {
			lost = append(lost, m)
		}
	}
	return lost
}

// replaceLost returns what the operator does while a member is lost: the member is removed. If the configuration
// names its log, sometimes a new member takes its place.
func replaceLost(w *World, c *protocol.Config, lost *node.Member) (changes []protocol.Change) {
	m := c.Find(lost.ID)
	if m == nil {
		return nil
	}
	changes = append(changes, protocol.Change{Kind: protocol.RemoveMember, Member: protocol.Member{ID: lost.ID}})
	if !m.Learner && !lost.Restored && !m.Log.IsZero() && len(w.Members) < w.Set.Nodes+maxAdded && w.From(losses).Yes(0.5) {
		changes = append(changes, protocol.Change{Kind: protocol.AddVoter, Member: AddMember(w)})
	}
	return changes
}

// WouldAsk reports whether an operator would ask for these changes that knows which disks are lost, and whether bodies
// are damaged.
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
		return c.Kind == protocol.RemoveMember && slices.ContainsFunc(lost, func(l *node.Member) bool { return l.ID == c.Member.ID })
	})
}
