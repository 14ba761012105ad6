package replica

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/wal"
)

// bodies is the part of a member that keeps the large parts of commands: it makes them
// whole, answers other members' questions, restores what is missing or damaged, and
// forgets what nobody needs any more. One goroutine runs the Gatherer, a few answer
// questions from the disk, so that neither holds up replication.
type bodies struct {
	r     *Replica
	store *wal.Bodies
	cache *bodyCache

	// kept has what is known of each instance's bodies, ascending; it and all of it are guarded
	// by kmu. keeper says that the state machine tells what it refers to.
	kmu    sync.Mutex
	kept   []*keptBodies
	keeper bool
	// unsure: the state was damaged when the member started, so nobody knows what it refers to,
	// and nothing is given up before it was replaced. The apply loop's.
	unsure bool

	// What waits for the goroutine, guarded by mu.
	mu      sync.Mutex
	asks    []bodyAsk
	answers []*protocol.Message // MsgFetchResp; answerBytes of them, ≤ bodyInboxBytes
	bytes   int
	down    []protocol.MemberID
	trims   []protocol.BodyRef // whole copies that a row may do for; ≤ maxCensuses
	config  *protocol.Config   // new since the last look
	flights map[protocol.BodyRef]*flight
	closed  bool
	wake    chan struct{}

	// wanted are the bodies on their way to the core, guarded by wmu.
	wmu    sync.Mutex
	wanted map[protocol.BodyRef]bool

	// The goroutine's own.
	gatherer *member.Gatherer
	out      member.GatherOutbox
	waiters  map[protocol.BodyRef][]func(member.Answer)
	filling  int // missing bodies that are being gathered; ≤ maxFilling
	turns    int // of fill
	censuses []*member.Census
	context  uint64

	// questions of other members; more than it holds are dropped, and asked again.
	questions chan *protocol.Message
	readers   chan struct{} // holds a token for each read of this member's own

	count   bodyCounters
	failing atomic.Pointer[member.BodyError] // the last failure to restore a body; nil after a success
}

// keptBodies is which bodies of an instance are alive and missing.
type keptBodies struct {
	instance  protocol.InstanceID
	retention *member.Retention // guarded by bodies.kmu
	changed   atomic.Bool       // the event loop has to look at it
}

type bodyCounters struct {
	fetched, served, corrupt, repaired, trimmed atomic.Uint64
}

// bodyAsk asks for a body; done is called from the goroutine and must not block.
type bodyAsk struct {
	question member.Question
	done     func(member.Answer)
}

// flight is a body that several callers wait for together.
type flight struct {
	done chan struct{}
	body []byte
	err  error
}

const (
	// bodyGatherBytes bounds the bodies that are gathered at once.
	bodyGatherBytes = 64 << 20
	// bodyInboxBytes bounds the fragments that arrived and wait for the gatherer.
	bodyInboxBytes = 128 << 20
	// bodyAsks bounds the questions of this member's own that wait.
	bodyAsks = 1 << 16
	// bodyPatience is how long a body is gathered for, at most.
	bodyPatience = 10 * time.Second
	// bodyReaders is how many bodies are read from this member's disk at once for itself.
	bodyReaders = 8
	// bodyServers answer questions of other members at the same time.
	bodyServers = 2
	// bodyQuestions is how many questions may wait for them.
	bodyQuestions = 1024
	// maxFilling is how many missing bodies are restored at the same time.
	maxFilling = 8
)

func newBodies(r *Replica, store *wal.Bodies, keeper bool) *bodies {
	return &bodies{
		r: r, store: store, cache: newBodyCache(r.opt.BodyCacheBytes), keeper: keeper,
		flights: map[protocol.BodyRef]*flight{}, wanted: map[protocol.BodyRef]bool{}, wake: make(chan struct{}, 1), waiters: map[protocol.BodyRef][]func(member.Answer){},
		gatherer: member.NewGatherer(member.GatherConfig{
			Self: r.opt.Self, Hedge: max(r.opt.Heartbeat/2, time.Millisecond),
			Retry: r.opt.ElectionTimeout, MaxBytes: bodyGatherBytes,
		}),
		questions: make(chan *protocol.Message, bodyQuestions), readers: make(chan struct{}, bodyReaders),
	}
}

// start begins to work. The member's loops run already or will soon.
func (b *bodies) start() {
	for _, l := range b.r.all() {
		b.with(l.kept, func(*member.Retention) {})
	}
	b.r.spawn(b.run)
	for range bodyServers {
		b.r.spawn(b.serve)
	}
}

// host begins to keep an instance's bodies, if that was not begun.
func (b *bodies) host(instance protocol.InstanceID) *keptBodies {
	b.kmu.Lock()
	defer b.kmu.Unlock()
	at, ok := slices.BinarySearchFunc(b.kept, instance, func(k *keptBodies, id protocol.InstanceID) int { return cmp.Compare(k.instance, id) })
	if !ok {
		b.kept = slices.Insert(b.kept, at, &keptBodies{instance: instance, retention: member.NewRetention(instance, b.store, b.keeper)})
	}
	return b.kept[at]
}

// of finds what is kept of an instance; nil if nothing is. kmu is held.
func (b *bodies) of(instance protocol.InstanceID) *keptBodies {
	for _, k := range b.kept {
		if k.instance == instance {
			return k
		}
	}
	return nil
}

// handle takes a message that concerns no core; false: it is not one of those.
func (b *bodies) handle(m *protocol.Message) bool {
	switch m.Type {
	case protocol.MsgFetch:
		select {
		case b.questions <- m:
		default:
			b.r.metrics.dropped.Add(1)
		}
		return true
	case protocol.MsgFetchResp:
		b.mu.Lock()
		if fits := b.bytes+len(m.Blob) <= bodyInboxBytes; fits {
			b.answers = append(b.answers, m)
			b.bytes += len(m.Blob)
		}
		b.mu.Unlock()
		poke(b.wake)
		return true
	}
	return false
}

// ask queues a question. done is not called if an error is returned.
func (b *bodies) ask(q member.Question, done func(member.Answer)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return b.r.stopped()
	case len(b.asks) >= bodyAsks:
		return member.ErrOverloaded
	}
	b.asks = append(b.asks, bodyAsk{q, done})
	poke(b.wake)
	return nil
}

// unreachable says that a link broke.
func (b *bodies) unreachable(id protocol.MemberID) {
	b.mu.Lock()
	if len(b.down) < bodyQuestions {
		b.down = append(b.down, id)
	}
	b.mu.Unlock()
	poke(b.wake)
}

// follow says which members there are now.
func (b *bodies) follow(c *protocol.Config) {
	config := c.Clone()
	b.mu.Lock()
	b.config = &config
	b.mu.Unlock()
	poke(b.wake)
}

// want makes a body whole for the core, before everything else.
func (b *bodies) want(refs []protocol.BodyRef) {
	for _, ref := range refs {
		if !b.begins(ref) {
			continue
		}
		err := b.ask(member.Question{Ref: ref, Until: b.r.now() + bodyPatience, Urgent: true}, func(a member.Answer) {
			b.ends(ref)
			if a.Err != nil {
				b.r.log.Warn("a new leader lacks a body", "index", ref.Index, "err", a.Err)
				return // the core asks again
			}
			if l := b.r.find(ref.Instance); l != nil {
				l.input(protocol.BodyMade{Index: ref.Index, Term: ref.Term, Body: a.Body}, 0)
			}
		})
		if err != nil {
			b.ends(ref)
		}
	}
}

// begins reports whether the core asks for a body that is not on its way to it.
func (b *bodies) begins(ref protocol.BodyRef) bool {
	b.wmu.Lock()
	defer b.wmu.Unlock()
	if b.wanted[ref] {
		return false
	}
	b.wanted[ref] = true
	return true
}

func (b *bodies) ends(ref protocol.BodyRef) {
	b.wmu.Lock()
	defer b.wmu.Unlock()
	delete(b.wanted, ref)
}

// run is the goroutine around the Gatherer.
func (b *bodies) run(ctx context.Context) {
	ticker := time.NewTicker(max(b.r.opt.Heartbeat/4, time.Millisecond))
	defer ticker.Stop()
	defer b.shut()
	for {
		var tick <-chan time.Time
		if b.gatherer.Busy() || b.unfilled() {
			tick = ticker.C
		}
		select {
		case <-b.wake:
		case <-tick:
			b.gatherer.Tick(b.r.now(), &b.out)
		case <-ctx.Done():
			return
		}
		b.turn()
	}
}

func (b *bodies) short() int {
	b.kmu.Lock()
	defer b.kmu.Unlock()
	n := 0
	for _, k := range b.kept {
		n += k.retention.Short()
	}
	return n
}

// unfilled reports whether there is something to restore.
func (b *bodies) unfilled() bool {
	b.kmu.Lock()
	defer b.kmu.Unlock()
	return slices.ContainsFunc(b.kept, func(k *keptBodies) bool { return k.retention.Lacking()+k.retention.Short() > 0 })
}

// obey takes in what the configurations that are applied say about this member's bodies.
func (b *bodies) obey(instances []member.InstanceState) {
	b.kmu.Lock()
	kept := slices.Clone(b.kept)
	b.kmu.Unlock()
	for _, k := range kept {
		config := &instances[0].Config // also for those that are retired
		for i := range instances {
			if instances[i].Instance == k.instance {
				config = &instances[i].Config
			}
		}
		b.kmu.Lock()
		news := k.retention.Obey(config, b.r.opt.Self)
		short := k.retention.Short()
		b.kmu.Unlock()
		if news {
			b.with(k, func(*member.Retention) {})
			b.r.log.Info("which bodies this member holds whole has changed", "instance", k.instance, "to be made whole", short)
		}
	}
}

func (b *bodies) lacking() int {
	b.kmu.Lock()
	defer b.kmu.Unlock()
	n := 0
	for _, k := range b.kept {
		n += k.retention.Lacking()
	}
	return n
}

// turn takes in what happened and carries out what follows from it.
func (b *bodies) turn() {
	b.mu.Lock()
	asks, answers, down, config, trims := b.asks, b.answers, b.down, b.config, b.trims
	b.asks, b.answers, b.down, b.config, b.trims, b.bytes = nil, nil, nil, nil, nil, 0
	b.mu.Unlock()
	now := b.r.now()
	if config != nil {
		b.gatherer.SetMembers(config)
	}
	for _, a := range asks {
		b.begin(now, a)
	}
	for _, m := range answers {
		if m.Context&censusBit != 0 {
			b.counted(m)
		} else {
			b.gatherer.Receive(now, m, &b.out)
		}
	}
	if len(trims) > 0 {
		b.trim(now, trims)
	}
	for _, id := range down {
		b.gatherer.Unreachable(now, id, &b.out)
	}
	b.fill(now)
	b.flush(now)
}

// begin asks the gatherer, with what this member holds itself.
func (b *bodies) begin(now time.Duration, a bodyAsk) {
	q := a.question
	if len(b.waiters[q.Ref]) == 0 && q.Have == nil {
		if body := b.cache.get(q.Ref); body != nil {
			q.Have = &member.Fragment{Form: protocol.FormWhole, Bytes: body}
		} else if have := b.local(q.Ref); have.Form != protocol.FormNone {
			q.Have = &have
		}
	}
	b.waiters[q.Ref] = append(b.waiters[q.Ref], a.done)
	b.gatherer.Ask(now, q, &b.out)
}

// local reads what this member holds of a body. Damage counts as holding nothing, and is
// repaired.
func (b *bodies) local(ref protocol.BodyRef) member.Fragment {
	have, err := member.ReadBody(ref, b.store)
	if err != nil {
		if member.IsDamage(err) {
			b.damaged(ref, err)
		}
		return member.Fragment{}
	}
	return have
}

// leftOut looks into why a body could not be sent to who should hold it: where this member
// holds enough of it, it must be damaged.
func (b *bodies) leftOut(e *protocol.Entry, instance protocol.InstanceID) {
	held, ok := b.store.Find(uint32(instance), uint64(e.Index))
	if form := protocol.Form(held.Form); ok && held.Term == uint64(e.Term) && (form == protocol.FormWhole || form == e.Form) {
		ref := e.Ref(instance)
		b.r.spawn(func(context.Context) { b.local(ref) })
	}
}

// damaged has a body restored whose bytes on disk are not what was written.
func (b *bodies) damaged(ref protocol.BodyRef, err error) {
	b.kmu.Lock()
	k := b.of(ref.Instance)
	b.kmu.Unlock()
	news := false
	if k != nil {
		b.with(k, func(t *member.Retention) { news = t.Lost(ref) })
	}
	if !news {
		return
	}
	b.count.corrupt.Add(1)
	b.r.log.Error("a body on disk is damaged; restoring it from other members", "index", ref.Index, "err", err)
}

// news is what a core must be told of this member's bodies. Its event loop asks when it has
// carried out everything, so that no entry is in between.
func (b *bodies) news(k *keptBodies) (in protocol.Bodies, changed bool) {
	b.kmu.Lock()
	defer b.kmu.Unlock()
	if k != b.kept[0] || len(b.kept) == len(b.r.all()) {
		return k.retention.Input()
	}
	return b.newsOfAll(k)
}

// newsOfAll adds to what the first instance's core is told what is alive of instances that
// are retired. kmu is held.
func (b *bodies) newsOfAll(first *keptBodies) (in protocol.Bodies, changed bool) {
	var rest protocol.Bodies
	for _, k := range b.kept[1:] {
		if b.r.find(k.instance) != nil {
			continue
		}
		in, news := k.retention.Input()
		if news {
			first.retention.Owe()
		}
		rest.Missing += in.Missing
		rest.MaxK, rest.Partial = max(rest.MaxK, in.MaxK), max(rest.Partial, in.Partial)
	}
	in, changed = first.retention.Input()
	in.Missing += rest.Missing
	in.MaxK, in.Partial = max(in.MaxK, rest.MaxK), max(in.Partial, rest.Partial)
	return in, changed
}

// with changes what is known of an instance's bodies, and has its core and the goroutine look
// at it.
func (b *bodies) with(k *keptBodies, f func(*member.Retention)) {
	b.kmu.Lock()
	f(k.retention)
	b.kmu.Unlock()
	k.changed.Store(true)
	if l := b.r.find(k.instance); l != nil {
		poke(l.wake)
	} else if first := b.r.first(); first.kept != k { // it answers for those that are retired
		first.kept.changed.Store(true)
		poke(first.wake)
	}
	poke(b.wake)
}

// flush sends the gatherer's questions and hands out its answers.
func (b *bodies) flush(now time.Duration) {
	for len(b.out.Send) > 0 || len(b.out.Answers) > 0 {
		sends, answers := slices.Clone(b.out.Send), slices.Clone(b.out.Answers)
		b.out.Reset()
		for _, m := range sends {
			if !b.send(m) {
				b.gatherer.Unreachable(now, m.To, &b.out)
			}
		}
		for _, a := range answers {
			b.answered(a)
		}
		b.fill(now)
	}
}

func (b *bodies) answered(a member.Answer) {
	for _, id := range a.Bad {
		b.r.log.Error("a member sent bytes that are not of the body that was asked for", "member", id, "index", a.Ref.Index)
	}
	if a.Err == nil {
		b.count.fetched.Add(1)
	}
	waiting := b.waiters[a.Ref]
	delete(b.waiters, a.Ref)
	for _, done := range waiting {
		done(a)
	}
}

func (b *bodies) send(m *protocol.Message) bool {
	parts, err := b.r.framer.Frame(m)
	return err == nil && b.r.links.Send(uint64(m.To), member.BodyStream+member.StreamOf(m.Instance), parts)
}

// fill begins to restore bodies that are missing or of which more is to be held.
func (b *bodies) fill(now time.Duration) {
	if b.filling >= maxFilling {
		return
	}
	var due []protocol.BodyRef
	b.kmu.Lock()
	for i := range b.kept { // not the same instance first every time
		k := b.kept[(b.turns+i)%len(b.kept)]
		due = append(due, k.retention.Due(now, maxFilling-b.filling-len(due))...)
	}
	b.kmu.Unlock()
	b.turns++
	for _, ref := range due {
		b.filling++
		b.begin(now, bodyAsk{member.Question{Ref: ref, Until: now + bodyPatience}, func(a member.Answer) {
			b.filling--
			b.filled(a)
		}})
	}
}

// filled makes a restored body durable in the form that this member is to hold.
func (b *bodies) filled(a member.Answer) {
	if a.Err != nil {
		var e *member.BodyError
		if errors.As(a.Err, &e) && b.failing.Swap(e) == nil {
			b.r.log.Error("a body that is missing cannot be restored yet", "err", a.Err)
		}
		return
	}
	b.failing.Store(nil)
	config := b.r.apply.config(a.Ref.Instance)
	form, ok := member.RestoreForm(&config, b.r.opt.Self, a.Ref, b.store)
	if !ok {
		return // not a member yet: it is asked for again later
	}
	whole := member.Fragment{Form: protocol.FormWhole, Bytes: a.Body}
	own, err := whole.Cut(a.Ref.K, form)
	if err != nil {
		b.r.log.Error("row of a body cannot be computed", "index", a.Ref.Index, "err", err)
		return
	}
	b.keep(a.Ref, form, own)
}

// keep makes a body durable of which more is to be held, by way of the event loop, which knows
// what it wrote of it meanwhile.
func (b *bodies) keep(ref protocol.BodyRef, form protocol.Form, bytes []byte) {
	b.inLoop(ref, func(upgrading bool) {
		b.kmu.Lock()
		k := b.of(ref.Instance)
		wants, whole := k.retention.Wants(ref), k.retention.Whole(ref)
		less := !k.retention.Missing(ref) && form != protocol.FormWhole
		b.kmu.Unlock()
		if !wants || less || upgrading {
			return
		}
		if whole { // the core has seen to it
			b.with(k, func(t *member.Retention) { t.Stored(ref) })
			return
		}
		b.r.writer.Submit([]wal.Record{member.BodyRecord(ref, form, bytes)}, func(err error) {
			if err != nil {
				b.r.fail(err)
				return
			}
			b.with(k, func(t *member.Retention) { t.Stored(ref) })
			b.count.repaired.Add(1)
		})
	})
}

// inLoop runs f in the event loop of a body's instance. upgrading says that the instance is
// writing more of the body than was held.
func (b *bodies) inLoop(ref protocol.BodyRef, f func(upgrading bool)) {
	if l := b.r.find(ref.Instance); l != nil {
		l.do(func() { f(l.hosted.Upgrading(ref)) })
		return
	}
	f(false)
}

// shut ends the goroutine: nothing more will be answered.
func (b *bodies) shut() {
	b.mu.Lock()
	b.closed = true
	asks := b.asks
	b.asks = nil
	b.mu.Unlock()
	err := b.r.stopped()
	for _, a := range asks {
		a.done(member.Answer{Ref: a.question.Ref, Err: err})
	}
	for ref, waiting := range b.waiters {
		for _, done := range waiting {
			done(member.Answer{Ref: ref, Err: err})
		}
	}
}

// serve answers questions of other members from the disk.
func (b *bodies) serve(ctx context.Context) {
	for {
		select {
		case m := <-b.questions:
			answer, damage := member.AnswerFetch(m, b.r.opt.Self, b.store)
			if damage != nil && member.IsDamage(damage) {
				if held, ok := b.store.Find(uint32(m.Instance), uint64(m.Holdings[0].Index)); ok {
					b.damaged(member.RefOf(&held), damage)
				}
			}
			switch {
			case !answer.Reject && len(answer.Blob) == 0:
				b.answerCensus(answer)
			case b.send(answer) && !answer.Reject:
				b.count.served.Add(1)
			}
		case <-ctx.Done():
			return
		}
	}
}
