package sim

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/protocol"
)

// A copy of a disk that was made while its member ran takes the disk's place. Its incarnation says nothing: no
// member has met a later one. Only a leader can tell, because its heartbeats name more than the copy holds
// (docs/internals/identity.md, rule 9). So this happens only while such a leader runs, and no other messages
// reach the member before the leader's. If its term ends before that, the copy is taken away again: no
// protocol promises to tolerate that.

// faultHotCopy: a copy of a running member's disk is put in its place.
var faultHotCopy = &Fault{Name: "hot-copy", Thinned: true}

func init() {
	faultHotCopy.Draw = (*Settings).drawHotCopies
	faultHotCopy.Strike = (*World).copyHot
}

var runningCopiesPutBack = count.New("copies_of_running_disks_put_back", "copies of running disks put back", count.Bodiless)

// runningCopy is a copy of a disk whose member ran.
type runningCopy struct {
	disk  *device.Disk
	saved *machine.State
	life  int
	// last is an index beyond which the copy's log has nothing.
	last protocol.Index
}

// drawHotCopies draws whether such copies are put in place.
func (s *Settings) drawHotCopies(d draw.Chance) {
	if s.Faults[faultDamage] > 0 || s.Faults[faultRot] > 0 || s.Core.Placement == protocol.PlacementRS {
		return // see drawLost
	}
	if d.Yes(0.2) && s.Instances == 0 && s.Bodies.Share == 0 && s.Nodes > 1 {
		s.Faults[faultHotCopy] = s.Election * time.Duration(2+d.Below(8))
	}
}

// copyHot copies a member's disk, and puts the copy in place as soon as the copy is without what
// the member acknowledged since. Mostly others are away meanwhile, so that what is decided depends on
// this member.
func (w *World) copyHot(m *Member) {
	if l := w.leader(); l == m || l == nil || m.strange() || !m.up || w.anyAway() || w.doubted() {
		return
	}
	c := &runningCopy{disk: m.disk.Crash(w.Rand), saved: m.saved, life: m.life, last: max(m.last(), m.snapped.Point(firstInstance).Index)}
	w.Tracef("FAULT the disk of %s is copied, up to %d", m.id, c.last)
	var gone *Member
	if o := w.members[w.Pick(len(w.members))]; o != m && o != w.leader() && o.up && w.Chance(0.8) {
		gone = o
		w.leaveAway(o)
	}
	w.awaitLoss(m, c, gone, w.Now()+4*w.set.Election)
}

func (w *World) doubted() bool {
	return slices.ContainsFunc(w.members, func(m *Member) bool { return m.doubt != nil })
}

// awaitLoss puts the copy in place when that loses something, or gives up.
func (w *World) awaitLoss(m *Member, c *runningCopy, gone *Member, most time.Duration) {
	w.After(w.set.Heartbeat/4, func() {
		l := w.leader()
		switch {
		case w.calm || m.life != c.life || !m.up || w.Now() > most:
			if gone != nil && gone.away {
				w.comeBack(gone)
			}
		case l == nil || !w.mayForget(m, l, c):
			w.awaitLoss(m, c, gone, most)
		default:
			w.putHot(m, l, c)
			w.After(w.Between(w.set.Election/2, 4*w.set.Election), func() {
				w.strikeWitness(m, l, gone)
			})
		}
	})
}

// mayForget reports whether the copy is without what the leader knows the member to have, the leader can
// tell it that, and the others can go on without it.
func (w *World) mayForget(m, l *Member, c *runningCopy) bool {
	if l == m || l.strange() || l.frozen || l.paused > w.Now() || w.net.Link(l.id, m.id).Cut || w.anySick() || !w.mayLose(m, nil) {
		return false
	}
	st := l.inst.Core().Status()
	return slices.ContainsFunc(st.Peers, func(p protocol.PeerStatus) bool { return p.ID == m.id && p.Match > c.last })
}

// putHot starts a member on the copy.
func (w *World) putHot(m, l *Member, c *runningCopy) {
	m.crash()
	m.strangers++
	m.backup = nil
	m.disk, m.saved, m.restored = c.disk, c.saved, true
	m.doubt = &doubt{leader: l, life: l.life, term: l.witness.status.Term, last: c.last}
	w.Count(runningCopiesPutBack)
	w.Tracef("FAULT %s has a copy of its disk up to %d, and %s leads term %d", m.id, c.last, l.id, m.doubt.term)
	w.startLater(m, w.Between(0, w.set.Election/2))
	w.watchDoubt(m)
}

// strikeWitness lets the leader lose power that told a member what is missing, or cuts it off. A member that was
// away comes back.
func (w *World) strikeWitness(m, l, gone *Member) {
	if !w.calm && m.doubt == nil && l.up && w.Chance(0.7) {
		w.strike([...]*Fault{faultCrash, faultIsolate}[w.Pick(2)], l)
	}
	if gone != nil && gone.away {
		w.After(w.Between(0, w.set.Election), func() {
			if gone.away {
				w.comeBack(gone)
			}
		})
	}
}

// watchDoubt takes the copy away when the leader's time is over before the member has heard it.
func (w *World) watchDoubt(m *Member) {
	w.After(w.set.Heartbeat/4, func() {
		d := m.doubt
		switch {
		case d == nil:
		case w.calm || !d.leader.up || d.leader.life != d.life || d.leader.witness.status.Term != d.term || !d.leader.leads():
			w.Tracef("FAULT the copy of the disk of %s is taken away", m.id)
			m.crash()
			m.strangers++
			m.doubt, m.disk, m.saved, m.restored = nil, device.NewDisk(), nil, false
			w.startLater(m, w.Between(0, w.set.Election))
		default:
			w.watchDoubt(m)
		}
	})
}

// mute reports whether what one member sends to another must not arrive, because it is in doubt about itself. Where
// many members lead at once, it may lead, and would propose again where it proposed something before.
func (w *World) mute(from, to protocol.MemberID) bool {
	d := w.member(from).doubt
	return d != nil && (d.leader.id != to || w.set.protocol.Core.Judged.ManyLead)
}
