package body

import (
	"errors"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// BodyAccess reads the bodies that a member holds: for other members, for its own readers, and to see whether they are
// damaged. It does not change once it is made. So any goroutine may read, at the same time as Bodies, on other
// goroutines.
type BodyAccess struct {
	cfg   BodyConfig
	store BodyStore
	world BodyWorld
}

// NewBodyAccess returns what reads the bodies in a store.
func NewBodyAccess(cfg BodyConfig, store BodyStore, world BodyWorld) *BodyAccess {
	return &BodyAccess{cfg: cfg, store: store, world: world}
}

// Local reads what this member holds of a body. Damage counts as holding nothing, and is
// repaired.
func (a *BodyAccess) Local(ref protocol.BodyRef) Fragment {
	have, _ := a.read(ref)
	return have
}

// read is Local. unread says why something is held that could not be read.
func (a *BodyAccess) read(ref protocol.BodyRef) (have Fragment, unread error) {
	have, err := ReadBody(ref, a.store)
	switch {
	case err == nil:
		return have, nil
	case member.IsDamage(err):
		a.damaged(ref, err)
		return Fragment{}, nil
	}
	return Fragment{}, err
}

func (a *BodyAccess) damaged(ref protocol.BodyRef, err error) {
	news := false
	a.world.Kept(func(k *Kept) { news = k.Damaged(ref) })
	a.world.Report(BodyReport{What: BodyDamaged, Ref: ref, Err: err, News: news})
}

// LeftOut finds out why a body could not be sent to a member that should hold it. Where this
// member holds enough of the body, it must be damaged.
func (a *BodyAccess) LeftOut(e *protocol.Entry, instance protocol.InstanceID) {
	held, ok := a.store.Find(uint32(instance), uint64(e.Index))
	if form := protocol.Form(held.Form); ok && held.Term == uint64(e.Term) &&
		(form == protocol.FormWhole || form == e.Form) {
		ref := e.Ref(instance)
		a.world.Apart(func() { a.Local(ref) })
	}
}

// Fetch makes a body whole for a reader. If this member holds all of it, no one else is asked. done is called once.
func (a *BodyAccess) Fetch(ref protocol.BodyRef, done func(Answer)) {
	have, unread := a.read(ref)
	if have.Form == protocol.FormWhole {
		done(Answer{Ref: ref, Body: have.Bytes})
		return
	}
	q := GatherRequest{Ref: ref, Until: a.world.Now() + a.cfg.Timeout, Urgency: ToRead}
	if have.Form != protocol.FormNone {
		q.Have = &have
	}
	answer := func(got Answer) {
		if lost := (*BodyError)(nil); unread != nil && errors.As(got.Err, &lost) {
			own := *lost // others may wait for the same answer
			own.Unread = unread
			got.Err = &own
		}
		done(got)
	}
	var err error
	if a.world.Inbox(func(i *BodyInbox) { err = i.Ask(q, answer) }); err != nil {
		done(Answer{Ref: ref, Err: err})
	}
}

// Serve answers another member's question about a body from the disk. It gives no answer if the disk
// fails to read: this member may hold the body, and is asked again.
func (a *BodyAccess) Serve(m *protocol.Message) {
	answer, err := AnswerFetch(m, a.cfg.Self, a.store)
	if err != nil && !member.IsDamage(err) {
		return
	}
	if err != nil {
		if held, ok := a.store.Find(uint32(m.Instance), uint64(m.Holdings[0].Index)); ok {
			a.damaged(RefOf(&held), err)
		}
	}
	switch {
	case !answer.Reject && len(answer.Blob) == 0:
		a.answerCount(answer)
	case a.world.Send(answer) && !answer.Reject:
		a.world.Kept(func(k *Kept) { k.Count.Served++ })
	}
}

// answerCount says what is held of a body, once that is durable, and whether it stays: then the entry is committed.
func (a *BodyAccess) answerCount(answer *protocol.Message) {
	h, lost, keeps := &answer.Holdings[0], false, false
	a.world.Kept(func(k *Kept) {
		ref := protocol.BodyRef{Instance: answer.Instance, Index: h.Index, Term: h.Term}
		lost, keeps = k.Missing(ref), k.Keeps(ref)
	})
	if keeps {
		answer.Commit = h.Index
	}
	if lost {
		*answer = protocol.Message{
			Type: answer.Type, Instance: answer.Instance, From: answer.From, To: answer.To,
			Context: answer.Context, Reject: true, Holdings: []protocol.Holding{{Index: h.Index, Term: h.Term}},
		}
	}
	a.world.Submit(nil, func() { a.world.Send(answer) })
}

// scrubChunk is how many bodies are listed at a time.
const scrubChunk = 4096

// BodyScrubber reads all bodies that a member holds, one after the other, so that damage is
// found while others can still repair it.
type BodyScrubber struct {
	access *BodyAccess
	chunk  []protocol.BodyRef
	last   protocol.BodyRef
}

// Scrubber begins with the first body.
func (a *BodyAccess) Scrubber() BodyScrubber { return BodyScrubber{access: a} }

// Next reads a body, and has it repaired if it is damaged. It returns how many bytes it read. more
// is false if there was no body left.
func (s *BodyScrubber) Next() (read int64, more bool) {
	if len(s.chunk) == 0 {
		s.chunk = s.access.after(s.last)
	}
	if len(s.chunk) == 0 {
		return 0, false
	}
	s.last, s.chunk = s.chunk[0], s.chunk[1:]
	return s.access.verify(s.last), true
}

// after lists bodies after one, in order.
func (a *BodyAccess) after(last protocol.BodyRef) (refs []protocol.BodyRef) {
	a.store.Each(func(held wal.Body) bool {
		ref := RefOf(&held)
		later := ref.Instance > last.Instance || ref.Instance == last.Instance && ref.Index > last.Index
		if later && held.Form != uint8(protocol.FormNone) {
			refs = append(refs, ref)
		}
		return len(refs) < scrubChunk
	})
	return refs
}

// verify reads a body. If the body is held whole and a row might do, it has other members asked
// who else holds it.
func (a *BodyAccess) verify(ref protocol.BodyRef) int64 {
	have, cold := a.Local(ref), false
	if a.cfg.Trim != nil && have.Form == protocol.FormWhole && ref.K > 1 && a.cfg.Trim() {
		if a.world.Kept(func(k *Kept) { cold = k.Cold(ref) }); cold {
			a.world.Inbox(func(i *BodyInbox) { i.Trim(ref) })
		}
	}
	return int64(len(have.Bytes))
}
