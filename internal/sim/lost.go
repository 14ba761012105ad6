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
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/protocol"
)

// Members that lose their disk, or get an old copy of it, and are started again as if nothing had
// happened (docs/internals/identity.md). Such a member counts as one that has failed for good: it must not
// vote, it must not count, and it must find out and stop. The judges keep the old member with its
// disk as it was when the disk was lost. They judge the process on the new disk as somebody else,
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
	disksLost        = count.New("disks_lost", "disks lost")
	oldDisksPutBack  = count.New("old_disks_put_back", "old disks put back")
	linksRefused     = count.New("links_refused", "links refused")
	linksToUnknown   = count.New("links_to_unknown", "links to unknown members")
	heardOthersFirst = count.New("members_that_heard_others_first", "members that heard others first")
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

// backup is a copy of a member's disk, made while it was stopped.
type backup struct {
	disk  *device.Disk
	saved *machine.State
	life  uint64 // the last life that began on it
	// alone: on this disk the member is the only voter. It decides by itself then, and asks nobody who
	// could know better (docs/internals/identity.md).
	alone bool
}

// strange reports whether the member runs on another disk than the one that others know it by.
func (m *Member) strange() bool { return m.strangers > 0 || m.odd }

// judged is the member's number for the judges.
func (m *Member) judged() uint64 {
	n := uint64(m.id) | uint64(m.strangers)<<32
	if m.odd {
		n |= 1 << 48
	}
	return n
}

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
	if to.links.Welcome(&protocol.Member{ID: from.id, PeerURLs: from.links.Own()}) && !w.set.moves() {
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

// backUp sometimes copies the disk of a member that is stopped.
func (m *Member) backUp() {
	if m.w.set.Faults[faultOldDisk] == 0 || m.strange() || m.lives == 0 || !m.w.From(losses).Yes(0.5) {
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

// replaceLost is what the operator does while a member is lost. He removes it. If the configuration
// names its log, he sometimes adds a new member in its place.
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

// sane reports whether an operator who knows whose disk is lost, and whether bodies are damaged, would ask
// for these changes.
func (w *World) sane(m *Member, changes []protocol.Change) bool {
	if w.calm {
		return false // a member that these changes add may be down for good
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
