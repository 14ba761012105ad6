package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/protocol"
)

// A cluster may begin with a state that was restored from a snapshot (docs/internals/identity.md). All founders must have it,
// and members that join later get it from others: no command led to it. An operator may start a founder without it.
// Then nobody links to that founder until he gives it a new disk, with the state.

// birthsInRun draws what concerns the state with which the cluster begins.
var birthsInRun = draw.New("births in a run")

var (
	linksRefusedByBirth = count.New("links_refused_between_members_that_began_with_different_states", "links refused between members that began with different states", count.Bodiless)
	joinedRestored      = count.New("members_that_joined_a_restored_cluster", "members that joined a restored cluster", count.Bodiless)
)

// birthState names the state with which a cluster begins that is restored.
const birthState = "backup"

// drawBirths draws whether the cluster begins with a state, and whether a founder is started without it. Only a state
// machine that keeps its own state can begin with one. Where fewer than a majority may decide, that founder might.
func (s *Settings) drawBirths(d draw.Chance) {
	restored, odd := d.Yes(0.35), d.Yes(0.5)
	if !restored || !s.Durable || s.Bodies.Share > 0 || s.Keyed || s.byKey() || s.flexible() {
		return
	}
	s.Birth, s.OddFounder = birthState, odd && s.Nodes >= 3
}

// beginBorn gives the founders the state with which the cluster begins.
func (w *World) beginBorn() {
	if w.set.Birth == "" {
		return
	}
	for _, m := range w.members {
		m.saved = w.newborn()
	}
	if !w.set.OddFounder {
		return
	}
	odd := w.members[w.From(birthsInRun).Below(len(w.members))]
	odd.odd, odd.saved = true, nil
	w.Tracef("FAULT %s begins without the state that was restored", odd.id)
	w.After(w.set.Election*time.Duration(1+w.From(birthsInRun).Below(10)), func() { w.rectify(odd) })
}

// newborn is the state with which the cluster begins; nil: it begins empty.
func (w *World) newborn() *machine.State {
	if w.set.Birth == "" {
		return nil
	}
	return machine.Born(w.set.Birth)
}

// rectify is the operator who finds out that a founder began without the state. He gives it a new disk, unless it was
// removed meanwhile.
func (w *World) rectify(m *Member) {
	if !m.odd || m.gone || m.retiring || m.strangers > 0 || slices.ContainsFunc(w.court.All, func(c *judge.Instance) bool { return c.Left[m.id] }) {
		return
	}
	m.crash()
	m.odd, m.disk, m.saved, m.lives = false, device.NewDisk(), w.newborn(), 0
	w.Tracef("FAULT %s begins again, with the state that was restored", m.id)
	w.startLater(m, w.Between(0, w.set.Election))
}

// rebornState is the state machine of a member that lost its disk: a founder is sometimes restored once more.
func (w *World) rebornState(m *Member) *machine.State {
	if w.set.Birth == "" || m.join || w.From(birthsInRun).Yes(0.5) {
		return nil
	}
	return w.newborn()
}

// beganAlike reports whether two members may have a link, as far as the beginning of their clusters goes. A founder
// without the state has no link to a member that joins: that one would learn from it that the cluster began empty, and
// need a new disk too.
func (w *environment) beganAlike(from, to *Member) bool {
	if from.odd && to.handshakes.Birth().Unknown || to.odd && from.handshakes.Birth().Unknown {
		return false
	}
	if from.handshakes.Agrees(to.handshakes.Birth()) && to.handshakes.Agrees(from.handshakes.Birth()) {
		return true
	}
	w.Count(linksRefusedByBirth)
	w.Tracef("%s   no link with %s: their clusters began with %q and %q", from.id, to.id, from.handshakes.Birth().State, to.handshakes.Birth().State)
	if !from.strange() && !to.strange() {
		w.Violate(from.id, fmt.Errorf("is refused by %s, although both began with the cluster's state", to.id))
	}
	return false
}

// learnsBirth lets a member that joins learn with which state the cluster began, if the other one knows. It reports
// whether the link may be used.
func (m *Member) learnsBirth(o *Member) bool {
	b := o.handshakes.Birth()
	if b.Unknown {
		return true
	}
	learned, err := m.handshakes.Born(b.State)
	m.checkEarly()
	if err != nil || !m.up {
		return false
	}
	if learned && b.State != "" {
		m.w.Count(joinedRestored)
		m.w.Tracef("%s   learns from %s that the cluster began with %q", m.id, o.id, b.State)
		m.checkState()
	}
	return true
}

// Adopt implements cluster.HandshakeWorld, as NoteBirth does.
func (h handshakeWorld) Adopt(state string) error { return cluster.AdoptBirth(h.m.machines.All, state) }

func (h handshakeWorld) NoteBirth(state string) error { return h.dir.RecordBirth(state) }

// stateless reports whether the member does not have the state yet with which the cluster began.
func (m *Member) stateless() bool {
	return m.w.set.Birth != "" && !m.strange() && (m.saved == nil || m.saved.Birth == "")
}

// keepState reports whether changes leave two members that have the state, as an operator makes sure of.
func (w *World) keepState(c *protocol.Config, changes []protocol.Change) bool {
	if w.set.Birth == "" {
		return true
	}
	removes := func(id protocol.MemberID) bool {
		return slices.ContainsFunc(changes, func(ch protocol.Change) bool {
			return ch.Kind == protocol.RemoveMember && ch.Member.ID == id
		})
	}
	have, removed := 0, false
	for i := range c.Members {
		m := w.member(c.Members[i].ID)
		if removes(m.id) {
			removed = true
		} else if !m.gone && !m.strange() && !m.stateless() && m.saved.Damage == nil {
			have++
		}
	}
	return !removed || have >= 2
}

// checkDirectory judges that a directory is refused before it is opened only if it is refused when it is.
func (m *Member) checkDirectory(c *datadir.Config) error {
	failAt, powerAt := m.disk.FailAt, m.disk.PowerAt
	m.disk.FailAt, m.disk.PowerAt = 0, 0
	err := c.Check()
	m.disk.FailAt, m.disk.PowerAt = failAt, powerAt
	return err
}
