package body

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/erasure"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// BodySource is where a member holds bodies: *wal.Bodies.
type BodySource interface {
	Find(instance uint32, index uint64) (wal.Body, bool)
	Durable(instance uint32, index uint64) bool
	Read(instance uint32, index uint64) (wal.Body, error)
}

// BodyKeeper is a state machine that refers to bodies. It owns the body of every command that
// Apply was given, until it says ReleaseBody. It does not matter whether the command made use of
// the body. The bodies of other state machines live until the log is cut past their entries.
type BodyKeeper interface {
	// LiveBodies calls yield with every body that the state refers to. It is called when
	// the member starts and after Restore.
	LiveBodies(yield func(protocol.BodyRef)) error
}

// LiveBodies lists the bodies that a state machine refers to. keeper is false if the state machine
// is no BodyKeeper.
func LiveBodies(sm member.StateMachine) (refs []protocol.BodyRef, keeper bool, err error) {
	k, keeper := sm.(BodyKeeper)
	if !keeper {
		return nil, false, nil
	}
	if err := k.LiveBodies(func(ref protocol.BodyRef) { refs = append(refs, ref) }); err != nil {
		return nil, true, &member.MachineError{Op: "live bodies", Err: err}
	}
	return refs, true, nil
}

// UnheldError says that this member does not hold a body in a form from which the form that is
// needed could be made.
type UnheldError struct {
	Ref        protocol.BodyRef
	Held, Need protocol.Form
}

func (e *UnheldError) Error() string {
	return fmt.Sprintf("body of entry %d (instance %d): %s is needed, %s is held", e.Ref.Index, e.Ref.Instance, e.Need,
		e.Held)
}

// MakeResident brings an entry of a message into the form in which it is sent. It loads the
// payload and the body if they are not at hand, and cuts the body to the row that the receiver is
// to hold. e is the caller's copy. committed says that the receiver learns with the same message
// that the entry is committed. Then a body that cannot be had is left out, and the receiver has to
// get it from others (docs/internals/craft.md, 2.7). Otherwise that is an error.
func MakeResident(instance protocol.InstanceID, e *protocol.Entry, committed bool, load member.Loader,
	bodies BodySource) error {
	if !e.Applicable() {
		if err := load(instance, e); err != nil {
			return &member.LoadError{Instance: instance, Index: e.Index, Err: err}
		}
	}
	if e.BodySize == 0 || e.Form == protocol.FormNone {
		e.Body = nil
		return nil
	}
	if !onWire(e) {
		err := residentBody(instance, e, bodies)
		if err != nil && committed {
			e.Form, e.Body, err = protocol.FormNone, nil, nil
		}
		return err
	}
	return nil
}

// onWire reports whether the body is in the entry's form already. A row is as long as the whole
// only where the body is one byte. Then the digest tells them apart, or they are equal.
func onWire(e *protocol.Entry) bool {
	if len(e.Body) != e.BodyLen() {
		return false
	}
	return e.Form == protocol.FormWhole || len(e.Body) != int(e.BodySize) || protocol.Digest(e.Body) != e.BodyDigest
}

func residentBody(instance protocol.InstanceID, e *protocol.Entry, bodies BodySource) error {
	have := Fragment{Form: protocol.FormWhole, Bytes: e.Body}
	if len(e.Body) != int(e.BodySize) {
		held, err := ReadBody(e.Ref(instance), bodies)
		if err != nil {
			return err
		}
		have = held
	}
	got, err := have.Cut(e.K, e.Form)
	if err != nil {
		return err
	}
	if got == nil {
		return &UnheldError{Ref: e.Ref(instance), Held: have.Form, Need: e.Form}
	}
	e.Body = got
	return nil
}

// ReadBody reads what is held of a body. Its form is FormNone if nothing is held.
func ReadBody(ref protocol.BodyRef, bodies BodySource) (Fragment, error) {
	if b, ok := bodies.Find(uint32(ref.Instance), uint64(ref.Index)); !ok || b.Term != uint64(ref.Term) ||
		b.Form == uint8(protocol.FormNone) {
		return Fragment{}, nil
	}
	b, err := bodies.Read(uint32(ref.Instance), uint64(ref.Index))
	if err != nil {
		return Fragment{}, err
	}
	if b.Term != uint64(ref.Term) { // replaced meanwhile
		return Fragment{}, nil
	}
	f := Fragment{Form: protocol.Form(b.Form), Bytes: b.Bytes}
	if b.Size != ref.Size || b.Digest != ref.Digest || len(f.Bytes) != f.Form.Len(ref.Size, ref.K) {
		return Fragment{}, &protocol.CorruptError{What: "body store", Detail: fmt.Sprintf(
			"entry %d of term %d: %d of %d bytes with digest %08x as %s, want %d bytes with digest %08x",
			ref.Index, ref.Term, len(f.Bytes), b.Size, b.Digest, f.Form, ref.Size, ref.Digest)}
	}
	return f, nil
}

// Cut makes a form of a body coded with k from another form. It returns nil if that is not
// possible.
func (f *Fragment) Cut(k uint8, form protocol.Form) ([]byte, error) {
	r, row := form.Row()
	switch {
	case f.Form == form:
		return f.Bytes, nil
	case f.Form == protocol.FormWhole && row:
		return erasure.Cut(f.Bytes, k, r)
	}
	return nil, nil
}

// AnswerFetch answers a MsgFetch from what this member holds. If a row is asked for, it is cut
// where the body is held whole; else what is held is sent. If FormWhole is asked for, the most
// that is held is sent. If FormNone is asked for, the answer says which form is held, without
// bytes. damaged is an error of reading the disk; nothing is sent of the body then. If IsDamage
// says so, the bytes are not what was written and should be repaired.
func AnswerFetch(m *protocol.Message, self protocol.MemberID, bodies BodySource) (answer *protocol.Message,
	damaged error) {
	answer = &protocol.Message{Type: protocol.MsgFetchResp, Instance: m.Instance, From: self, To: m.From,
		Context: m.Context, Reject: true}
	if len(m.Holdings) != 1 {
		return answer, nil
	}
	h := m.Holdings[0]
	answer.Holdings = []protocol.Holding{{Index: h.Index, Term: h.Term}}
	held, ok := bodies.Find(uint32(m.Instance), uint64(h.Index))
	if !ok || held.Form == uint8(protocol.FormNone) || h.Term != 0 && held.Term != uint64(h.Term) {
		return answer, nil
	}
	got := &answer.Holdings[0]
	if h.Form == protocol.FormNone {
		if !bodies.Durable(uint32(m.Instance), uint64(h.Index)) {
			return answer, nil // others would give up copies because of it
		}
		answer.Reject, got.Term, got.Form = false, protocol.Term(held.Term), protocol.Form(held.Form)
		return answer, nil
	}
	ref := RefOf(&held)
	have, err := ReadBody(ref, bodies)
	if err != nil {
		return answer, err
	}
	if _, row := h.Form.Row(); row && have.Form == protocol.FormWhole && ref.K > 1 {
		if have.Bytes, err = have.Cut(ref.K, h.Form); err != nil {
			return answer, nil // no such row
		}
		have.Form = h.Form
	}
	if have.Form == protocol.FormNone {
		return answer, nil
	}
	answer.Reject, answer.Blob = false, have.Bytes
	*got = protocol.Holding{Index: ref.Index, Term: ref.Term, Form: have.Form, Digest: protocol.Digest(have.Bytes)}
	return answer, nil
}

// RefOf makes the name of a body from what its store says of it.
func RefOf(b *wal.Body) protocol.BodyRef {
	return protocol.BodyRef{
		Instance: protocol.InstanceID(b.Instance), Index: protocol.Index(b.Index), Term: protocol.Term(b.Term),
		K: b.K, Size: b.Size, Digest: b.Digest,
	}
}

// OwnForm is the form in which a member is to hold a committed body that it has to make itself.
// That is its own row, or the whole if the body is not coded or if rows would not be enough. It is
// false for a coded body if self is not a member (yet).
func OwnForm(c *protocol.Config, self protocol.MemberID, k uint8) (protocol.Form, bool) {
	if k < 2 {
		return protocol.FormWhole, true
	}
	m := c.Find(self)
	if m == nil {
		return protocol.FormNone, false
	}
	if m.WholeAbove > 0 && k > m.WholeAbove {
		return protocol.FormWhole, true
	}
	return protocol.RowForm(m.Slot), true
}

// RestoreForm is the form in which a member is to hold a committed body that it restores. That is
// the whole if it held the whole before the damage, because others count on it. Otherwise it is as
// OwnForm says.
func RestoreForm(c *protocol.Config, self protocol.MemberID, ref protocol.BodyRef, bodies BodySource) (protocol.Form,
	bool) {
	if b, ok := bodies.Find(uint32(ref.Instance), uint64(ref.Index)); ok && b.Term == uint64(ref.Term) &&
		b.Form == uint8(protocol.FormWhole) {
		return protocol.FormWhole, true
	}
	return OwnForm(c, self, ref.K)
}

// RecoverBodies completes what Recover read of all instances by the bodies on disk. Each entry
// learns in which form its body is held. Bodies that belong neither to an entry nor to refs are
// given up. refs are those that the state machine refers to.
//
// A member has acknowledged its entries above the known commit index, and those in its cells. If the
// body of one is not there or damaged, the member would break its word. That is an error. A committed
// body can be restored from other members. So where the state refers to the body of another entry at
// the same index, because it survived a loss of power and the end of the log did not, the body of the
// acknowledged entry stays. The other one is missing until the log has its entry.
func RecoverBodies(logs []member.InstanceLog, bodies *wal.Bodies, refs []protocol.BodyRef) error {
	type name struct {
		instance protocol.InstanceID
		key      BodyKey
	}
	live := make(map[name]bool, len(refs))
	for _, ref := range refs {
		live[name{ref.Instance, KeyOf(ref)}] = true
	}
	bodies.Retain(func(b wal.Body) bool {
		ref := RefOf(&b)
		if slices.ContainsFunc(logs, func(l member.InstanceLog) bool { return l.Holds(&ref) }) {
			return true
		}
		return live[name{ref.Instance, KeyOf(ref)}] &&
			!slices.ContainsFunc(logs, func(l member.InstanceLog) bool { return l.Acknowledged(&ref) })
	})
	for _, l := range logs {
		for i := range l.Recovered.Entries {
			e := &l.Recovered.Entries[i]
			if e.BodySize == 0 {
				continue
			}
			if err := recoverForm(e, l.Instance, bodies, e.Index <= l.Recovered.State.Commit); err != nil {
				return err
			}
		}
		for i := range l.Accepted {
			if e := &l.Accepted[i]; e.BodySize > 0 {
				if err := recoverForm(e, l.Instance, bodies, false); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func recoverForm(e *protocol.Entry, instance protocol.InstanceID, bodies *wal.Bodies, committed bool) error {
	b, ok := bodies.Find(uint32(instance), uint64(e.Index))
	if ok = ok && b.Term == uint64(e.Term); ok {
		e.Form = protocol.Form(b.Form)
	}
	if committed {
		return nil
	}
	why := "nothing is held"
	if ok {
		err := bodies.Verify(uint32(instance), uint64(e.Index))
		if err == nil {
			return nil
		}
		if !member.IsDamage(err) { // the disk did not answer; it may at the next start
			return fmt.Errorf("body of entry %d (instance %d, term %d), which was acknowledged: %w",
				e.Index, instance, e.Term, err)
		}
		why = err.Error()
	}
	return &protocol.CorruptError{What: "body store", Detail: fmt.Sprintf(
		"body of entry %d (instance %d, term %d), which was acknowledged: %s", e.Index, instance, e.Term, why)}
}
