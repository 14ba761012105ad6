package cluster

import (
	"errors"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/format"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// HandshakeWorld is what Handshakes needs of the member.
type HandshakeWorld interface {
	// Save makes durable what the register must keep.
	Save(*Register) error
	// Adopt makes the state machine ready for a cluster that began with a state; see AdoptBirth. RecordBirth makes
	// durable which one that is. "" is the empty state.
	Adopt(state string) error
	RecordBirth(state string) error
	// WriteFormat makes durable that files of this member may have a format from now on, so that no program opens them
	// that does not know it. Then this member writes files in that format.
	WriteFormat(format int) error
	// Fail stops the member.
	Fail(err error)
}

// Handshakes decides what follows from what members say in handshakes and memberships about who they
// are (docs/internals/identity.md): which links there are, when this member stops, and when a member without
// a log begins to take part. It is passive; whoever shares it guards it, also while Save runs. It
// is not safe for concurrent use.
type Handshakes struct {
	register *Register
	world    HandshakeWorld
	birth    Birth
	// Mutant breaks a rule, for tests: birth-unchecked, birth-not-adopted.
	Mutant mutant.Name

	// left are the members whose first answer this member waits for before it takes part, and
	// until is when it takes part without them.
	left  []protocol.MemberID
	until time.Duration
	// founders are the members of a log without a lineage, as it is applied; none if this member joined later, or if an
	// earlier version may have added members. added are those that the log adds to them, and named is the lineage in
	// the membership with these, 0 if there is none.
	founders, added []protocol.MemberID
	named           uint64

	// early are members that this one met when it could not compare origins; checked is what it knew when it compared
	// them last (origin.go).
	early   []protocol.MemberID
	checked Origin

	// Shared are the settings that members compare. profile is the applied one, and unknown whether this member is still
	// to learn it (settings.go).
	Shared  SharedSettings
	profile protocol.Profile
	unknown bool
	grown   bool // the applied log began with one instance, and has had several

	// Newest is the newest format that this member knows, and format the one that it writes (formats.go).
	Newest, format int
}

// NewHandshakes returns the Handshakes of a member that knows what is in the register, and with which state its
// cluster began.
func NewHandshakes(r *Register, b Birth, w HandshakeWorld) Handshakes {
	return Handshakes{register: r, birth: b, world: w, checked: Origin{r.lineage, b}, Newest: format.Newest(),
		format: format.First}
}

// Takes returns who this member takes another one for; zero: it knows no one by that id.
func (h *Handshakes) Takes(id protocol.MemberID) protocol.Who { return h.register.Takes(id) }

// Publish returns the changes that the leader is to propose so that the configuration has what earlier versions did not
// record, and the format that all members know: see Register.Publish, firstProfile and raiseFormat. at is the time in
// Unix milliseconds. shown says what links show of the versions of other members.
func (h *Handshakes) Publish(st *protocol.Status, at int64, shown Shown) []protocol.Change {
	if changes := h.register.Publish(st); len(changes) > 0 {
		return changes
	}
	if changes := h.firstProfile(st, at, shown.Version); len(changes) > 0 {
		return changes
	}
	return h.raiseFormat(st, shown.Format)
}

// Meet returns why there may be no link with a member; nil: there may be one. who is what that
// member says it is, takes is who it takes this one for. It changes nothing.
func (h *Handshakes) Meet(id protocol.MemberID, who, takes protocol.Who) error {
	return h.register.Meet(id, who, takes)
}

// Unmet takes in what a member says that Meet refused. If this member is not who others know, it stops. What a member
// with another log says is not taken in: that one takes this member for one of its own.
func (h *Handshakes) Unmet(id protocol.MemberID, who, takes protocol.Who) {
	h.stopIfForgotten(h.register.Meet(id, who, takes))
}

// Met notes that both members agree to a link. The link may be used if it returns nil: then the note is durable. If
// the disk has no space for it, not even the ballast, there is no link until there is. Any other error stops this
// member, because no one knows what its disk says.
func (h *Handshakes) Met(id protocol.MemberID, who protocol.Who) error {
	before := slices.Clone(h.register.met)
	if !h.register.Note(id, who) {
		return nil
	}
	err := h.world.Save(h.register)
	if full := (*wal.FullError)(nil); errors.As(err, &full) {
		h.register.met = before
	} else if err != nil {
		h.world.Fail(err)
	}
	return err
}

// Birth is with which state the cluster began, as far as this member knows.
func (h *Handshakes) Birth() Birth { return h.birth }

// Agrees reports whether a member with that birth may have a link.
func (h *Handshakes) Agrees(b Birth) bool {
	return h.Mutant == member.MutantAnyBirth || h.birth.Agrees(b)
}

// Born notes with which state the cluster began, as a member says with which there is to be a link. learned: this
// member did not know it. The link may be used if there is no error: then it is durable, and the state machine waits
// for that state. If the disk has no space for the record, there is no link until there is. Another error stops this
// member; only a [*BirthError] says of two links that they are of two clusters, and this member continues.
func (h *Handshakes) Born(state string) (learned bool, err error) {
	told := Birth{State: state}
	switch {
	case !h.Agrees(told):
		return false, &BirthError{Known: h.birth.State, Told: state}
	case !h.birth.Unknown:
		return false, nil
	}
	if h.Mutant != member.MutantAdoptNothing {
		err = h.world.Adopt(state)
	}
	if err == nil {
		err = h.world.RecordBirth(state)
	}
	if full := (*wal.FullError)(nil); err != nil && !errors.As(err, &full) {
		h.world.Fail(err)
	}
	if err != nil {
		return false, err
	}
	h.birth = told
	return true, nil
}

// Learn takes in a membership: linked is the one that links follow, applied what is applied of it. grown: the applied
// log began with one instance, and has had several. It returns the members whose links must end, because they are not
// those that the membership names.
func (h *Handshakes) Learn(linked, applied *protocol.Config, grown bool) (strangers []protocol.MemberID) {
	h.learnFounders(linked, applied)
	h.learnProfile(linked, applied, grown)
	h.learnFormat(applied)
	strangers, err := h.register.Learn(linked)
	h.stopIfForgotten(err)
	return strangers
}

func (h *Handshakes) stopIfForgotten(err error) {
	var forgotten *ForgottenError
	if errors.As(err, &forgotten) {
		h.world.Fail(forgotten)
	}
}

// Begin is called when the member starts. A member without a log may be one that lost its disk. So
// it first waits until each other member has said whether it knows this one, or cannot be reached,
// and at most for an election timeout. Members that link later tell it then.
func (h *Handshakes) Begin(now, election time.Duration, logs []member.InstanceLog, members []protocol.Member) {
	if !newborn(logs) {
		return
	}
	h.until = now + election
	for i := range members {
		if id := members[i].ID; id != h.register.own.Member {
			h.left = append(h.left, id)
		}
	}
}

// newborn reports whether a member has no log yet. Then it has never promised anything.
func newborn(logs []member.InstanceLog) bool {
	return !slices.ContainsFunc(logs, func(l member.InstanceLog) bool {
		return l.Recovered.Base.Index > 0 || l.Recovered.State.Term > 0 || len(l.Recovered.Entries) > 0
	})
}

// Answered notes that a member has a link now, or that the reason is known why it has none.
func (h *Handshakes) Answered(id protocol.MemberID) {
	h.left = slices.DeleteFunc(h.left, func(left protocol.MemberID) bool { return left == id })
}

// Waits returns how long this member still waits at most before it takes part; 0: it takes part.
func (h *Handshakes) Waits(now time.Duration) time.Duration {
	if len(h.left) == 0 {
		return 0
	}
	return max(0, h.until-now)
}
