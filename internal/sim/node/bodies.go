package node

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/machine"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

var (
	bodiesReleased      = count.New("bodies_released", "bodies released")
	bodiesNotMadeWhole  = count.New("bodies_not_made_whole", "bodies not made whole")
	bodyMessagesDropped = count.New("questions_and_fragments_without_room", "questions and fragments without room", count.Coded)
)

// BodyDir is the directory of bodies.
const BodyDir = device.Root + "/bodies"

// bodyWork is the state of a running member for bodies: the store on its disk, the body keeper, and what production
// keeps behind locks and in mailboxes.
type bodyWork struct {
	member  *Member
	Store   *wal.Bodies
	kept    *body.Kept
	cache   *body.BodyCache
	inbox   *body.BodyInbox
	access  *body.BodyAccess
	machine *body.Bodies
	awake   bool // a turn of the body keeper is scheduled

	flights   map[protocol.BodyRef][]func(body.Answer) // readers that wait for the same body
	questions int                                      // queued requests of other members
}

// droppedBody is a body that the state machine has not referenced since a position.
type droppedBody struct {
	at  protocol.Position
	ref protocol.BodyRef
}

// openBodies opens the store and creates the body keeper. All instances share one store.
func openBodies(m *Member, r *Running, dir *datadir.Opened) (err error) {
	set, b := &m.Env.Set.Bodies, &r.Body
	b.member, b.Store = m, dir.Bodies
	b.cache = body.NewBodyCache(set.CacheBytes)
	b.inbox = body.NewBodyInbox(body.BodyLimits{Bytes: set.InboxBytes, Asks: set.Asks, Trims: set.HolderCounts})
	b.access = body.NewBodyAccess(body.BodyConfig{
		Self: m.ID, Hedge: set.Hedge, Retry: set.Retry, GatherBytes: set.GatherBytes, Timeout: m.Env.Set.BodyTimeout(),
		Filling: set.Filling, HolderCounts: set.HolderCounts, Trim: func() bool { return set.Scrub > 0 },
		Mutant: m.Env.Set.MutantName(),
	}, b.Store, &bodyWorld{m, r})
	b.machine = body.NewBodies(b.access)
	b.flights = map[protocol.BodyRef][]func(body.Answer){}
	hooks := body.KeptHooks{Changed: b.changed, Wanting: b.wake, Released: b.released}
	if b.kept, err = dir.Kept(hooks); err == nil {
		b.kept.Mutant = m.Env.Set.MutantName()
	}
	return err
}

// changed soon reports to a core which bodies this member holds.
func (b *bodyWork) changed(instance protocol.InstanceID) {
	if !b.member.Up {
		return // the member is only starting
	}
	if s := b.member.Of(instance); s != nil && s.Hosted != nil {
		s.news = true
		s.wake()
	}
}

// released notifies the writer and the judge that a body was released.
func (b *bodyWork) released(instance protocol.InstanceID, key body.BodyKey) {
	b.member.Env.Count(bodiesReleased)
	b.member.Env.Court.Of(instance).Bodies.Release(b.member.Judged(), uint64(key.Index), uint64(key.Term))
	if b.member.Up { // else it is only starting, and its log is not idle yet
		b.member.Writer.Tidy()
	}
}

// voter is a core whose members accept commands before these have a place in the log.
type voter interface {
	// Voted returns the term of the command that the member has accepted in a slot that is not decided here; false: it
	// has accepted none.
	Voted(i protocol.Index) (protocol.Term, bool)
}

// judgeHeld reports the bodies of the instance in the store to the judge. It is called at a start, with the core that
// has recovered.
func (s *MemberInstance) judgeHeld(store *wal.Bodies, core protocol.Core) error {
	if s.Member.Strange() {
		return nil
	}
	if v, ok := core.(voter); ok {
		s.Judges.Bodies.Voted(s.Member.Judged(), func(index uint64) (uint64, bool) {
			term, ok := v.Voted(protocol.Index(index))
			return uint64(term), ok
		})
	}
	return s.Judges.Bodies.Start(s.Member.Judged(), found(s.Member.Disk, store, s.Instance))
}

// found converts an instance's bodies in a store to the judge's types.
func found(d *device.Disk, store *wal.Bodies, instance protocol.InstanceID) (found []check.Body) {
	var indexes []uint64
	store.Each(func(b wal.Body) bool {
		if b.Instance == uint32(instance) {
			indexes = append(indexes, b.Index)
		}
		return true
	})
	d.Healthy(func() {
		for _, i := range indexes {
			full, err := store.Read(uint32(instance), i)
			if err != nil {
				full, _ = store.Find(uint32(instance), i)
			}
			if full.Form != uint8(protocol.FormNone) {
				held := judged(&full)
				held.Unreadable = err != nil
				found = append(found, held)
			}
		}
	})
	return found
}

func judged(b *wal.Body) check.Body {
	return check.Body{Index: b.Index, Term: b.Term, K: b.K, Form: check.Form(b.Form), Size: b.Size, Digest: b.Digest, Bytes: b.Bytes}
}

// wake schedules a turn of the body keeper for its queued work.
func (b *bodyWork) wake() {
	if !b.member.Up || b.awake {
		return
	}
	b.awake = true
	b.member.Later(b.member.Env.hop(), func() { b.turn(false) })
}

func (b *bodyWork) turn(tick bool) {
	b.awake = false
	b.machine.Turn(b.inbox.Take(), tick)
	b.member.Env.Violate(b.member.ID, b.machine.Check())
	b.member.Env.Violate(b.member.ID, b.kept.Check())
}

// tick runs a turn with a tick if the body keeper has work.
func (b *bodyWork) tick() {
	if b.machine.Busy() {
		b.turn(true)
	}
}

// fetched handles requests for bodies and the responses, which cores do not see. It reports false for any other
// message.
func (b *bodyWork) fetched(msg *protocol.Message) bool {
	switch msg.Type {
	case protocol.MsgFetch:
		if b.questions >= b.member.Env.Set.Bodies.Questions {
			b.member.Env.Count(bodyMessagesDropped)
			return true
		}
		b.questions++
		b.member.Later(b.member.Env.hop(), func() {
			b.questions--
			b.access.Serve(msg)
		})
	case protocol.MsgFetchResp:
		if !b.inbox.Answer(msg) {
			b.member.Env.Count(bodyMessagesDropped)
		}
		b.wake()
	default:
		return false
	}
	return true
}

// read fetches a body for a reader. Concurrent readers of the same body share one response.
func (b *bodyWork) read(ref protocol.BodyRef, done func(body []byte, err error)) {
	if body := b.cache.Get(ref); body != nil {
		done(body, nil)
		return
	}
	waiting, open := b.flights[ref]
	b.flights[ref] = append(waiting, func(a body.Answer) { done(a.Body, a.Err) })
	if open {
		return
	}
	b.member.Later(b.member.Env.hop(), func() {
		b.access.Fetch(ref, func(a body.Answer) {
			waiting := b.flights[ref]
			delete(b.flights, ref)
			if a.Err == nil {
				b.cache.Add(ref, a.Body)
			} else {
				b.member.Env.Count(bodiesNotMadeWhole)
				b.member.Env.Tracef("%s   %v", b.member.ID, a.Err)
			}
			for _, land := range waiting {
				land(a)
			}
		})
	})
}

// compacted drops the bodies of entries that an instance's log no longer has.
func (b *bodyWork) compacted(instance protocol.InstanceID, floor protocol.Index) {
	b.kept.Compacted(instance, floor)
	b.member.Later(b.member.Env.hop(), b.kept.Sweep)
}

// dropped records that the state machine does not reference a body from a position on.
func (m *Member) dropped(at protocol.Position, ref protocol.BodyRef) {
	m.Env.Court.Of(ref.Instance).Bodies.Drop(uint64(ref.Index))
	m.drops = append(m.drops, droppedBody{at, ref})
}

// passed records that the state machine was not given a body. Unless it references that body from an earlier
// incarnation, it never will.
func (m *Member) passed(ref protocol.BodyRef) {
	m.Body.kept.Passed(ref)
	if !m.Machines.First.Refers(ref) {
		m.Env.Court.Of(ref.Instance).Bodies.Drop(uint64(ref.Index))
	}
}

// releaseUpTo releases, after a delay, the bodies that were dropped up to the position of a durable snapshot.
func (b *bodyWork) releaseUpTo(position protocol.Position) {
	n := 0
	for n < len(b.member.drops) && b.member.drops[n].at <= position {
		n++
	}
	drops := slices.Clone(b.member.drops[:n])
	b.member.drops = slices.Delete(b.member.drops, 0, n)
	b.member.Later(b.member.Env.Between(0, b.member.Env.Set.Bodies.Release), func() {
		for _, d := range drops {
			b.kept.Release(d.ref)
			b.cache.Drop(d.ref)
		}
	})
}

// readAhead is the number of bodies of a value that are read at once.
const readAhead = 4

// Resolve replaces each token in a value by its body.
func (m *Member) Resolve(text string, done func(text string, err error)) {
	numbers := machine.Tokens(text)
	if len(numbers) == 0 {
		done(text, nil)
		return
	}
	refs := make([]protocol.BodyRef, len(numbers))
	for i, n := range numbers {
		ref, ok := m.Machines.First.Body(n)
		if !ok {
			m.Env.Violate(m.ID, errors.New("a value has a token for a body that the state does not refer to"))
			return
		}
		refs[i] = ref
	}
	m.Body.gatherAll(refs, nil, func(bodies [][]byte, err error) {
		if err == nil {
			text = m.Body.spell(text, numbers, bodies)
		}
		done(text, err)
	})
}

// gatherAll reconstructs bodies, a few at a time. It ends after the first group with a failure: a body that no longer
// exists must not delay others for long.
func (b *bodyWork) gatherAll(refs []protocol.BodyRef, have [][]byte, done func(bodies [][]byte, err error)) {
	if len(have) == len(refs) {
		done(have, nil)
		return
	}
	some := refs[len(have):min(len(refs), len(have)+readAhead)]
	bodies, left, failed := make([][]byte, len(some)), len(some), error(nil)
	for i, ref := range some {
		b.insist(ref, b.member.Env.Now()+b.member.Env.Set.GiveUp, func(body []byte, err error) {
			bodies[i], failed, left = body, errors.Join(failed, err), left-1
			switch {
			case left > 0:
			case failed != nil:
				done(nil, failed)
			default:
				b.gatherAll(refs, append(have, bodies...), done)
			}
		})
	}
}

// insist reads a body. If the member refuses because of its limits, insist retries after a pause.
func (b *bodyWork) insist(ref protocol.BodyRef, until time.Duration, done func(body []byte, err error)) {
	b.read(ref, func(body []byte, err error) {
		if errors.Is(err, member.ErrOverloaded) && b.member.Env.Now() < until {
			b.member.Later(b.member.Env.Between(0, b.member.Env.Set.Heartbeat), func() { b.insist(ref, until, done) })
			return
		}
		done(body, err)
	})
}

func (b *bodyWork) spell(text string, numbers []int, bodies [][]byte) string {
	for i, n := range numbers {
		if want := b.member.Env.History.Ops[n].Body; !slices.Equal(want, bodies[i]) {
			b.member.Env.Violate(b.member.ID, errors.New("C10: a read returns bytes that nobody wrote"))
		}
		text = strings.Replace(text, machine.Token(n), history.Spelled(n, bodies[i]), 1)
	}
	return text
}

// Lacks reports whether a body that the state references is missing on the member.
func (r *Running) Lacks() bool {
	lacks := false
	err := r.Machines.First.LiveBodies(func(ref protocol.BodyRef) { lacks = lacks || r.Body.kept.Wants(ref) })
	return lacks || err != nil
}
