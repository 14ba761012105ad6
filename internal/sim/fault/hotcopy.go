package fault

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/internal/sim/node"
	"github.com/braidlog/braid/protocol"
)

// A copy of a disk, made while its member ran, replaces the disk. Its incarnation does not reveal that: no member has
// seen a later one. Only a leader can detect the copy, because its heartbeats name entries that the copy does not
// have (docs/internals/identity.md, rule 9). So this happens only while such a leader runs, and no other messages
// reach the member before the leader's. If the term ends before that, the copy is removed again: no protocol promises
// to tolerate that.

var faultHotCopy = &Fault{Name: "hot-copy", Thinned: true,
	Does: "a copy of a running member's disk replaces the disk"}

func init() {
	faultHotCopy.Draw = (*Settings).drawHotCopies
	faultHotCopy.Strike = copyHot
}

var runningCopiesPutBack = count.New("copies_of_running_disks_put_back",
	"copies of running disks put back", count.Bodiless)

// runningCopy is a copy of a disk that was made while its member ran.
type runningCopy struct {
	disk  *device.Disk
	saved *machine.State
	life  int
	// last is an upper bound of the last index of the copy's log.
	last protocol.Index
}

// drawHotCopies draws whether a run has such copies.
func (s *Settings) drawHotCopies(d draw.Chance) {
	if s.Faults[faultDamage] > 0 || s.Faults[faultRot] > 0 || s.Core.Placement == protocol.PlacementRS {
		return // see drawLost
	}
	if d.Yes(0.2) && s.Instances == 0 && s.Bodies.Share == 0 && s.Nodes > 1 {
		s.Faults[faultHotCopy] = s.Election * time.Duration(2+d.Below(8))
	}
}

// copyHot copies a member's disk, and replaces the disk with the copy once the member has acknowledged entries that
// the copy does not have. Mostly another member is away meanwhile, so that decisions depend on this member.
func copyHot(w *World, m *node.Member) {
	if l := w.Leader(); l == m || l == nil || m.Strange() || !m.Up || anyAway(w) || doubted(w) {
		return
	}
	c := &runningCopy{
		disk: m.Disk.Crash(w.Rand), saved: m.Saved, life: m.Life,
		last: max(m.Last(), m.Snapped.Point(m.Instance).Index),
	}
	w.Tracef("FAULT the disk of %s is copied, up to %d", m.ID, c.last)
	var gone *node.Member
	if o := w.Members[w.Pick(len(w.Members))]; o != m && o != w.Leader() && o.Up && w.Chance(0.8) {
		gone = o
		leaveAway(w, o)
	}
	awaitLoss(w, m, c, gone, w.Now()+4*w.Set.Election)
}

func doubted(w *World) bool {
	return slices.ContainsFunc(w.Members, func(m *node.Member) bool { return m.Doubt != nil })
}

// awaitLoss replaces the disk with the copy once that loses acknowledged entries, or gives up.
func awaitLoss(w *World, m *node.Member, c *runningCopy, gone *node.Member, most time.Duration) {
	w.After(w.Set.Heartbeat/4, func() {
		l := w.Leader()
		switch {
		case w.Calm || m.Life != c.life || !m.Up || w.Now() > most:
			if gone != nil && gone.Away {
				comeBack(w, gone)
			}
		case l == nil || !mayForget(w, m, l, c):
			awaitLoss(w, m, c, gone, most)
		default:
			putHot(w, m, l, c)
			w.After(w.Between(w.Set.Election/2, 4*w.Set.Election), func() {
				strikeWitness(w, m, l, gone)
			})
		}
	})
}

// mayForget reports whether the member has acknowledged entries to the leader that the copy does not have, the leader
// can reach the member, and the others can continue without it.
func mayForget(w *World, m, l *node.Member, c *runningCopy) bool {
	if l == m || l.Strange() || l.Frozen || l.Paused > w.Now() ||
		w.Net.Link(l.ID, m.ID).Cut || anySick(w) || !MayLose(w, m, nil) {
		return false
	}
	st := l.Inst.Core().Status()
	return slices.ContainsFunc(st.Peers, func(p protocol.PeerStatus) bool { return p.ID == m.ID && p.Match > c.last })
}

// putHot starts a member on the copy.
func putHot(w *World, m, l *node.Member, c *runningCopy) {
	m.Crash()
	m.Strangers++
	m.Backup = nil
	m.Disk, m.Saved, m.Restored = c.disk, c.saved, true
	m.Doubt = &node.Doubt{Leader: l, Life: l.Life, Term: l.Witness.Latest.Term, Last: c.last}
	w.Count(runningCopiesPutBack)
	w.Tracef("FAULT %s has a copy of its disk up to %d, and %s leads term %d", m.ID, c.last, l.ID, m.Doubt.Term)
	w.StartLater(m, w.Between(0, w.Set.Election/2))
	watchDoubt(w, m)
}

// strikeWitness crashes or isolates the leader that told the member which entries are missing. A member that was away
// comes back.
func strikeWitness(w *World, m, l, gone *node.Member) {
	if !w.Calm && m.Doubt == nil && l.Up && w.Chance(0.7) {
		[...]*Fault{faultCrash, faultIsolate}[w.Pick(2)].Strike(w, l)
	}
	if gone != nil && gone.Away {
		w.After(w.Between(0, w.Set.Election), func() {
			if gone.Away {
				comeBack(w, gone)
			}
		})
	}
}

// watchDoubt removes the copy if the leader's term ends before the leader's message reaches the member.
func watchDoubt(w *World, m *node.Member) {
	w.After(w.Set.Heartbeat/4, func() {
		d := m.Doubt
		switch {
		case d == nil:
		case w.Calm || !d.Leader.Up || d.Leader.Life != d.Life || d.Leader.Witness.Latest.Term != d.Term || !d.Leader.Leads():
			w.Tracef("FAULT the copy of the disk of %s is taken away", m.ID)
			m.Crash()
			m.Strangers++
			m.Doubt, m.Disk, m.Saved, m.Restored = nil, device.NewDisk(), nil, false
			w.StartLater(m, w.Between(0, w.Set.Election))
		default:
			watchDoubt(w, m)
		}
	})
}

// mute reports whether messages from one member to another are dropped, because the sender runs on a copy and does
// not know it yet. Where many members lead at once, the sender may lead, and would propose again in slots in which it
// has already proposed.
func mute(w *World, from, to protocol.MemberID) bool {
	d := w.Member(from).Doubt
	return d != nil && (d.Leader.ID != to || w.Court.First.Core.Judged.ManyLead)
}
