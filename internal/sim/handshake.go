package sim

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/protocol"
)

// How two members make a handshake, by the rules of production, before one takes what the other sends.

var (
	linksRefusedByBirth = count.New("links_refused_between_members_that_began_with_different_states", "links refused between members that began with different states", count.Bodiless)
	joinedRestored      = count.New("members_that_joined_a_restored_cluster", "members that joined a restored cluster", count.Bodiless)
	linksRefused        = count.New("links_refused", "links refused")
	linksToUnknown      = count.New("links_to_unknown", "links to unknown members")
	heardOthersFirst    = count.New("members_that_heard_others_first", "members that heard others first")
)

// linked reports whether a member may take what a process of another member sent. The two make a
// handshake as the links do, by the rules of production.
func (w *environment) linked(from *Member, life int, to *Member) bool {
	admitted, gone := to.admits(from.id)
	l := w.net.Link(from.id, to.id)
	if gone || l.Shook(life, to.life) {
		return admitted
	}
	if !from.up || from.life != life {
		return false // it has ended
	}
	if !w.beganAlike(from, to) {
		return false
	}
	if !sameLineage(from, to) {
		return false
	}
	if atFrom, atTo := meet(from, to); atTo != nil || atFrom != nil {
		w.refused(from, to, atFrom)
		w.refused(to, from, atTo)
		return false
	}
	if !admitted || !related(from, to) {
		return false
	}
	if from.handshakes.Met(to.id, to.who) != nil || to.handshakes.Met(from.id, from.who) != nil {
		return false
	}
	if !from.learnsBirth(to) || !to.learnsBirth(from) {
		return false
	}
	from.follows(to)
	to.follows(from)
	from.acquainted(to)
	to.acquainted(from)
	l.Shake(life, to.life)
	if to.links.Welcome(&protocol.Member{ID: from.id, PeerURLs: from.links.Own()}) && !w.set.Moves {
		w.Count(linksToUnknown)
		w.Tracef("%s   has a link to %s, which it does not know", to.id, from.id)
	}
	return true
}

// admits reports whether another member may link to this one. gone says that it was removed; else a refusal is for the
// lineage, and comes after both have heard who the other one is.
func (m *Member) admits(id protocol.MemberID) (admitted, gone bool) {
	if m.links.Has(id) {
		return true, false
	}
	reason := m.handshakes.Admit(m.memberships(), id)
	return reason == 0, reason.Final()
}

// sameLineage reports whether the lineages that two members know are the same. They are compared before anything else that
// the two say.
func sameLineage(from, to *Member) bool {
	a, b := from.handshakes.Lineage(), to.handshakes.Lineage()
	return a == 0 || b == 0 || to.handshakes.Relate(from.id, a, 0) == nil && from.handshakes.Relate(to.id, b, 0) == nil
}

// meet lets two members say who they are and who they take each other for. It returns why each of them refuses.
func meet(from, to *Member) (atFrom, atTo error) {
	tellsTo, tellsFrom := from.handshakes.Takes(to.id), to.handshakes.Takes(from.id)
	atTo = to.handshakes.Meet(from.id, from.who, tellsTo)
	atFrom = from.handshakes.Meet(to.id, to.who, tellsFrom)
	if atTo != nil || atFrom != nil {
		to.handshakes.Unmet(from.id, from.who, tellsTo)
		from.handshakes.Unmet(to.id, to.who, tellsFrom)
	}
	return atFrom, atTo
}

// related tells both members the other one's lineage, as a handshake does.
func related(from, to *Member) bool {
	tells := to.handshakes.Lineage()
	related := to.handshakes.Relate(from.id, from.handshakes.Lineage(), from.handshakes.Founders()) == nil &&
		from.handshakes.Relate(to.id, tells, to.handshakes.Founders()) == nil
	from.checkEarly()
	to.checkEarly()
	return related
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

// follows judges a link with a member that joined the other cluster: only one that joins and has no log may have it, and
// belongs to the other cluster from now on.
func (m *Member) follows(o *Member) {
	switch {
	case !o.misled || m.misled:
	case !m.join || m.hasLog():
		m.w.Violate(m.id, fmt.Errorf("has a link with %s, which joined another cluster", o.id))
	default:
		m.misled = true
		m.w.observer.misled(m)
	}
}

// hasLog reports whether a member has a log, or has promised something.
func (m *Member) hasLog() bool {
	st := m.inst.Core().Status()
	return st.Last > 0 || st.Term > 0
}

// checkEarly compares what this member has learned of its log with members that it met before, and ends links with those
// that have another log.
func (m *Member) checkEarly() {
	for _, id := range m.handshakes.Unchecked() {
		o := m.w.member(id)
		if o.up && (m.handshakes.Compare(id, o.handshakes.Origin()) != nil || o.handshakes.Compare(m.id, m.handshakes.Origin()) != nil) {
			m.w.Tracef("%s   ends the link with %s, whose log is another one", m.id, id)
			m.w.net.Link(m.id, id).Forget()
			m.w.net.Link(id, m.id).Forget()
		}
	}
}

// refused judges that a member gets no link to another one.
func (w *environment) refused(m, other *Member, err error) {
	if err == nil {
		return
	}
	w.Count(linksRefused)
	w.Tracef("%s   no link with %s: %v", m.id, other.id, err)
	if !m.strange() && !other.strange() {
		w.Violate(m.id, fmt.Errorf("neither lost its disk: %w", err))
	}
}

// acquainted notes that it is durable on the member whom it met.
func (m *Member) acquainted(other *Member) {
	if !other.strange() && !m.misled {
		m.w.acquainted[device.Pair{From: m.id, To: other.id}] = other.who.Life
	}
}

// handshakeWorld gives cluster.Handshakes what it needs of the member.
type handshakeWorld struct {
	m   *Member
	dir *datadir.Opened
}

// Save implements cluster.HandshakeWorld, as Fail does.
func (h handshakeWorld) Save(register *cluster.Register) error {
	return h.dir.SaveRegister(register)
}

func (h handshakeWorld) Fail(err error) {
	if h.m.up {
		h.m.fail(err)
	}
}

// Adopt implements cluster.HandshakeWorld, as NoteBirth does.
func (h handshakeWorld) Adopt(state string) error { return cluster.AdoptBirth(h.m.machines.All, state) }

func (h handshakeWorld) NoteBirth(state string) error { return h.dir.RecordBirth(state) }

// hear makes handshakes with the members of which the member was told, if it does not take part
// before it has heard from them.
func (m *Member) hear() {
	if !m.silent {
		return
	}
	w := m.w
	w.Count(heardOthersFirst)
	for i := range m.given {
		o := w.member(m.given[i].ID)
		if o == m {
			continue
		}
		m.later(w.roundTrip(m.id, o.id), func() {
			cut := w.net.Link(m.id, o.id).Cut || w.net.Link(o.id, m.id).Cut
			if o.up && (cut || o.paused > w.Now()) {
				return // no answer
			}
			if o.up {
				w.linked(m, m.life, o)
			}
			if m.up {
				m.handshakes.Answered(o.id)
				m.takePart()
			}
		})
	}
	m.waitToTakePart()
}

// waitToTakePart waits by the member's clock, which may become slower meanwhile.
func (m *Member) waitToTakePart() {
	if m.takePart(); m.silent {
		m.later(time.Duration(float64(m.handshakes.Waits(m.clock()))/m.rate)+1, m.waitToTakePart)
	}
}

// takePart lets the instances have turns as soon as the member takes part.
func (m *Member) takePart() {
	if !m.silent || m.handshakes.Waits(m.clock()) > 0 {
		return
	}
	m.silent = false
	for _, s := range m.hosted() {
		s.wake()
	}
}
