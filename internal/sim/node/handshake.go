package node

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/protocol"
)

// Handshakes of two members, by the rules of production, before one accepts messages of the other.

var (
	linksRefusedByBirth = count.New("links_refused_between_members_that_began_with_different_states", "links refused between members that began with different states", count.Bodiless)
	joinedRestored      = count.New("members_that_joined_a_restored_cluster", "members that joined a restored cluster", count.Bodiless)
	linksRefused        = count.New("links_refused", "links refused")
	linksToUnknown      = count.New("links_to_unknown", "links to unknown members")
	formatsRaised       = count.New("later_formats_that_members_wrote", "members that began to write a later format",
		count.Staged)
	// LinksRefusedByFormat needs a member with an earlier version that joins after the others raised the format, which
	// they do once all members know it.
	LinksRefusedByFormat = count.New("links_refused_between_versions",
		"links refused because a member does not know the format", count.Staged)
	heardOthersFirst = count.New("members_that_heard_others_first", "members that heard others first")
)

// linked reports whether a member may accept messages of a process of another member. The two make a handshake as the
// links do, by the rules of production.
func (w *Environment) linked(from *Member, life int, to *Member) bool {
	admitted, gone := to.admits(from.ID)
	l := w.Net.Link(from.ID, to.ID)
	if gone || l.Shook(life, to.Life) && from.Handshakes.Format() <= to.Handshakes.Format() {
		return admitted // a message in a later format needs another handshake
	}
	if !from.Up || from.Life != life {
		return false // it has ended
	}
	if !w.beganAlike(from, to) {
		return false
	}
	if !SameLineage(from, to) {
		return false
	}
	if atFrom, atTo := Meet(from, to); atTo != nil || atFrom != nil {
		w.refused(from, to, atFrom)
		w.refused(to, from, atTo)
		return false
	}
	if !admitted || !Related(from, to) || !w.sameFormat(from, to) || !w.sameSettings(from, to) {
		return false
	}
	if from.Handshakes.Met(to.ID, to.who) != nil || to.Handshakes.Met(from.ID, from.who) != nil {
		return false
	}
	if from.Handshakes.Writes(to.Handshakes.Format()) != nil || to.Handshakes.Writes(from.Handshakes.Format()) != nil {
		return false
	}
	if !learnsBirth(from, to) || !learnsBirth(to, from) {
		return false
	}
	followsOther(from, to)
	followsOther(to, from)
	noteAcquainted(from, to)
	noteAcquainted(to, from)
	l.Shake(life, to.Life)
	if to.Links.Welcome(&protocol.Member{ID: from.ID, PeerURLs: from.Links.Own()}) && !w.Set.Moves {
		w.Count(linksToUnknown)
		w.Tracef("%s   has a link to %s, which it does not know", to.ID, from.ID)
	}
	return true
}

// sameFormat reports whether each of two members knows the format that the other one writes.
func (w *Environment) sameFormat(from, to *Member) bool {
	why := from.Handshakes.Told().Format.Differs(to.Handshakes.Told().Format)
	if why != "" {
		w.Count(LinksRefusedByFormat)
		w.Tracef("%s   no link with %s: %s", from.ID, to.ID, why)
	}
	return why == ""
}

// newest is the newest format that another member knows, as a link shows it; 0: there is none.
func (m *Member) newest(id protocol.MemberID) int {
	o := m.Env.Member(id)
	if o == nil || !o.Up || !m.Env.Net.Link(m.ID, id).Shook(m.Life, o.Life) &&
		!m.Env.Net.Link(id, m.ID).Shook(o.Life, m.Life) {
		return 0
	}
	return o.Handshakes.Newest
}

// admits reports whether another member may link to this one. gone: it was removed. Any other refusal is for the
// lineage, after both know the identity of the other.
func (r *Running) admits(id protocol.MemberID) (admitted, gone bool) {
	if r.Links.Has(id) {
		return true, false
	}
	reason := r.Handshakes.Admit(r.Memberships(), id)
	return reason == 0, reason.Final()
}

// SameLineage reports whether the lineages that two members know are the same. They are compared before everything
// else.
func SameLineage(from, to *Member) bool {
	a, b := from.Handshakes.Lineage(), to.Handshakes.Lineage()
	return a == 0 || b == 0 || to.Handshakes.Relate(from.ID, a, 0) == nil && from.Handshakes.Relate(to.ID, b, 0) == nil
}

// Meet exchanges the identities of two members, and those that each expects of the other. It returns the reason of
// each refusal.
func Meet(from, to *Member) (atFrom, atTo error) {
	tellsTo, tellsFrom := from.Handshakes.Takes(to.ID), to.Handshakes.Takes(from.ID)
	atTo = to.Handshakes.Meet(from.ID, from.who, tellsTo)
	atFrom = from.Handshakes.Meet(to.ID, to.who, tellsFrom)
	if atTo != nil || atFrom != nil {
		to.Handshakes.Unmet(from.ID, from.who, tellsTo)
		from.Handshakes.Unmet(to.ID, to.who, tellsFrom)
	}
	return atFrom, atTo
}

// Related gives each of two members the lineage of the other, as a handshake does.
func Related(from, to *Member) bool {
	tells := to.Handshakes.Lineage()
	related := to.Handshakes.Relate(from.ID, from.Handshakes.Lineage(), from.Handshakes.Founders()) == nil &&
		from.Handshakes.Relate(to.ID, tells, to.Handshakes.Founders()) == nil
	joinsOther(from)
	joinsOther(to)
	compareEarly(from)
	compareEarly(to)
	return related
}

// beganAlike reports whether the initial states of their clusters permit a link between two members. A founder
// without the state has no link to a joining member, which would learn from it that the cluster began empty, and
// would need a new disk too.
func (w *Environment) beganAlike(from, to *Member) bool {
	if from.Odd && to.Handshakes.Birth().Unknown || to.Odd && from.Handshakes.Birth().Unknown {
		return false
	}
	if from.Handshakes.Agrees(to.Handshakes.Birth()) && to.Handshakes.Agrees(from.Handshakes.Birth()) {
		return true
	}
	w.Count(linksRefusedByBirth)
	w.Tracef("%s   no link with %s: their clusters began with %q and %q", from.ID, to.ID, from.Handshakes.Birth().State, to.Handshakes.Birth().State)
	if !from.Strange() && !to.Strange() {
		w.Violate(from.ID, fmt.Errorf("is refused by %s, although both began with the cluster's state", to.ID))
	}
	return false
}

// learnsBirth gives a joining member the initial state's name, if the other member knows it. It reports whether the
// link may be used.
func learnsBirth(m, o *Member) bool {
	b := o.Handshakes.Birth()
	if b.Unknown {
		return true
	}
	learned, err := m.Handshakes.Born(b.State)
	compareEarly(m)
	if err != nil || !m.Up {
		return false
	}
	if learned && b.State != "" {
		m.Env.Count(joinedRestored)
		m.Env.Tracef("%s   learns from %s that the cluster began with %q", m.ID, o.ID, b.State)
		m.CheckState()
	}
	return true
}

// followsOther judges a link with a member that joined the other cluster: only a joining member without a log may
// have it, and it belongs to the other cluster from now on.
func followsOther(m, o *Member) {
	switch {
	case !o.Misled || m.Misled:
	case !m.Join || m.HasLog():
		m.Env.Violate(m.ID, fmt.Errorf("has a link with %s, which joined another cluster", o.ID))
	default:
		m.Misled = true
		m.Env.Observer.Misled(m)
	}
}

// joinsOther judges a member that has the lineage of the other cluster, as followsOther does. A handshake gives a
// joining member a lineage also if there is no link then, for example because the other member stops.
func joinsOther(m *Member) {
	switch other := m.Env.OtherLineage; {
	case other == 0 || m.Misled || m.Handshakes.Lineage() != other:
	case !m.Join || m.HasLog():
		m.Env.Violate(m.ID, fmt.Errorf("has the lineage %016x of another cluster", other))
	default:
		m.Misled = true
		m.Env.Observer.Misled(m)
	}
}

// HasLog reports whether a member has a log, or has made a promise.
func (r *Running) HasLog() bool {
	st := r.Inst.Core().Status()
	return st.Last > 0 || st.Term > 0
}

// compareEarly compares the lineage that this member has just learned with the members that it met before, and ends
// links to members with another log.
func compareEarly(m *Member) {
	for _, id := range m.Handshakes.Unchecked() {
		o := m.Env.Member(id)
		if o.Up && (m.Handshakes.Compare(id, o.Handshakes.Origin()) != nil || o.Handshakes.Compare(m.ID, m.Handshakes.Origin()) != nil) {
			m.Env.Tracef("%s   ends the link with %s, whose log is another one", m.ID, id)
			m.Env.Net.Link(m.ID, id).Forget()
			m.Env.Net.Link(id, m.ID).Forget()
		}
	}
}

// refused judges that a member gets no link to another one.
func (w *Environment) refused(m, other *Member, err error) {
	if err == nil {
		return
	}
	w.Count(linksRefused)
	w.Tracef("%s   no link with %s: %v", m.ID, other.ID, err)
	if !m.Strange() && !other.Strange() {
		w.Violate(m.ID, fmt.Errorf("neither lost its disk: %w", err))
	}
}

// noteAcquainted records that the member has made durable which member it met.
func noteAcquainted(m, other *Member) {
	if !other.Strange() && !m.Misled {
		m.Env.Acquainted[device.Pair{From: m.ID, To: other.ID}] = other.who.Incarnation
	}
}

// handshakeWorld is the member as cluster.Handshakes needs it.
type handshakeWorld struct {
	m   *Member
	dir *datadir.Opened
}

// Save implements cluster.HandshakeWorld, as Fail does.
func (h handshakeWorld) Save(register *cluster.Register) error {
	return h.dir.SaveRegister(register)
}

func (h handshakeWorld) Fail(err error) {
	if h.m.Up {
		h.m.fail(err)
	}
}

// Adopt implements cluster.HandshakeWorld, as NoteBirth does.
func (h handshakeWorld) Adopt(state string) error { return cluster.AdoptBirth(h.m.Machines.All, state) }

func (h handshakeWorld) RecordBirth(state string) error { return h.dir.RecordBirth(state) }

func (h handshakeWorld) WriteFormat(to int) error {
	if err := h.dir.WriteFormat(to); err != nil {
		return err
	}
	h.m.Env.Count(formatsRaised)
	h.m.Env.Tracef("%s   writes format %d", h.m.ID, to)
	return nil
}

// hear makes handshakes with the named members, if the member does not take part before they have answered.
func (m *Member) hear() {
	if !m.silent {
		return
	}
	w := m.Env
	w.Count(heardOthersFirst)
	for i := range m.Given {
		o := w.Member(m.Given[i].ID)
		if o == m {
			continue
		}
		m.Later(w.RoundTrip(m.ID, o.ID), func() {
			cut := w.Net.Link(m.ID, o.ID).Cut || w.Net.Link(o.ID, m.ID).Cut
			if o.Up && (cut || o.Paused > w.Now()) {
				return // no answer
			}
			if o.Up {
				w.linked(m, m.Life, o)
			}
			if m.Up {
				m.Handshakes.Answered(o.ID)
				m.takePart()
			}
		})
	}
	m.waitToTakePart()
}

// waitToTakePart waits by the member's clock, which may slow down meanwhile.
func (m *Member) waitToTakePart() {
	if m.takePart(); m.silent {
		m.Later(time.Duration(float64(m.Handshakes.Waits(m.Clock()))/m.rate)+1, m.waitToTakePart)
	}
}

// takePart lets the instances have turns as soon as the member takes part.
func (m *Member) takePart() {
	if !m.silent || m.Handshakes.Waits(m.Clock()) > 0 {
		return
	}
	m.silent = false
	for _, s := range m.hosted() {
		s.wake()
	}
}
