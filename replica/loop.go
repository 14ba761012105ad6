package replica

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/wal"
)

// loop is an instance's event loop: one goroutine that feeds the instance and carries
// out what it wants.
type loop struct {
	r     *Replica
	id    protocol.InstanceID
	inst  *member.Instance
	clock member.Clock
	kept  *keptBodies
	out   member.Outbox

	mu     sync.Mutex
	inputs []protocol.Input
	jobs   []func()            // other things to do in the loop
	bytes  int                 // of messages in inputs; counted in Replica.inbox
	reads  *readGroup          // the first loop's: gathers reads not asked for yet; nil if none
	asked  []*member.ReadGroup // groups for which a read point is to be got
	closed bool
	// retired says that the instance is not in force any more.
	retired bool
	wake    chan struct{}

	// The loop's own:
	groups    map[uint64]*member.ReadGroup        // under way, by context
	large     map[protocol.MemberID]time.Duration // when a member was sent a large message
	upgrades  []upgrade                           // bodies on their way to the disk apart from their entries
	context   uint64
	submitted uint64           // last Seq handed to the log
	durable   uint64           // last Seq that the instance was told is durable
	keep      member.LogKeeper // up to where the log may be cut
	room      time.Time        // when a waiting batch may leave; zero if it need not be timed

	thread member.Thread // as the siblings know it
	risen  uint64        // the router's count when it was last looked what they want
	wakes  []protocol.InstanceID
	mover  member.Mover

	unread    member.Unread
	following member.Following
	looked    time.Duration // when it was last looked whether all is as it should be
	published time.Duration // when it was last looked whose logs the membership does not name
	search    member.Search
	gone      time.Duration // when the loop ends, for the instance is retired; 0: it is not

	persisted atomic.Uint64 // last durable Seq; the log's goroutine raises it
	load      atomic.Uint64 // a packed Load, but for its Round
	round     atomic.Uint64
	status    atomic.Pointer[protocol.Status]
	woven     atomic.Pointer[WeaveStatus]
	harmed    atomic.Uint64 // the last index of which the record on disk is damaged; 0: none
	stays     atomic.Bool   // an operator wanted it to be led here
}

// One of any size has room alone, or it would be dropped whenever it is repeated.
func newLoop(r *Replica, id protocol.InstanceID, inst *member.Instance, kept *keptBodies) *loop {
	l := &loop{
		r: r, id: id, inst: inst, clock: member.Clock{Read: r.now}, kept: kept, wake: make(chan struct{}, 1),
		keep:   member.LogKeeper{Bytes: r.opt.KeepLogBytes},
		groups: map[uint64]*member.ReadGroup{}, large: map[protocol.MemberID]time.Duration{}, search: member.Search{Lonely: r.now()},
	}
	l.publish()
	l.note()
	l.woven.Store(l.weaveStatus())
	return l
}

// input queues something that happened. It reports false if the queue is full.
func (l *loop) input(in protocol.Input, bytes int) bool {
	l.mu.Lock()
	if l.closed || bytes > 0 && !l.r.inbox.take(l.bytes, bytes, len(l.r.loops.Load().all)) {
		l.mu.Unlock()
		return false
	}
	l.bytes += bytes
	l.inputs = append(l.inputs, in)
	l.mu.Unlock()
	poke(l.wake)
	return true
}

// takeInputs takes out what waits, for a buffer in its place.
func (l *loop) takeInputs(buf []protocol.Input) (inputs []protocol.Input, jobs []func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	inputs, l.inputs = l.inputs, buf[:0]
	jobs, l.jobs = l.jobs, nil
	l.r.inbox.give(l.bytes)
	l.bytes = 0
	return inputs, jobs
}

// do runs f in the loop, soon.
func (l *loop) do(f func()) {
	l.mu.Lock()
	l.jobs = append(l.jobs, f)
	l.mu.Unlock()
	poke(l.wake)
}

func (l *loop) run() {
	defer l.r.done.Done()
	period := max(l.r.opt.Heartbeat/10, time.Millisecond)
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var inputs []protocol.Input
	for {
		tick := false
		if !l.room.IsZero() {
			timer.Reset(time.Until(l.room))
		}
		select {
		case <-l.wake:
		case <-timer.C:
		case <-ticker.C:
			tick = true
		case <-l.r.stop:
			l.shut()
			return
		}
		var jobs []func()
		inputs, jobs = l.takeInputs(inputs)
		l.turn(inputs, jobs, tick)
		clear(inputs)
		if l.gone > 0 && l.r.now() >= l.gone && l.vanish() {
			return
		}
	}
}

// turn takes in everything that happened, then lets this member's proposals and reads
// in, then carries out what came of it, all at once.
func (l *loop) turn(inputs []protocol.Input, jobs []func(), tick bool) {
	l.clock.Begin()
	l.noteApplied()
	if l.kept.changed.Swap(false) {
		if in, changed := l.r.bodies.news(l.kept); changed {
			l.inst.Step(l.clock.Now(), in, &l.out)
		}
	}
	if seq := l.persisted.Load(); seq > l.durable {
		l.durable = seq
		l.inst.Step(l.clock.Now(), protocol.Persisted{Seq: seq}, &l.out)
	}
	l.inst.StepAll(&l.clock, inputs, &l.out)
	for _, job := range jobs {
		job()
	}
	if tick {
		l.tick()
	}
	l.admit()
	l.flush()
	if tick {
		l.publish()
		if l.first() {
			l.r.depart(l.clock.Now())
		}
		if l.first() && l.r.lingering() {
			l.r.relink(l.clock.Now())
		}
	}
}

// noteApplied tells the instance how far it is applied. Nobody waits for one that is retired.
func (l *loop) noteApplied() {
	if added, applied, ok := l.r.apply.appliedOf(l.id); ok {
		l.inst.Applied(added, applied)
	} else {
		l.inst.Applied(l.inst.Given(), l.inst.Given())
	}
}

// first reports whether this is the first instance's loop, which does what is to be done
// once for all.
func (l *loop) first() bool { return l == l.r.first() }

func (l *loop) tick() {
	l.inst.Step(l.clock.Now(), protocol.Tick{Random: rand.Uint64()}, &l.out)
	l.tend()
	if !l.first() {
		return
	}
	l.noteLogs()
	for _, b := range l.r.proposer.expired(l.clock.Now(), l.r.opt.GiveUp()) {
		l.out.Failed = append(l.out.Failed, member.FailedBatch{Batch: b, Err: b.GivenUp()})
	}
}

// admit lets in what waits: batches, reads, and what the weaving wants.
func (l *loop) admit() {
	l.propose()
	l.read()
	l.weave()
}

// propose takes this member's batches while there is room for them, and while no other
// instance would take them sooner.
func (l *loop) propose() {
	timed := !l.room.IsZero()
	l.room = time.Time{}
	l.note()
	p, taken := l.r.proposer, 0
	for bytes, full := p.waiting(); bytes > 0; bytes, full = p.waiting() {
		if o := l.r.preferred(); o != l && (taken == 0 || taken >= stride) {
			if timed || o.unloaded() { // it may not know
				poke(o.wake)
			}
			return
		}
		now := l.clock.Now()
		ok, wait := l.inst.Room(now, bytes, full)
		if !ok {
			if wait > 0 {
				l.room = time.Now().Add(wait)
			}
			return
		}
		b := p.take()
		if b == nil {
			return // another loop took it
		}
		l.inst.Propose(now, b, &l.out)
		l.note()
		taken++
	}
}

// stride is how many batches an instance takes at once, at most, before another one does: if
// they are small and many, they are written and sent together.
const stride = 64

// flush carries out the outbox until nothing is left: what is finished makes room for
// what waits.
func (l *loop) flush() {
	for out := &l.out; !out.Empty() || out.Seq != l.submitted; {
		l.carryOut(out)
		changed := out.Changed
		out.Reset()
		if changed {
			l.publish()
			l.r.relink(l.clock.Now())
			l.r.changed()
		}
		l.admit()
	}
}

// carryOut sends first, so that the followers and the own disk work in parallel.
func (l *loop) carryOut(out *member.Outbox) {
	if out.Install != nil { // before the log is cut under the commits that wait
		l.keep.Begin(out.Install.Index, l.r.apply.total())
		l.r.bodies.installing(l.kept, out.Install.Index)
		l.r.apply.pushInstall(l.id, out.Install)
	}
	if out.Forgot != nil { // before the leader hears of it, which then tells it no more
		l.r.condemn(out.Forgot)
	}
	l.send(out.Send)
	l.persist(out)
	if len(out.Commit) > 0 {
		l.commit(l.inst.Commitment(out))
	}
	for _, f := range out.Failed {
		f.Batch.Fail(f.Err)
	}
	l.finishReads(out)
	if len(out.Want) > 0 {
		l.r.bodies.want(out.Want)
	}
	for _, refused := range out.Refused {
		l.r.refused(refused)
	}
	if out.Suspect != 0 {
		l.tell(protocol.Suspect{Member: out.Suspect})
	}
	_, term := l.inst.Leader()
	for _, to := range out.Snapshots {
		l.r.askSnapshot(l, to, term)
	}
}

func (l *loop) persist(out *member.Outbox) {
	if out.Seq == l.submitted {
		return
	}
	seq := out.Seq
	l.submitted = seq
	l.noteUpgrades(out.Persist, seq)
	l.r.writer.Submit(out.Persist, func(err error) { l.wrote(seq, err) })
}

// upgrade is a body that the instance has written apart from its entry, with step seq.
type upgrade struct {
	seq  uint64
	body member.BodyKey
}

func (l *loop) noteUpgrades(records []wal.Record, seq uint64) {
	for i := range records {
		if r := &records[i]; r.Kind == wal.KindBody {
			l.upgrades = append(l.upgrades, upgrade{seq, member.BodyKey{Index: protocol.Index(r.Index), Term: protocol.Term(r.Body.Term)}})
		}
	}
	l.upgrades = slices.DeleteFunc(l.upgrades, func(u upgrade) bool { return u.seq <= l.durable })
}

// upgrading reports whether the instance is writing more of a body than was held: nothing
// less may replace that.
func (l *loop) upgrading(ref protocol.BodyRef) bool {
	return slices.ContainsFunc(l.upgrades, func(u upgrade) bool { return u.seq > l.durable && u.body == member.KeyOf(ref) })
}

// wrote is called by the log's goroutine when everything up to seq is durable.
func (l *loop) wrote(seq uint64, err error) {
	if err != nil {
		l.r.fail(err)
		return
	}
	l.persisted.Store(seq)
	poke(l.wake)
}

func (l *loop) commit(c member.Commitment) {
	l.r.metrics.commits.Add(uint64(len(c.Entries)))
	l.r.bodies.committed(l.kept, c.Entries)
	if !l.r.opt.SyncApply {
		l.r.apply.push(member.ApplyItem{Commit: c})
		return
	}
	applied := make(chan struct{}) // replication waits for the state machine
	l.r.apply.push(member.ApplyItem{Commit: c, Applied: func() { close(applied) }})
	select {
	case <-applied:
	case <-l.r.stop:
	}
}

func (l *loop) finishReads(out *member.Outbox) {
	for _, p := range out.Reads {
		if g := l.groups[p.Context]; g != nil {
			delete(l.groups, p.Context)
			l.r.apply.readPoint(g, l.id, p.Index)
		}
	}
	for _, context := range out.FailedReads {
		if g := l.groups[context]; g != nil {
			delete(l.groups, context)
			l.r.apply.failRead(g, member.ErrReadTimeout)
		}
	}
}

// send hands messages to the links: head, then each entry's bytes from where they are.
func (l *loop) send(messages []*protocol.Message) {
	for _, m := range messages {
		if l.aside(m) {
			continue
		}
		parts, err := l.r.frame(m)
		if err != nil && l.unreadable(m, err) {
			continue
		}
		if err != nil || !l.r.links.Send(uint64(m.To), streamOf(m.Instance), parts) {
			l.input(protocol.Unreachable{Member: m.To}, 0)
		}
		l.noteLarge(m.To, parts)
	}
}

// unreadable is about a message of which something cannot be read here. It reports whether
// its receiver is helped otherwise.
func (l *loop) unreadable(m *protocol.Message, err error) bool {
	log := l.r.log.With("instance", l.id, "to", m.To, "err", err)
	var load *member.LoadError
	if !errors.As(err, &load) {
		log.Info("a body to send cannot be read")
		return false
	}
	cursor, _ := l.r.apply.at()
	fault, applied := member.FaultOf(load.Err), cursor.Point(l.id).Index
	if fault.Sick() {
		l.r.harm(l.id, load)
	}
	switch l.unread.Remedy(l.r.now(), l.r.opt.ElectionTimeout, fault, load.Index, applied) {
	case member.RemedySnapshot:
		log.Error("entries to send cannot be read from the log; the member is sent a snapshot instead", "fault", fault)
		l.input(protocol.Unsendable{Member: m.To, Index: load.Index}, 0)
		return true
	case member.RemedyHandOver:
		log.Error("entries to send cannot be read from the log; another member should lead", "fault", fault)
		l.input(protocol.Transfer{}, 0)
	case member.RemedyStop:
		l.r.fail(&member.LostError{Err: err})
	case member.RemedyWait:
		log.Info("entries to send cannot be read from the log", "fault", fault)
	}
	return false
}

const (
	// asideStream and those after it, one for each instance, are for what must not wait behind
	// bodies. Like an instance's own stream each keeps to one of the receiver's addresses.
	asideStream = 1 << 17
	// largeMessage is how many bytes others have to wait for, on a slow link; largeFor is how
	// long after it that is taken into account.
	largeMessage = 256 << 10
	largeFor     = 10 * time.Second
)

func (l *loop) noteLarge(to protocol.MemberID, parts [][]byte) {
	bytes := 0
	for _, p := range parts {
		bytes += len(p)
	}
	if bytes >= largeMessage {
		l.large[to] = l.r.now()
	}
}

// aside sends heartbeats, votes and reads on a stream of their own while bodies on the instance's
// stream may take longer than an election timeout. A heartbeat is sent on both streams. The answer
// to the one on the instance's stream also shows what of that stream has arrived; the other one
// has no Context, so it shows nothing of it.
func (l *loop) aside(m *protocol.Message) (instead bool) {
	if m.Type == protocol.MsgAppend || m.Type == protocol.MsgAppendResp {
		return false // as almost all are
	}
	at, large := l.large[m.To]
	large = large && l.r.now()-at < largeFor
	apart := m
	switch m.Type {
	case protocol.MsgPreVote, protocol.MsgPreVoteResp, protocol.MsgVote, protocol.MsgVoteResp, protocol.MsgTimeoutNow,
		protocol.MsgRead, protocol.MsgReadResp:
		instead = large
	case protocol.MsgHeartbeatResp:
		instead = m.Context == 0 // as it was asked
	case protocol.MsgHeartbeat:
		if large {
			copied := *m
			copied.Context = 0
			apart = &copied
		}
	}
	if apart == m && !instead {
		return false
	}
	parts, err := l.r.frame(apart)
	return err == nil && l.r.links.Send(uint64(m.To), asideStream+streamOf(l.id), parts) && instead
}

// frame lists a message's bytes. Payloads and bodies that are not at hand are read from the
// disk; bodies are cut to what the receiver is to hold.
func (r *Replica) frame(m *protocol.Message) ([][]byte, error) {
	parts := make([][]byte, 1, 3+2*len(m.Entries))
	parts[0] = m.AppendHead(make([]byte, 0, protocol.MessageHeadSize))
	for i := range m.Entries {
		e := &m.Entries[i]
		if e.BodySize > 0 || !e.Applicable() {
			full := *e
			if err := member.MakeResident(m.Instance, &full, full.Index <= m.Commit, r.load, r.bodies.store); err != nil {
				var load *member.LoadError
				if member.IsDamage(err) && !errors.As(err, &load) {
					r.bodies.leftOut(e, m.Instance)
				}
				return nil, err
			}
			if full.Form != e.Form {
				r.bodies.leftOut(e, m.Instance)
			}
			e = &full
		}
		parts = append(parts, e.Head())
		if len(e.Payload) > 0 {
			parts = append(parts, e.Payload)
		}
		if e.BodySize > 0 {
			parts = append(parts, e.AppendBodyHead(make([]byte, 0, protocol.BodyHeadSize)), e.Body)
		}
	}
	if len(m.Holdings) > 0 {
		parts = append(parts, m.AppendHoldings(nil))
	}
	if len(m.Blob) > 0 {
		parts = append(parts, m.Blob)
	}
	return parts, nil
}

// snapshotWritten cuts the log as far as nobody needs it any more; see LogKeeper and CutAt.
func (l *loop) snapshotWritten(meta member.Meta, bytes int64) {
	l.do(func() {
		st, newest := l.inst.Core().Status(), meta.Cursor.Point(l.id).Index
		cut := member.CutAt(l.keep.Snapshot(newest, 0, bytes, &st, l.streaming), newest, protocol.Index(l.harmed.Load()))
		if cut >= st.First {
			l.inst.Step(l.clock.Now(), protocol.Compact{Index: cut}, &l.out)
			l.r.bodies.compacted(l.kept, cut)
			l.r.writer.Compact(uint32(l.id), uint64(cut))
		}
	})
}

// streaming is where a snapshot stands in this instance's log that is on its way to a member; 0
// if none is or the view of it is not taken yet.
func (l *loop) streaming(to protocol.MemberID) protocol.Index {
	l.r.lmu.Lock()
	defer l.r.lmu.Unlock()
	return l.r.streams.At(to, l.id)
}

// publish makes the instance's status visible to others.
func (l *loop) publish() *protocol.Status {
	st := l.inst.Core().Status()
	l.status.Store(&st)
	return &st
}

// shut ends the loop: nothing more will be answered.
func (l *loop) shut() {
	l.mu.Lock()
	l.closed = true
	groups := l.asked
	if l.reads != nil {
		groups = append(groups, &l.reads.ReadGroup)
	}
	l.reads, l.asked = nil, nil
	l.mu.Unlock()
	l.takeInputs(nil)
	err := l.r.stopped()
	for _, g := range groups {
		l.r.apply.failRead(g, err)
	}
	for _, g := range l.groups {
		l.r.apply.failRead(g, err)
	}
	l.inst.Abandon(member.ErrStopped)
	if l.gone > 0 && l.r.ctx.Err() == nil {
		return // only this instance ends
	}
	for _, b := range l.r.proposer.close(err) {
		b.Fail(member.ErrStopped)
	}
}
