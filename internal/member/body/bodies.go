package body

import (
	"errors"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// BodyWorld is what surrounds the bodies of a member. In production several goroutines call it. No
// function that it is given to run may wait for another one.
type BodyWorld interface {
	Now() time.Duration
	// Send sends a message apart from the streams of the log; false: no link takes it.
	Send(m *protocol.Message) bool
	// Kept, Cache and Inbox run f, which may look at what they name and change it. No one else does meanwhile. After
	// Inbox, Turn is to be called soon.
	Kept(f func(*Kept))
	Cache(f func(*BodyCache))
	Inbox(f func(*BodyInbox))
	// Config is the membership of an instance as applied. For one that is not active it is the cluster's.
	Config(protocol.InstanceID) protocol.Config
	// Memberships are those of the active instances.
	Memberships() []Membership
	// InLoop runs f in the event loop of a body's instance, or at once if that instance is not active. upgrading says
	// that the instance is writing more of the body than was held.
	InLoop(ref protocol.BodyRef, f func(upgrading bool))
	// Submit writes records after those that were submitted before, and calls done when all of
	// them are durable. If that fails the member stops.
	Submit(records []wal.Record, done func())
	// Made gives a core a body that it wanted.
	Made(ref protocol.BodyRef, body []byte)
	// Apart runs f at the same time as everything else that the member does.
	Apart(f func())
	// Report is told what operators, or judges, want to know.
	Report(r BodyReport)
}

// Membership is the membership of an instance: the newest in this member's log, and the one that is applied.
type Membership struct{ Logged, Applied protocol.Config }

// BodyReport says what happened to a body.
type BodyReport struct {
	What BodyEvent
	Ref  protocol.BodyRef
	From protocol.MemberID // of BodyWrong
	Err  error
	News bool // of BodyDamaged: it is missing from now on
}

// BodyEvent is what a BodyReport is about.
type BodyEvent uint8

// What is reported.
const (
	BodyDamaged   BodyEvent = iota // what is held is not what was written
	BodyWrong                      // a member sent bytes of something else
	BodyGathered                   // it was made whole
	BodyUngiven                    // it could not be made whole for the core that wants it
	BodyUnfilled                   // what is missing of it cannot be restored yet
	BodyUnwritten                  // what is to be held of it cannot be computed
)

// BodyConfig sets up Bodies.
type BodyConfig struct {
	Self protocol.MemberID
	// Hedge, Retry and GatherBytes are those of GatherConfig.
	Hedge, Retry time.Duration
	GatherBytes  int64
	// Timeout is how long a body is gathered for, at most.
	Timeout time.Duration
	// Filling is how many missing bodies are restored at the same time. HolderCounts is for how many
	// bodies other members are asked at the same time whether they hold them.
	Filling, HolderCounts int
	// Trim reports whether whole copies are cut to rows where others hold enough. Any goroutine may call it. nil: no.
	Trim   func() bool
	Mutant mutant.Name // code-trim-uncounted, code-trim-by-applied, code-restore-row
}

// Bodies keeps the large parts of a member's commands. It makes them whole, restores what is
// missing or damaged, and cuts what is held to a row where that is enough. There is one for all
// instances of the member, and one goroutine at a time may use it. What it works on comes through
// a BodyInbox. It is a pure rule: same calls, same results.
type Bodies struct {
	*BodyAccess
	gatherer *Gatherer
	out      GatherOutbox
	waiters  map[protocol.BodyRef][]func(Answer)
	wanted   map[protocol.BodyRef]bool // on their way to a core
	filling  int                       // missing bodies that are being gathered; ≤ cfg.Filling
	counts   []*HolderCount            // ≤ max(1, cfg.HolderCounts)
	context  uint64
}

// countBit marks the context of a question about who holds a body. The context of a question for
// its bytes is without it.
const countBit = 1 << 63

// NewBodies returns Bodies that know no members yet.
func NewBodies(a *BodyAccess) *Bodies {
	return &Bodies{
		BodyAccess: a, waiters: map[protocol.BodyRef][]func(Answer){}, wanted: map[protocol.BodyRef]bool{},
		gatherer: NewGatherer(GatherConfig{Self: a.cfg.Self, Hedge: a.cfg.Hedge, Retry: a.cfg.Retry,
			MaxBytes: a.cfg.GatherBytes}),
	}
}

// Tune takes in other settings.
func (b *Bodies) Tune(t *member.Tuning) {
	b.gatherer.cfg.Hedge, b.gatherer.cfg.Retry = t.Hedge, t.Retry
}

// Busy reports whether something waits for time to pass. Then Turn is to be called with a tick now
// and then.
func (b *Bodies) Busy() (busy bool) {
	b.world.Kept(func(k *Kept) { busy = k.Lacking()+k.Short() > 0 })
	return busy || b.gatherer.Busy()
}

// Turn takes in what happened and carries out what follows from it.
func (b *Bodies) Turn(in BodyMail, tick bool) {
	now := b.world.Now()
	if tick {
		b.gatherer.Tick(now, &b.out)
	}
	if in.config != nil {
		b.gatherer.SetMembers(in.config)
	}
	for _, a := range in.asks {
		b.begin(now, a.question, a.done)
	}
	for _, ref := range in.wants {
		b.want(now, ref)
	}
	for _, m := range in.answers {
		if m.Context&countBit != 0 {
			b.counted(m)
		} else {
			b.gatherer.Receive(now, m, &b.out)
		}
	}
	if len(in.trims) > 0 {
		b.trim(now, in.trims)
	}
	for _, id := range in.down {
		b.gatherer.Unreachable(now, id, &b.out)
	}
	b.fill(now)
	b.flush(now)
}

// begin asks the gatherer for a body, and gives it what this member holds itself.
func (b *Bodies) begin(now time.Duration, q GatherRequest, done func(Answer)) {
	if len(b.waiters[q.Ref]) == 0 && q.Have == nil {
		var body []byte
		if b.world.Cache(func(c *BodyCache) { body = c.Get(q.Ref) }); body != nil {
			q.Have = &Fragment{Form: protocol.FormWhole, Bytes: body}
		} else if have := b.Local(q.Ref); have.Form != protocol.FormNone {
			q.Have = &have
		}
	}
	b.waiters[q.Ref] = append(b.waiters[q.Ref], done)
	b.gatherer.Ask(now, q, &b.out)
}

// want makes a body whole for a core, before everything else. If that fails the core asks again.
func (b *Bodies) want(now time.Duration, ref protocol.BodyRef) {
	if b.wanted[ref] {
		return
	}
	b.wanted[ref] = true
	b.begin(now, GatherRequest{Ref: ref, Until: now + b.cfg.Timeout, Urgency: ToLead}, func(a Answer) {
		delete(b.wanted, ref)
		if a.Err != nil {
			b.world.Report(BodyReport{What: BodyUngiven, Ref: ref, Err: a.Err})
			return
		}
		b.world.Made(ref, a.Body)
	})
}

// flush sends the gatherer's questions and hands out its answers.
func (b *Bodies) flush(now time.Duration) {
	for len(b.out.Send) > 0 || len(b.out.Answers) > 0 {
		sends, answers := slices.Clone(b.out.Send), slices.Clone(b.out.Answers)
		b.out.Reset()
		for _, m := range sends {
			if !b.world.Send(m) {
				b.gatherer.Unreachable(now, m.To, &b.out)
			}
		}
		for _, a := range answers {
			b.answered(a)
		}
		b.fill(now)
	}
}

func (b *Bodies) answered(a Answer) {
	for _, id := range a.Bad {
		b.world.Report(BodyReport{What: BodyWrong, Ref: a.Ref, From: id})
	}
	if a.Err == nil {
		b.world.Report(BodyReport{What: BodyGathered, Ref: a.Ref})
		b.world.Kept(func(k *Kept) { k.Count.Fetched++ })
	}
	waiting := b.waiters[a.Ref]
	delete(b.waiters, a.Ref)
	for _, done := range waiting {
		done(a)
	}
}

// fill begins to restore bodies that are missing or of which more is to be held.
func (b *Bodies) fill(now time.Duration) {
	if b.filling >= b.cfg.Filling {
		return
	}
	var due []protocol.BodyRef
	b.world.Kept(func(k *Kept) { due = k.Due(now, b.cfg.Filling-b.filling) })
	for _, ref := range due {
		b.filling++
		b.begin(now, GatherRequest{Ref: ref, Until: now + b.cfg.Timeout}, func(a Answer) {
			b.filling--
			b.filled(a)
		})
	}
}

// filled makes a restored body durable in the form that this member is to hold.
func (b *Bodies) filled(a Answer) {
	first := false
	b.world.Kept(func(k *Kept) { first = k.attempted(a.Ref, a.Err) })
	if a.Err != nil {
		if first {
			b.world.Report(BodyReport{What: BodyUnfilled, Ref: a.Ref, Err: a.Err})
		}
		return
	}
	config := b.world.Config(a.Ref.Instance)
	form, ok := RestoreForm(&config, b.cfg.Self, a.Ref, b.store)
	if b.cfg.Mutant == member.MutantRestoreRow {
		form, ok = OwnForm(&config, b.cfg.Self, a.Ref.K)
	}
	if !ok {
		return // this is not a member yet: the body is asked for again later
	}
	whole := Fragment{Form: protocol.FormWhole, Bytes: a.Body}
	own, err := whole.Cut(a.Ref.K, form)
	if err != nil {
		b.world.Report(BodyReport{What: BodyUnwritten, Ref: a.Ref, Err: err})
		return
	}
	b.world.InLoop(a.Ref, func(upgrading bool) {
		may := false
		if b.world.Kept(func(k *Kept) { may = k.Restore(a.Ref, form, upgrading) }); may {
			b.world.Submit([]wal.Record{member.BodyRecord(a.Ref, form, own)}, func() {
				b.world.Kept(func(k *Kept) { k.Restored(a.Ref) })
			})
		}
	})
}

// mayTrim reports whether this member knows what it has to hold whole: the newest membership in each of
// its logs is applied. A start begins with the memberships of a snapshot, which may be from before
// the one that has this member hold bodies whole. The log has that one, and others count on it.
func (b *Bodies) mayTrim() bool {
	behind := func(m Membership) bool { return !m.Logged.Equal(&m.Applied) }
	return b.cfg.Mutant == member.MutantTrimByApplied || !slices.ContainsFunc(b.world.Memberships(), behind)
}

// trim asks who else holds these bodies. It gives up questions that are too old, and the oldest
// ones when there would be too many.
func (b *Bodies) trim(now time.Duration, refs []protocol.BodyRef) {
	if !b.mayTrim() {
		return // the next scrub finds them again
	}
	for _, ref := range refs {
		for len(b.counts) > 0 && (b.counts[0].Until <= now || len(b.counts) >= b.cfg.HolderCounts) {
			b.counts = b.counts[1:]
		}
		config := b.world.Config(ref.Instance)
		b.context++
		n := NewHolderCount(ref, b.context|countBit, now+b.cfg.Timeout, &config, b.cfg.Self)
		if n == nil {
			continue
		}
		n.Mutant = b.cfg.Mutant
		b.counts = append(b.counts, n)
		for _, m := range n.Questions() {
			b.world.Send(m)
		}
	}
}

// counted takes an answer to trim's questions. When enough members hold a body, the whole copy
// becomes a row.
func (b *Bodies) counted(m *protocol.Message) {
	for i, n := range b.counts {
		if n.Receive(m); !n.Enough() {
			continue
		}
		b.counts = slices.Delete(slices.Clone(b.counts), i, i+1)
		have := b.Local(n.Ref)
		if own, err := have.Cut(n.Ref.K, n.Own); err == nil && have.Form == protocol.FormWhole && own != nil {
			b.replace(n.Ref, n.Own, own)
		}
		return
	}
}

// replace makes a row durable in place of the whole.
func (b *Bodies) replace(ref protocol.BodyRef, form protocol.Form, row []byte) {
	b.world.InLoop(ref, func(upgrading bool) {
		may := false
		upgrading = upgrading || !b.mayTrim()
		if b.world.Kept(func(k *Kept) { may = k.Trim(ref, upgrading) }); may {
			b.world.Submit([]wal.Record{member.BodyRecord(ref, form, row)}, func() {
				b.world.Kept(func(k *Kept) { k.Trimmed(ref) })
			})
		}
	})
}

// Close answers all callers with an error. Nothing more will be answered.
func (b *Bodies) Close(in BodyMail, err error) {
	for _, a := range in.asks {
		a.done(Answer{Ref: a.question.Ref, Err: err})
	}
	for ref, waiting := range b.waiters { // any order: nothing follows from the answers
		for _, done := range waiting {
			done(Answer{Ref: ref, Err: err})
		}
	}
	clear(b.waiters)
}

// Check verifies the invariants.
func (b *Bodies) Check() error {
	if b.filling < 0 || b.filling > b.cfg.Filling || len(b.counts) > max(1, b.cfg.HolderCounts) {
		return errors.New("bodies: more is restored or counted at once than is allowed")
	}
	return b.gatherer.Check()
}
