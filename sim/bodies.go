package sim

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/braidlog/braid/check"
	"github.com/braidlog/braid/erasure"
	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/wal"
)

const (
	bodyDir = "/data/bodies"
	// maxFilling is how many missing bodies are restored at once, and read at once for a value.
	maxFilling = 4
)

// bodyWork is what a running member has to do with bodies: the store on its disk, and what
// makes them whole, restores and forgets them. It does around the pure parts of package
// replica what the goroutines of production do.
type bodyWork struct {
	store     *wal.Bodies
	gatherer  *member.Gatherer
	out       member.GatherOutbox
	retention *member.Retention
	asking    map[protocol.BodyRef][]func([]byte, error)
	config    uint64 // of the members that the gatherer knows, as a hash; see follow
	flushing  bool
	filling   int // missing bodies that are being gathered; ≤ maxFilling

	writing []protocol.BodyRef // restored, and not durable yet

	// trims are whole copies of which it is asked whether a row would do.
	trims []*member.Census
	asked uint64
}

// trimBit tells answers to these questions from fragments that were asked for.
const trimBit = 1 << 63

// droppedBody is a body to which the state machine does not refer since a position.
type droppedBody struct {
	at  protocol.Position
	ref protocol.BodyRef
}

// openBodies opens the store, which is one for all instances, and forgets what neither the
// logs nor the state refers to.
func (m *Member) openBodies(logs []member.InstanceLog, machine *machine) (store *wal.Bodies, err error) {
	options := wal.BodiesOptions{FS: m.disk, Dir: bodyDir, SegmentBytes: m.w.set.Bodies.SegmentBytes, Identity: []byte{byte(m.id)}}
	if store, err = wal.OpenBodies(options); err != nil {
		return nil, err
	}
	refs, _, err := member.LiveBodies(machine.asStateMachine())
	if err != nil {
		return nil, err
	}
	return store, member.RecoverBodies(logs, store, refs)
}

// holdBodies begins with what the store holds of the instance.
func (s *strand) holdBodies(machine *machine, store *wal.Bodies, base protocol.Index) error {
	refs, keeper, err := member.LiveBodies(machine.asStateMachine())
	if err != nil {
		return err
	}
	m, set := s.m, &s.m.w.set.Bodies
	s.body.store = store
	s.body.gatherer = member.NewGatherer(member.GatherConfig{Self: m.id, Hedge: set.Hedge, Retry: set.Retry, MaxBytes: set.GatherBytes})
	s.body.retention = member.NewRetention(s.instance, store, keeper)
	s.body.retention.Restart(base, refs)
	s.body.asking = map[protocol.BodyRef][]func([]byte, error){}
	if m.strange() {
		return nil
	}
	return s.court.bodies.Start(m.judged(), s.foundBodies())
}

// foundBodies is what the store holds, as the judge has it. What cannot be read is not there.
func (s *strand) foundBodies() (found []check.Body) {
	s.m.disk.healthy(func() {
		for _, ref := range s.foundRefs() {
			if full, err := s.body.store.Read(uint32(s.instance), uint64(ref.Index)); err == nil && full.Form != uint8(protocol.FormNone) {
				found = append(found, judged(&full))
			}
		}
	})
	return found
}

func judged(b *wal.Body) check.Body {
	return check.Body{Index: b.Index, Term: b.Term, K: b.K, Form: check.Form(b.Form), Size: b.Size, Digest: b.Digest, Bytes: b.Bytes}
}

func refOf(b *wal.Body) protocol.BodyRef {
	return protocol.BodyRef{Instance: protocol.InstanceID(b.Instance), Index: protocol.Index(b.Index), Term: protocol.Term(b.Term), K: b.K, Size: b.Size, Digest: b.Digest}
}

// own reads what this member holds of a body; damage counts as nothing and is repaired.
func (s *strand) own(ref protocol.BodyRef) *member.Fragment {
	b, ok := s.body.store.Find(uint32(s.instance), uint64(ref.Index))
	if !ok || b.Term != uint64(ref.Term) || b.Form == uint8(protocol.FormNone) {
		return nil
	}
	full, err := s.body.store.Read(uint32(s.instance), uint64(ref.Index))
	if err != nil {
		s.damaged(ref, err)
		return nil
	}
	return &member.Fragment{Form: protocol.Form(full.Form), Bytes: full.Bytes}
}

// damaged takes note of bytes on disk that are not what was written; nothing else may make
// a body unreadable.
func (s *strand) damaged(ref protocol.BodyRef, err error) {
	var corrupt *wal.CorruptError
	if !errors.As(err, &corrupt) {
		s.m.fail(err)
		return
	}
	if !s.court.bodies.Damaged(s.m.judged(), uint64(ref.Index)) {
		s.m.w.violate(s.m.id, err)
	}
	if s.body.retention.Lost(ref) {
		s.m.w.events.DamageFound++
		s.m.w.tracef("%s   finds its part of body %d damaged", s.m.id, ref.Index)
	}
	s.tell()
}

// tell tells the core how this member stands with its bodies.
func (s *strand) tell() {
	if in, changed := s.body.retention.Input(); changed {
		s.m.later(0, func() { s.step(in) })
	}
}

// gather makes a body whole and calls done, once, unless the member stops before.
func (s *strand) gather(ref protocol.BodyRef, urgent bool, done func(body []byte, err error)) {
	b := &s.body
	waiting, open := b.asking[ref]
	b.asking[ref] = append(waiting, done)
	patience := s.m.w.set.GiveUp
	if urgent { // those that wait for room need time for the ones before them
		patience += time.Duration(len(b.asking)) * s.m.w.set.gatherTime()
	}
	q := member.Question{Ref: ref, Until: s.m.clock() + patience, Urgent: urgent}
	if !open {
		q.Have = s.own(ref)
	}
	b.gatherer.Ask(s.m.clock(), q, &b.out)
	s.flushBodies()
}

// flushBodies sends the gatherer's questions and hands out its answers.
func (s *strand) flushBodies() {
	b := &s.body
	if b.flushing {
		return
	}
	b.flushing = true
	defer func() { b.flushing = false }()
	for s.m.up && (len(b.out.Send) > 0 || len(b.out.Answers) > 0) {
		sends, answers := slices.Clone(b.out.Send), slices.Clone(b.out.Answers)
		b.out.Reset()
		for _, msg := range sends {
			s.m.w.send(msg)
		}
		for _, a := range answers {
			s.gathered(a)
		}
	}
}

func (s *strand) gathered(a member.Answer) {
	waiting := s.body.asking[a.Ref]
	delete(s.body.asking, a.Ref)
	switch {
	case a.Err != nil:
		s.m.w.tracef("%s   %v", s.m.id, a.Err)
		s.m.w.events.GatherFailed++
	case protocol.Digest(a.Body) != a.Ref.Digest:
		s.m.w.violate(s.m.id, errors.New("a gathered body does not fit its digest"))
	default:
		s.m.w.events.Gathered++
	}
	for _, done := range waiting {
		done(a.Body, a.Err)
	}
}

// unreachable says that a message did not get through.
func (s *strand) unreachable(to protocol.MemberID) {
	s.body.gatherer.Unreachable(s.m.clock(), to, &s.body.out)
	s.flushBodies()
}

// fetched handles the messages that concern no core; it reports false if this is none.
func (s *strand) fetched(msg *protocol.Message) bool {
	switch msg.Type {
	case protocol.MsgFetch:
		answer, damage := member.AnswerFetch(msg, s.m.id, s.body.store)
		if damage != nil {
			s.damagedAt(msg.Holdings[0].Index, damage)
		}
		if s.m.up && answer != nil {
			s.judgeServed(answer)
			s.m.w.send(answer)
		}
		return true
	case protocol.MsgFetchResp:
		if msg.Context&trimBit != 0 {
			s.counted(msg)
			return true
		}
		s.body.gatherer.Receive(s.m.clock(), msg, &s.body.out)
		s.flushBodies()
		return true
	}
	return false
}

// damagedAt is damaged for whatever is held at an index.
func (s *strand) damagedAt(index protocol.Index, err error) {
	if b, ok := s.body.store.Find(uint32(s.instance), uint64(index)); ok {
		s.damaged(refOf(&b), err)
	}
}

// judgeServed judges the bytes that a member gives another one.
func (s *strand) judgeServed(answer *protocol.Message) {
	if answer.Reject || len(answer.Blob) == 0 {
		return
	}
	b, _ := s.body.store.Find(uint32(s.instance), uint64(answer.Holdings[0].Index))
	b.Form, b.Bytes = uint8(answer.Holdings[0].Form), answer.Blob
	s.m.w.violate(s.m.id, s.court.bodies.Serve(s.m.judged(), judged(&b)))
}

// wanted makes whole what the core wants.
func (s *strand) wanted(refs []protocol.BodyRef) {
	for _, ref := range refs {
		s.m.w.events.Wanted++
		s.gather(ref, true, func(body []byte, err error) {
			if err == nil {
				s.step(protocol.BodyMade{Index: ref.Index, Term: ref.Term, Body: body})
			}
		})
	}
}

// fill restores bodies that are missing or of which more is to be held, a few at a time.
func (s *strand) fill() {
	for _, ref := range s.body.retention.Due(s.m.clock(), maxFilling-s.body.filling) {
		s.body.filling++
		s.gather(ref, false, func(body []byte, err error) {
			s.body.filling--
			if err == nil && s.body.retention.Wants(ref) {
				s.repair(ref, body)
			}
		})
	}
}

// repair stores what this member is to hold of a body.
func (s *strand) repair(ref protocol.BodyRef, body []byte) {
	config := s.config()
	form, ok := member.RestoreForm(&config, s.m.id, ref, s.body.store)
	missing := s.body.retention.Missing(ref)
	switch {
	case !ok || !missing && form != protocol.FormWhole:
	case s.body.retention.Whole(ref):
		s.body.retention.Stored(ref)
		s.tell()
	default:
		if !missing {
			s.m.w.events.Restriped++
		}
		s.hold(ref, form, body)
	}
}

// hold makes durable what this member is to hold of a whole body.
func (s *strand) hold(ref protocol.BodyRef, form protocol.Form, body []byte) {
	if slices.Contains(s.body.writing, ref) {
		return
	}
	bytes := body
	if row, isRow := form.Row(); isRow {
		var err error
		if bytes, err = erasure.Cut(body, ref.K, row); err != nil {
			s.m.w.violate(s.m.id, err)
			return
		}
	}
	record := member.BodyRecord(ref, form, bytes)
	nth := s.m.writer.count + 1
	s.m.w.violate(s.m.id, s.court.bodies.Body(s.m.judged(), nth, judged(record.Body)))
	s.m.w.tracef("%s   restores body %d as %s", s.m.id, ref.Index, form)
	s.body.writing = append(s.body.writing, ref)
	s.m.writer.Submit([]wal.Record{record}, func(err error) { s.storedBody(ref, nth, err) })
}

// storedBody notes that what was restored is durable.
func (s *strand) storedBody(ref protocol.BodyRef, nth uint64, err error) {
	if err != nil {
		s.m.fail(err)
		return
	}
	s.m.w.events.Backfilled++
	s.court.bodies.Durable(s.m.judged(), nth)
	s.body.writing = slices.DeleteFunc(s.body.writing, func(r protocol.BodyRef) bool { return r == ref })
	s.body.retention.Stored(ref)
	s.tell()
}

// tickBodies does what is due now and then.
func (m *Member) tickBodies() {
	for _, s := range m.kept() {
		if !m.up {
			return
		}
		if s.body.gatherer.Busy() {
			s.body.gatherer.Tick(m.clock(), &s.body.out)
		}
		s.follow()
		s.fill()
		s.flushBodies()
		m.w.violate(m.id, s.body.gatherer.Check())
		m.w.violate(m.id, s.body.retention.Check())
	}
}

// follow lets the gatherer know the members, and the retention what this one is to hold.
func (s *strand) follow() {
	config := s.config()
	if s.body.retention.Obey(&config, s.m.id) {
		s.tell()
	}
	h := uint64(1)
	for _, id := range config.All() {
		h = h*1099511628211 + uint64(id)
	}
	if h != s.body.config {
		s.body.config = h
		s.body.gatherer.SetMembers(&config)
	}
}

// scrub verifies everything that is held.
func (m *Member) scrub() {
	for _, s := range m.strands {
		for _, b := range s.foundRefs() {
			if m.up {
				s.own(b)
			}
		}
	}
	if every := m.own.Bodies.Scrub; every > 0 && m.up {
		for _, s := range m.strands {
			s.trim()
		}
		m.later(every, m.scrub)
	}
}

// trim asks who else holds the bodies of which this member holds a whole copy that it could
// do without: those committed durably.
func (s *strand) trim() {
	s.body.trims = nil
	config := s.config()
	for _, ref := range s.foundRefs() {
		b, _ := s.body.store.Find(uint32(s.instance), uint64(ref.Index))
		if b.Form != uint8(protocol.FormWhole) || ref.Index > s.noted || !s.m.machine.refers(ref) || s.body.retention.Missing(ref) {
			continue
		}
		s.body.asked++
		n := member.NewCensus(ref, s.body.asked|trimBit, s.m.clock()+s.m.w.set.GiveUp, &config, s.m.id)
		if n == nil {
			continue
		}
		n.Mutant = s.m.w.set.mutant()
		s.body.trims = append(s.body.trims, n)
		for _, msg := range n.Questions() {
			s.m.w.send(msg)
		}
	}
}

// counted cuts a whole copy to this member's row as soon as enough others hold something.
func (s *strand) counted(msg *protocol.Message) {
	for i, n := range s.body.trims {
		if n.Receive(msg); !n.Enough() {
			continue
		}
		s.body.trims = slices.Delete(s.body.trims, i, i+1)
		have := s.own(n.Ref)
		if have != nil && have.Form == protocol.FormWhole && s.m.machine.refers(n.Ref) && s.body.retention.Trim(n.Ref) {
			s.tell()
			s.m.w.events.Trimmed++
			s.hold(n.Ref, n.Own, have.Bytes)
		}
		return
	}
}

// foundRefs lists what the store holds of the instance.
func (s *strand) foundRefs() (refs []protocol.BodyRef) {
	s.body.store.Each(func(b wal.Body) bool {
		if b.Instance == uint32(s.instance) {
			refs = append(refs, refOf(&b))
		}
		return true
	})
	return refs
}

// dropped notes that the state machine does not refer to a body since a position.
func (m *Member) dropped(at protocol.Position, ref protocol.BodyRef) {
	m.w.courtOf(ref.Instance).bodies.Drop(uint64(ref.Index))
	m.drops = append(m.drops, droppedBody{at, ref})
}

// passed takes note of a body that the state machine was not given: unless it refers to it
// since an earlier life, it never will.
func (m *Member) passed(ref protocol.BodyRef) {
	if !m.machine.refers(ref) {
		m.w.courtOf(ref.Instance).bodies.Drop(uint64(ref.Index))
	}
}

// releaseUpTo lets go, after a while, of the bodies whose drop is durable in a snapshot at
// that position.
func (m *Member) releaseUpTo(position protocol.Position) {
	n := 0
	for n < len(m.drops) && m.drops[n].at <= position {
		n++
	}
	drops := slices.Clone(m.drops[:n])
	m.drops = slices.Delete(m.drops, 0, n)
	m.later(m.w.between(0, m.w.set.Bodies.Release), func() {
		for _, d := range drops {
			if s := m.of(d.ref.Instance); s.body.retention.Release(d.ref) {
				s.letGo(d.ref)
			}
		}
		for _, s := range m.strands {
			s.tell()
		}
	})
}

func (s *strand) letGo(ref protocol.BodyRef) {
	s.m.w.events.Released++
	s.body.store.Release(uint32(s.instance), uint64(ref.Index))
	s.court.bodies.Release(s.m.judged(), uint64(ref.Index), uint64(ref.Term))
}

// sweep lets go of everything that is dead.
func (s *strand) sweep() {
	before := s.foundRefs()
	s.body.retention.Sweep(s.body.store)
	for _, ref := range before {
		if b, ok := s.body.store.Find(uint32(s.instance), uint64(ref.Index)); !ok || b.Term != uint64(ref.Term) {
			s.m.w.events.Released++
			s.court.bodies.Release(s.m.judged(), uint64(ref.Index), uint64(ref.Term))
		}
	}
	s.tell()
}

// resolve puts into a value, for each token, the body that it stands for.
func (m *Member) resolve(text string, done func(text string, err error)) {
	numbers := tokens(text)
	if len(numbers) == 0 {
		done(text, nil)
		return
	}
	refs := make([]protocol.BodyRef, len(numbers))
	for i, n := range numbers {
		ref, ok := m.machine.bodies[n]
		if !ok {
			m.w.violate(m.id, errors.New("a value has a token for a body that the state does not refer to"))
			return
		}
		refs[i] = ref
	}
	m.gatherAll(refs, nil, func(bodies [][]byte, err error) {
		if err == nil {
			text = m.spell(text, numbers, bodies)
		}
		done(text, err)
	})
}

// gatherAll makes bodies whole, a few at a time, and ends at the first that cannot be: what
// is not there any more must not hold up others for long.
func (m *Member) gatherAll(refs []protocol.BodyRef, have [][]byte, done func(bodies [][]byte, err error)) {
	if len(have) == len(refs) {
		done(have, nil)
		return
	}
	some := refs[len(have):min(len(refs), len(have)+maxFilling)]
	bodies, left, failed := make([][]byte, len(some)), len(some), error(nil)
	for i, ref := range some {
		m.of(ref.Instance).gather(ref, true, func(body []byte, err error) {
			bodies[i], failed, left = body, errors.Join(failed, err), left-1
			switch {
			case left > 0:
			case failed != nil:
				done(nil, failed)
			default:
				m.gatherAll(refs, append(have, bodies...), done)
			}
		})
	}
}

func (m *Member) spell(text string, numbers []int, bodies [][]byte) string {
	for i, n := range numbers {
		if want := m.w.ops[n].body; !slices.Equal(want, bodies[i]) {
			m.w.violate(m.id, errors.New("C10: a read returns bytes that nobody wrote"))
		}
		text = strings.Replace(text, token(n), spelled(n, bodies[i]), 1)
	}
	return text
}

// damage spoils bytes of a body on a member's disk, if enough others hold it whole: only
// what the member knows to be committed, for what it acknowledged before that it must keep.
func (w *World) damage(m *Member) {
	s := m.strands[w.among(len(m.strands))]
	live := slices.DeleteFunc(s.court.bodies.Live(), func(i uint64) bool {
		return i > uint64(s.noted) || s.court.bodies.Holds(m.judged(), i) == check.NoBody || !w.stillWhole(s.court, i, m)
	})
	if len(live) == 0 {
		return
	}
	index := live[w.pick(len(live))]
	b, err := s.body.store.Read(uint32(s.instance), index)
	if err != nil || len(b.Bytes) < 12 || m.writer.busy() || m.twice(&b) || !m.disk.spoil(bodyDir, b.Bytes, w.rng) {
		return
	}
	w.events.Damages++
	w.tracef("FAULT %s of body %d goes bad on the disk of %s", protocol.Form(b.Form), index, m.id)
	s.court.bodies.Damage(m.judged(), index)
}

// twice reports whether a body stands in two places, because it was proposed twice.
func (m *Member) twice(b *wal.Body) bool {
	found := false
	m.body.store.Each(func(o wal.Body) bool {
		found = found || o.Digest == b.Digest && (o.Index != b.Index || o.Instance != b.Instance)
		return !found
	})
	return found
}

// stillWhole reports whether a body can be made whole without one member, also when the
// others have cut their whole copies to rows.
func (w *World) stillWhole(c *court, index uint64, without *Member) bool {
	if w.set.Resize && !w.whoeverLeaves(c, index, without) {
		return false
	}
	return c.bodies.RecoverableFromRows(index, numbers(w.except(without)))
}

// whoeverLeaves reports the same where others may leave: nobody else's part of the body is
// damaged, for members count with what they do not know to be damaged, and in every
// configuration the voters suffice.
func (w *World) whoeverLeaves(c *court, index uint64, without *Member) bool {
	if slices.ContainsFunc(w.members, func(m *Member) bool { return c.bodies.Damaged(uint64(m.id), index) }) {
		return false
	}
	return !slices.ContainsFunc(c.ledger.Configurations(), func(v *check.Voters) bool {
		left := slices.DeleteFunc(slices.Clone(v.Incoming), func(id uint64) bool { return id == uint64(without.id) })
		return len(left) < 2 || !c.bodies.RecoverableFromRows(index, left)
	})
}

// recoverable reports whether those members hold enough of everything alive.
func (w *World) recoverable(members []*Member) bool {
	ids := numbers(members)
	for _, c := range w.courts {
		if slices.ContainsFunc(c.bodies.Live(), func(i uint64) bool { return !c.bodies.Recoverable(i, ids) }) {
			return false
		}
	}
	return true
}

// except is all members that are not gone for good, and not the one.
func (w *World) except(one *Member) []*Member {
	return slices.DeleteFunc(slices.Clone(w.members), func(m *Member) bool { return m.gone || m.strange() || m == one })
}

func numbers(members []*Member) []uint64 {
	ids := make([]uint64, len(members))
	for i, m := range members {
		ids[i] = uint64(m.id)
	}
	return ids
}

// lacks reports whether a member lacks a body to which its state refers, in the form that it
// should have.
func (m *Member) lacks() bool {
	for _, ref := range m.machine.bodies {
		if m.of(ref.Instance).body.retention.Wants(ref) {
			return true
		}
	}
	return false
}

// gatherTime is how long making one body whole may take once everything works.
func (s *Settings) gatherTime() time.Duration {
	return 8 * (s.Bodies.Hedge + s.Bodies.Retry + 2*s.DelayMax + s.Tick)
}
