package sim

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/braidlog/braid/check"
	"github.com/braidlog/braid/erasure"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/replica"
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
	gatherer  *replica.Gatherer
	out       replica.GatherOutbox
	retention *replica.Retention
	asking    map[protocol.BodyRef][]func([]byte, error)
	config    uint64 // of the members that the gatherer knows, as a hash; see follow
	flushing  bool
	filling   int // missing bodies that are being gathered; ≤ maxFilling

	// repaired wait in the records for the next sync; writing are covered by the one under way.
	repaired, writing []protocol.BodyRef
	drops             []droppedBody

	// trims are whole copies of which it is asked whether a row would do.
	trims []*replica.Census
	asked uint64
}

// trimBit tells answers to these questions from fragments that were asked for.
const trimBit = 1 << 63

// droppedBody is a body to which the state machine does not refer since a position.
type droppedBody struct {
	at  protocol.Position
	ref protocol.BodyRef
}

// openBodies opens the store and forgets what neither the log nor the state refers to.
func (m *Member) openBodies(r *running, rec *protocol.Recovered) error {
	var err error
	options := wal.BodiesOptions{FS: m.disk, Dir: bodyDir, SegmentBytes: m.w.set.Bodies.SegmentBytes, Identity: []byte{byte(m.id)}}
	if r.body.store, err = wal.OpenBodies(options); err != nil {
		return err
	}
	refs, keeper, err := replica.LiveBodies(r.machine.asStateMachine())
	if err != nil {
		return err
	}
	if err := replica.RecoverBodies([]replica.InstanceLog{{Instance: instance, Recovered: rec}}, r.body.store, refs); err != nil {
		return err
	}
	s := &m.w.set.Bodies
	r.body.gatherer = replica.NewGatherer(replica.GatherConfig{Self: m.id, Hedge: s.Hedge, Retry: s.Retry, MaxBytes: s.GatherBytes})
	r.body.retention = replica.NewRetention(instance, r.body.store, keeper)
	r.body.retention.Restart(rec.Base.Index, refs)
	r.body.asking = map[protocol.BodyRef][]func([]byte, error){}
	return m.w.bodies.Start(uint64(m.id), foundBodies(r.body.store))
}

// foundBodies is what a store holds, as the judge has it. What cannot be read is not there.
func foundBodies(store *wal.Bodies) (found []check.Body) {
	var all []wal.Body
	store.Each(func(b wal.Body) bool { all = append(all, b); return true })
	for _, b := range all {
		if full, err := store.Read(b.Instance, b.Index); err == nil && full.Form != uint8(protocol.FormNone) {
			found = append(found, judged(&full))
		}
	}
	return found
}

func judged(b *wal.Body) check.Body {
	return check.Body{Index: b.Index, Term: b.Term, K: b.K, Form: check.Form(b.Form), Size: b.Size, Digest: b.Digest, Bytes: b.Bytes}
}

func refOf(b *wal.Body) protocol.BodyRef {
	return protocol.BodyRef{Instance: instance, Index: protocol.Index(b.Index), Term: protocol.Term(b.Term), K: b.K, Size: b.Size, Digest: b.Digest}
}

// own reads what this member holds of a body; damage counts as nothing and is repaired.
func (m *Member) own(ref protocol.BodyRef) *replica.Fragment {
	b, ok := m.body.store.Find(uint32(instance), uint64(ref.Index))
	if !ok || b.Term != uint64(ref.Term) || b.Form == uint8(protocol.FormNone) {
		return nil
	}
	full, err := m.body.store.Read(uint32(instance), uint64(ref.Index))
	if err != nil {
		m.damaged(ref, err)
		return nil
	}
	return &replica.Fragment{Form: protocol.Form(full.Form), Bytes: full.Bytes}
}

// damaged takes note of bytes on disk that are not what was written; nothing else may make
// a body unreadable.
func (m *Member) damaged(ref protocol.BodyRef, err error) {
	var corrupt *wal.CorruptError
	if !errors.As(err, &corrupt) {
		m.fail(err)
		return
	}
	if !m.w.bodies.Damaged(uint64(m.id), uint64(ref.Index)) {
		m.w.violate(m.id, err)
	}
	if m.body.retention.Lost(ref) {
		m.w.events.DamageFound++
		m.w.tracef("%s   finds its part of body %d damaged", m.id, ref.Index)
	}
	m.tell()
}

// tell tells the core how this member stands with its bodies.
func (m *Member) tell() {
	if in, changed := m.body.retention.Input(); changed {
		m.later(0, func() { m.step(in) })
	}
}

// gather makes a body whole and calls done, once, unless the member stops before.
func (m *Member) gather(ref protocol.BodyRef, urgent bool, done func(body []byte, err error)) {
	b := &m.body
	waiting, open := b.asking[ref]
	b.asking[ref] = append(waiting, done)
	patience := m.w.set.GiveUp
	if urgent { // those that wait for room need time for the ones before them
		patience += time.Duration(len(b.asking)) * m.w.set.gatherTime()
	}
	q := replica.Question{Ref: ref, Until: m.clock() + patience, Urgent: urgent}
	if !open {
		q.Have = m.own(ref)
	}
	b.gatherer.Ask(m.clock(), q, &b.out)
	m.flushBodies()
}

// flushBodies sends the gatherer's questions and hands out its answers.
func (m *Member) flushBodies() {
	b := &m.body
	if b.flushing {
		return
	}
	b.flushing = true
	defer func() { b.flushing = false }()
	for m.up && (len(b.out.Send) > 0 || len(b.out.Answers) > 0) {
		sends, answers := slices.Clone(b.out.Send), slices.Clone(b.out.Answers)
		b.out.Reset()
		for _, msg := range sends {
			m.w.send(msg)
		}
		for _, a := range answers {
			m.gathered(a)
		}
	}
}

func (m *Member) gathered(a replica.Answer) {
	waiting := m.body.asking[a.Ref]
	delete(m.body.asking, a.Ref)
	switch {
	case a.Err != nil:
		m.w.tracef("%s   %v", m.id, a.Err)
		m.w.events.GatherFailed++
	case protocol.Digest(a.Body) != a.Ref.Digest:
		m.w.violate(m.id, errors.New("a gathered body does not fit its digest"))
	default:
		m.w.events.Gathered++
	}
	for _, done := range waiting {
		done(a.Body, a.Err)
	}
}

// unreachable says that a message did not get through.
func (m *Member) unreachable(to protocol.MemberID) {
	m.body.gatherer.Unreachable(m.clock(), to, &m.body.out)
	m.flushBodies()
}

// fetched handles the messages that concern no core; it reports false if this is none.
func (m *Member) fetched(msg *protocol.Message) bool {
	switch msg.Type {
	case protocol.MsgFetch:
		answer, damage := replica.AnswerFetch(msg, m.id, m.body.store)
		if damage != nil {
			m.damagedAt(msg.Holdings[0].Index, damage)
		}
		if m.up && answer != nil {
			m.w.judgeServed(m, answer)
			m.w.send(answer)
		}
		return true
	case protocol.MsgFetchResp:
		if msg.Context&trimBit != 0 {
			m.counted(msg)
			return true
		}
		m.body.gatherer.Receive(m.clock(), msg, &m.body.out)
		m.flushBodies()
		return true
	}
	return false
}

// damagedAt is damaged for whatever is held at an index.
func (m *Member) damagedAt(index protocol.Index, err error) {
	if b, ok := m.body.store.Find(uint32(instance), uint64(index)); ok {
		m.damaged(refOf(&b), err)
	}
}

// judgeServed judges the bytes that a member gives another one.
func (w *World) judgeServed(m *Member, answer *protocol.Message) {
	if answer.Reject || len(answer.Blob) == 0 {
		return
	}
	b, _ := m.body.store.Find(uint32(instance), uint64(answer.Holdings[0].Index))
	b.Form, b.Bytes = uint8(answer.Holdings[0].Form), answer.Blob
	w.violate(m.id, w.bodies.Serve(uint64(m.id), judged(&b)))
}

// wanted makes whole what the core wants.
func (m *Member) wanted(refs []protocol.BodyRef) {
	for _, ref := range refs {
		m.w.events.Wanted++
		m.gather(ref, true, func(body []byte, err error) {
			if err == nil {
				m.step(protocol.BodyMade{Index: ref.Index, Term: ref.Term, Body: body})
			}
		})
	}
}

// fill restores missing bodies, a few at a time.
func (m *Member) fill() {
	for _, ref := range m.body.retention.Due(m.clock(), maxFilling-m.body.filling) {
		m.body.filling++
		m.gather(ref, false, func(body []byte, err error) {
			m.body.filling--
			if err == nil && m.body.retention.Missing(ref) {
				m.repair(ref, body)
			}
		})
	}
}

// repair stores what this member is to hold of a body.
func (m *Member) repair(ref protocol.BodyRef, body []byte) {
	config := m.applier.Config()
	if form, ok := replica.RestoreForm(&config, m.id, ref, m.body.store); ok {
		m.hold(ref, form, body)
	}
}

// hold makes durable what this member is to hold of a whole body.
func (m *Member) hold(ref protocol.BodyRef, form protocol.Form, body []byte) {
	if slices.Contains(m.body.repaired, ref) || slices.Contains(m.body.writing, ref) {
		return
	}
	bytes := body
	if row, isRow := form.Row(); isRow {
		var err error
		if bytes, err = erasure.Cut(body, ref.K, row); err != nil {
			m.w.violate(m.id, err)
			return
		}
	}
	record := replica.BodyRecord(ref, form, bytes)
	m.w.violate(m.id, m.w.bodies.Body(uint64(m.id), m.batch+1, judged(record.Body)))
	m.w.tracef("%s   restores body %d as %s", m.id, ref.Index, form)
	m.records = append(m.records, record)
	m.body.repaired = append(m.body.repaired, ref)
	m.write()
}

// stored notes which repairs are durable.
func (m *Member) storedBodies() {
	for _, ref := range m.body.writing {
		m.w.events.Backfilled++
		m.body.retention.Stored(ref)
	}
	m.body.writing = nil
	m.tell()
}

// tickBodies does what is due now and then.
func (m *Member) tickBodies() {
	if m.body.gatherer.Busy() {
		m.body.gatherer.Tick(m.clock(), &m.body.out)
	}
	m.follow()
	m.fill()
	m.flushBodies()
	m.w.violate(m.id, m.body.gatherer.Check())
	m.w.violate(m.id, m.body.retention.Check())
}

// follow lets the gatherer know the members.
func (m *Member) follow() {
	config := m.applier.Config()
	h := uint64(1)
	for _, id := range config.All() {
		h = h*1099511628211 + uint64(id)
	}
	if h != m.body.config {
		m.body.config = h
		m.body.gatherer.SetMembers(&config)
	}
}

// scrub verifies everything that is held.
func (m *Member) scrub() {
	for _, b := range foundRefs(m.body.store) {
		if m.up {
			m.own(b)
		}
	}
	if every := m.w.set.Bodies.Scrub; every > 0 && m.up {
		m.trim()
		m.later(every, m.scrub)
	}
}

// trim asks who else holds the bodies of which this member holds a whole copy that it could
// do without: those committed durably.
func (m *Member) trim() {
	m.body.trims = nil
	config := m.applier.Config()
	for _, ref := range foundRefs(m.body.store) {
		b, _ := m.body.store.Find(uint32(instance), uint64(ref.Index))
		if b.Form != uint8(protocol.FormWhole) || ref.Index > m.noted || !m.machine.refers(ref) || m.body.retention.Missing(ref) {
			continue
		}
		m.body.asked++
		n := replica.NewCensus(ref, m.body.asked|trimBit, m.clock()+m.w.set.GiveUp, &config, m.id)
		if n == nil {
			continue
		}
		m.body.trims = append(m.body.trims, n)
		for _, msg := range n.Questions() {
			m.w.send(msg)
		}
	}
}

// counted cuts a whole copy to this member's row as soon as enough others hold something.
func (m *Member) counted(msg *protocol.Message) {
	for i, n := range m.body.trims {
		if n.Receive(msg); !n.Enough() {
			continue
		}
		m.body.trims = slices.Delete(m.body.trims, i, i+1)
		if have := m.own(n.Ref); have != nil && have.Form == protocol.FormWhole && m.machine.refers(n.Ref) {
			m.w.events.Trimmed++
			m.hold(n.Ref, n.Own, have.Bytes)
		}
		return
	}
}

func foundRefs(store *wal.Bodies) (refs []protocol.BodyRef) {
	store.Each(func(b wal.Body) bool { refs = append(refs, refOf(&b)); return true })
	return refs
}

// dropped notes that the state machine does not refer to a body since a position.
func (m *Member) dropped(at protocol.Position, ref protocol.BodyRef) {
	m.w.bodies.Drop(uint64(ref.Index))
	m.body.drops = append(m.body.drops, droppedBody{at, ref})
}

// unused takes note of bodies of applied entries to which the state does not refer: their
// commands were duplicates, or made no use of them.
func (m *Member) unused(entries []protocol.Entry) {
	for i := range entries {
		if ref := entries[i].Ref(instance); ref.Size > 0 && !m.machine.refers(ref) {
			m.w.bodies.Drop(uint64(ref.Index))
		}
	}
}

// releaseUpTo lets go, after a while, of the bodies whose drop is durable in a snapshot at
// that position.
func (m *Member) releaseUpTo(position protocol.Position) {
	n := 0
	for n < len(m.body.drops) && m.body.drops[n].at <= position {
		n++
	}
	drops := slices.Clone(m.body.drops[:n])
	m.body.drops = slices.Delete(m.body.drops, 0, n)
	m.later(m.w.between(0, m.w.set.Bodies.Release), func() {
		for _, d := range drops {
			if m.body.retention.Release(d.ref) {
				m.letGo(d.ref)
			}
		}
		m.tell()
	})
}

func (m *Member) letGo(ref protocol.BodyRef) {
	m.w.events.Released++
	m.body.store.Release(uint32(instance), uint64(ref.Index))
	m.w.bodies.Release(uint64(m.id), uint64(ref.Index), uint64(ref.Term))
}

// sweep lets go of everything that is dead.
func (m *Member) sweep() {
	before := foundRefs(m.body.store)
	m.body.retention.Sweep(m.body.store)
	for _, ref := range before {
		if b, ok := m.body.store.Find(uint32(instance), uint64(ref.Index)); !ok || b.Term != uint64(ref.Term) {
			m.w.events.Released++
			m.w.bodies.Release(uint64(m.id), uint64(ref.Index), uint64(ref.Term))
		}
	}
	m.tell()
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
		m.gather(ref, true, func(body []byte, err error) {
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
	live := slices.DeleteFunc(w.bodies.Live(), func(i uint64) bool {
		return i > uint64(m.noted) || w.bodies.Holds(uint64(m.id), i) == check.NoBody || !w.stillWhole(i, m)
	})
	if len(live) == 0 {
		return
	}
	index := live[w.pick(len(live))]
	b, err := m.body.store.Read(uint32(instance), index)
	if err != nil || len(b.Bytes) < 12 || m.syncing || len(m.records) > 0 || m.twice(&b) || !m.disk.spoil(bodyDir, b.Bytes, w.rng) {
		return
	}
	w.events.Damages++
	w.tracef("FAULT %s of body %d goes bad on the disk of %s", protocol.Form(b.Form), index, m.id)
	w.bodies.Damage(uint64(m.id), index)
}

// twice reports whether a body stands at two indexes, because it was proposed twice.
func (m *Member) twice(b *wal.Body) bool {
	return slices.ContainsFunc(foundRefs(m.body.store), func(r protocol.BodyRef) bool {
		return r.Digest == b.Digest && uint64(r.Index) != b.Index
	})
}

// stillWhole reports whether a body can be made whole without one member, also when the
// others have cut their whole copies to rows.
func (w *World) stillWhole(index uint64, without *Member) bool {
	return w.bodies.RecoverableFromRows(index, numbers(w.except(without)))
}

// recoverable reports whether those members hold enough of everything alive.
func (w *World) recoverable(members []*Member) bool {
	ids := numbers(members)
	return !slices.ContainsFunc(w.bodies.Live(), func(i uint64) bool { return !w.bodies.Recoverable(i, ids) })
}

// except is all members that are not gone for good, and not the one.
func (w *World) except(one *Member) []*Member {
	return slices.DeleteFunc(slices.Clone(w.members), func(m *Member) bool { return m.gone || m == one })
}

func numbers(members []*Member) []uint64 {
	ids := make([]uint64, len(members))
	for i, m := range members {
		ids[i] = uint64(m.id)
	}
	return ids
}

// lacks reports whether a member misses bodies that its state refers to.
func (m *Member) lacks() bool {
	for _, ref := range m.machine.bodies {
		if m.body.retention.Missing(ref) {
			return true
		}
	}
	return false
}

// gatherTime is how long making one body whole may take once everything works.
func (s *Settings) gatherTime() time.Duration {
	return 8 * (s.Bodies.Hedge + s.Bodies.Retry + 2*s.DelayMax + s.Tick)
}
