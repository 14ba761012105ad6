package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
)

// OwnIdentity is who a member is: the log identity of its directory, which incarnation this is, and the marks of its
// incarnations up to this one. The last mark is this incarnation's. Nothing is known any more of early incarnations.
type OwnIdentity struct {
	Member      protocol.MemberID
	Log         protocol.LogID
	Incarnation uint64
	Marks       []uint64
	// Born: the directory was born with a version that knows of lineages.
	Born bool
	// Founders is that of [Founders] with which the directory was born; 0: the member joined, or an earlier version
	// made the directory.
	Founders uint64
}

// Who is how others are to know the member.
func (o *OwnIdentity) Who() protocol.Who {
	return protocol.Who{Log: o.Log, Incarnation: o.Incarnation, Mark: o.mark(o.Incarnation)}
}

// Session is the session of the member's proposals in this incarnation. shared says that there may be several
// instances, which share its numbers.
func (o *OwnIdentity) Session(shared bool) protocol.Session {
	return protocol.NewSession(o.Member, o.Log, o.Incarnation, shared)
}

// mark is an incarnation's mark; 0 if it is not known.
func (o *OwnIdentity) mark(life uint64) uint64 {
	if back := o.Incarnation - life; life <= o.Incarnation && back < uint64(len(o.Marks)) {
		return o.Marks[uint64(len(o.Marks))-1-back]
	}
	return 0
}

// Register is what a member knows about who the others are. With it the member decides who is
// linked (docs/internals/identity.md). It is pure; not safe for concurrent use.
type Register struct {
	own OwnIdentity
	// met are the members with whom there ever was a link, and the highest incarnation in which each was
	// met. It is durable before anything is heard on such a link. Sorted by member.
	met []acquaintance
	// told is what configurations say about whose log members have. It stands in the log. Where it
	// contradicts met, told is right, because the cluster noted it. Sorted by member.
	told []acquaintance
	// lineage is that of the member's log, once it is known (lineage.go). It is durable before anything
	// is heard from the member that told it. descended: the applied log says it, too. born: the directory began
	// with a version that knows of lineages.
	lineage   uint64
	descended bool
	born      bool

	Mutant mutant.Name // identity-unchecked, identity-in-memory, life-unchecked, lineage-unchecked
}

type acquaintance struct {
	Member protocol.MemberID `json:"member"`
	protocol.Who
}

// StrangerError says that a member is not the one that was known under its id. Its directory is
// another one, or an earlier state of the one that was known. There is no link with it.
type StrangerError struct {
	Member    protocol.MemberID
	Known, Is protocol.Who
}

func (e *StrangerError) Error() string {
	return fmt.Sprintf("member %s was known as %s and comes as %s: %s", e.Member, e.Known, e.Is, lost(e.Known, e.Is))
}

// ForgottenError says that this member is not the one that others know under its id. Its data
// directory is new, or an old copy. What it promised is lost, so it must not vote, and stops. A
// retry does not help: the member is to be replaced.
type ForgottenError struct {
	Self protocol.MemberID
	By   protocol.MemberID // who said it; 0: the cluster's membership does
	// Known is who the others take it for, Is is who it is. If both have one log, Is is of an earlier incarnation than
	// Known, or Known's incarnation was not one of this directory.
	Known, Is protocol.Who
	// Acknowledged is not nil if the leader of a term found it out.
	Acknowledged *protocol.Forgot
}

// Forgotten says that a member holds less than it acknowledged.
func Forgotten(self protocol.MemberID, f *protocol.Forgot) *ForgottenError {
	return &ForgottenError{Self: self, By: f.Leader, Acknowledged: f}
}

func (e *ForgottenError) Error() string {
	by := "the cluster"
	if e.By != 0 {
		by = "member " + e.By.String()
	}
	what := fmt.Sprintf("%s knows it as %s, and this is %s: %s", by, e.Known, e.Is, lost(e.Known, e.Is))
	if f := e.Acknowledged; f != nil {
		what = fmt.Sprintf("%s, which leads term %d, has its acknowledgement of entry %d, and its log agrees up to entry "+
			"%d at most: its data directory is an old copy", by, f.Term, f.Acked, f.Last)
	}
	return fmt.Sprintf("member %s has already been bootstrapped: %s. "+
		"What this member promised is gone with it, so it may not come back as it was: "+
		"remove it (braid ctl member remove %s), "+
		"then add it as a new member (braid ctl member add, the old peer URLs will do) and start it with an empty data "+
		"directory and --initial-cluster-state existing",
		e.Self, what, e.Self)
}

// lost says what happened to a data directory.
func lost(known, is protocol.Who) string {
	if known.Log != is.Log {
		return "its data directory is another one, the one that is known was lost"
	}
	return "its data directory is an old copy of the one that is known"
}

// NewRegister returns the register of a member that knows no one yet.
func NewRegister(own OwnIdentity) *Register { return &Register{own: own, born: own.Born} }

// Who is how others are to know this member.
func (r *Register) Who() protocol.Who { return r.own.Who() }

func find(list []acquaintance, id protocol.MemberID) (int, bool) {
	return slices.BinarySearchFunc(list, id,
		func(a acquaintance, id protocol.MemberID) int { return cmp.Compare(a.Member, id) })
}

// Takes returns who this member takes another one for; zero: it knows no one by that id.
func (r *Register) Takes(id protocol.MemberID) (w protocol.Who) {
	if i, ok := find(r.met, id); ok {
		w = r.met[i].Who
	}
	if i, ok := find(r.told, id); ok && r.told[i].Log != w.Log {
		w = r.told[i].Who
	}
	return w
}

// Meet decides whether there may be a link with another member. who is what that member says it
// is, takes is who it takes this one for. It returns nil, or a [*ForgottenError], with which this
// member stops, or a [*StrangerError]. It changes nothing.
func (r *Register) Meet(id protocol.MemberID, who, takes protocol.Who) error {
	if !r.is(takes) {
		return &ForgottenError{Self: r.own.Member, By: id, Known: takes, Is: r.own.Who()}
	}
	if known := r.Takes(id); !r.follows(known, who) {
		return &StrangerError{Member: id, Known: known, Is: who}
	}
	return nil
}

// is reports whether another member takes this one for what it is, or was in an earlier incarnation.
func (r *Register) is(taken protocol.Who) bool {
	switch {
	case taken.Log.IsZero():
		return true
	case taken.Log != r.own.Log:
		return r.Mutant == member.MutantAnyLog
	case r.Mutant == member.MutantAnyLife:
		return true
	}
	mark := r.own.mark(taken.Incarnation)
	return taken.Incarnation <= r.own.Incarnation && (mark == 0 || taken.Mark == 0 || mark == taken.Mark)
}

// follows reports whether a member may be the one that was known, in the same incarnation or a later one.
func (r *Register) follows(known, who protocol.Who) bool {
	switch {
	case who.Log.IsZero():
		return false
	case known.Log.IsZero():
		return true
	case known.Log != who.Log:
		return r.Mutant == member.MutantAnyLog
	}
	return who.Incarnation > known.Incarnation || who.Incarnation == known.Incarnation && who.Mark == known.Mark ||
		r.Mutant == member.MutantAnyLife
}

// Note notes that there is a link with a member now. It reports whether the note is to be made
// durable before anything is heard on the link.
func (r *Register) Note(id protocol.MemberID, who protocol.Who) (news bool) {
	i, ok := find(r.met, id)
	if !ok {
		r.met = slices.Insert(r.met, i, acquaintance{Member: id})
	}
	if have := r.met[i].Who; have.Log == who.Log && who.Incarnation <= have.Incarnation {
		return false
	}
	r.met[i].Who = who
	return r.Mutant != member.MutantForgetful
}

// Learn takes in whose log the members of a configuration have. It returns those that turn out to
// be strangers, with whom there may be a link. If this member itself has another log, it returns a
// [*ForgottenError].
func (r *Register) Learn(c *protocol.Config) (strangers []protocol.MemberID, err error) {
	for i := range c.Members {
		m := &c.Members[i]
		switch {
		case m.Log.IsZero():
		case m.ID != r.own.Member:
			if r.learn(m.ID, m.Log) {
				strangers = append(strangers, m.ID)
			}
		case m.Log != r.own.Log && r.Mutant != member.MutantAnyLog:
			err = &ForgottenError{Self: m.ID, Known: protocol.Who{Log: m.Log}, Is: r.own.Who()}
		}
	}
	return strangers, err
}

// learn reports whether a member with another log was met under the id.
func (r *Register) learn(id protocol.MemberID, log protocol.LogID) (stranger bool) {
	at, ok := find(r.told, id)
	if ok && r.told[at].Log == log {
		return false
	}
	if !ok {
		r.told = slices.Insert(r.told, at, acquaintance{Member: id})
	}
	r.told[at].Who = protocol.Who{Log: log}
	i, met := find(r.met, id)
	return met && r.met[i].Log != log && r.Mutant != member.MutantAnyLog
}

// Publish returns the changes that note in the membership whose log each member has, for those
// members where it is not noted, and the log's lineage. The leader is to propose them. A member that
// never met another one learns its log from there.
func (r *Register) Publish(st *protocol.Status) (changes []protocol.Change) {
	if st.Role != protocol.Leader || st.Config.Joint() {
		return nil
	}
	for i := range st.Config.Members {
		m := &st.Config.Members[i]
		log := r.own.Log
		if m.ID != r.own.Member {
			log = r.Takes(m.ID).Log
		}
		lineage := uint64(0)
		if m.ID == r.own.Member && st.Config.Lineage == 0 {
			lineage = r.founds(&st.Config)
		}
		if m.Log.IsZero() && !log.IsZero() || lineage != 0 {
			changes = append(changes,
				protocol.Change{Kind: protocol.UpdateMember, Member: protocol.Member{ID: m.ID, Log: log}, Lineage: lineage})
		}
	}
	return changes
}

// registerContent is the form in which a register is kept.
type registerContent struct {
	Format int            `json:"format"`
	Met    []acquaintance `json:"met"`
	// Lineage is not told by earlier versions.
	Lineage uint64 `json:"lineage,omitempty"`
	Own     bool   `json:"own,omitempty"`
	Born    bool   `json:"born,omitempty"`
}

// RegisterError says that some bytes are not a register.
type RegisterError struct{ Detail string }

func (e *RegisterError) Error() string { return e.Detail }

// ReadRegister returns the register of a member from what Content returned in an earlier incarnation.
func ReadRegister(own OwnIdentity, content []byte) (*Register, error) {
	r := NewRegister(own)
	var c registerContent
	if err := json.Unmarshal(content, &c); err != nil {
		return nil, &RegisterError{"is damaged: " + err.Error()}
	}
	if c.Format != 1 {
		return nil, &RegisterError{fmt.Sprintf("has format %d, this program knows 1", c.Format)}
	}
	r.met, r.lineage, r.descended, r.born = c.Met, c.Lineage, c.Own, own.Born || c.Born
	slices.SortFunc(r.met, func(a, b acquaintance) int { return cmp.Compare(a.Member, b.Member) })
	return r, nil
}

// Content is what must be durable of the register.
func (r *Register) Content() ([]byte, error) {
	b, err := json.Marshal(registerContent{Format: 1, Met: r.met, Lineage: r.lineage, Own: r.descended, Born: r.born})
	return append(b, '\n'), err
}
