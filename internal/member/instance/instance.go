package instance

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// InstanceConfig says how an instance treats its member's own proposals and reads.
type InstanceConfig struct {
	Self     protocol.MemberID
	Instance protocol.InstanceID
	Session  protocol.Session
	// RetryAfter is how long a forwarded proposal or read may go unanswered before it is repeated.
	// GiveUp is how long it is tried at all.
	RetryAfter, GiveUp time.Duration
	// Depth is how many batches may be pending at once; 0: adaptive (see Room).
	Depth int
	// ProposedBytes bounds the batches that are proposed and not answered. The next ones wait until they fit. A single
	// batch may always be proposed. 0: a default.
	ProposedBytes int
	// Merged is what the core was started from, if the instance's log is merged with others into the global log, or can
	// be. Alone: the global log began with one instance, without rounds. nil: its log is the global log forever.
	Merged *protocol.Recovered
	Alone  bool
	// Decided: the log has decided entries only. They may be committed before they are written, and several members may
	// propose: see protocol.Judged.
	Decided bool
	// Backlog is how many entries may be committed and not applied before the instance takes no
	// more in, see [Backlog]. 0: any number.
	Backlog int
	// Codec is what is known of the core's messages.
	Codec  *protocol.Codec
	Mutant mutant.Name // release-before-durable, weave-hasty, withdraw-sent, turned-away
}

// Instance is the pure half of an instance's event loop. It is a core, the messages that wait for
// the disk, and this member's proposals and reads until they are settled. Not safe for concurrent
// use.
type Instance struct {
	cfg    InstanceConfig
	core   protocol.Core
	eff    protocol.Effects
	wakeAt time.Duration
	leader protocol.MemberID
	term   protocol.Term
	role   protocol.Role

	// recorded is the sequence number of the last step that had records. durable is that of the
	// last step that is durable. durable ≤ recorded unless later steps had no records.
	recorded, durable uint64
	// held are messages that wait for the disk, ascending by after; every after > durable.
	held []heldMessage

	// pending are batches that were proposed and are not committed as far as is known here,
	// ascending by sequence number.
	pending []*intake.Batch
	// early is how many of the pending ones are answered.
	early  int
	reads  []pendingRead
	lastAt time.Duration // when a batch was last taken
	// routes are the core's, see protocol.Status.
	routes []protocol.Route
	// crowded are the members for which a batch waits until they have settled others. Those after it
	// for the same member wait too. lots is room for againBatches.
	crowded []protocol.MemberID
	lots    []lot

	backlog backlog

	tail *order.Tail // what the log fills of the global log; nil unless merged
	// told is the furthest slot that any other instance wants, as other members said.
	told order.Slot
	// batchAt is when a batch was last appended here as the leader. skips counts the skips that
	// were proposed here.
	batchAt time.Duration
	skips   uint64
	// skipTo is up to which round this member proposed to skip last, at skippedAt. It may not be in the log yet.
	skipTo    protocol.Round
	skippedAt time.Duration
	stored    func() protocol.Index // the core's Durable
	// behindAt is since when other instances have waited for this one, which another member leads,
	// as far as is known. 0: they do not wait.
	behindAt time.Duration
}

type heldMessage struct {
	after uint64
	msg   *protocol.Message
}

type pendingRead struct {
	protocol.Read
	born, at time.Duration
	refused  bool
}

// NewInstance wraps a core.
func NewInstance(cfg InstanceConfig, core protocol.Core) *Instance {
	cfg.ProposedBytes = cmp.Or(cfg.ProposedBytes, proposedBytes)
	in := &Instance{cfg: cfg, core: core}
	base := max(core.Status().First, 1) - 1
	in.backlog = backlog{given: base, added: base, applied: base, limit: protocol.Index(cfg.Backlog),
		merged: cfg.Merged != nil}
	if rec := cfg.Merged; rec != nil {
		in.tail = order.NewTail(cfg.Instance, &rec.Base, cfg.Alone)
		for i := range rec.Entries {
			in.tail.Append(&rec.Entries[i])
		}
		in.cfg.Merged = nil
	}
	in.stored = func() protocol.Index { return in.core.Status().Durable }
	in.observe()
	return in
}

// Commitment is what is committed according to an outbox.
func (in *Instance) Commitment(out *Outbox) intake.CommittedEntries {
	return intake.CommittedEntries{Instance: in.cfg.Instance, Entries: out.Commit, Own: out.Own, Stored: in.stored}
}

// Core returns the wrapped core.
func (in *Instance) Core() protocol.Core { return in.core }

// Codec is what is known of the core's messages.
func (in *Instance) Codec() *protocol.Codec { return in.cfg.Codec }

// Leader returns the known leader (0: none) and the current term.
func (in *Instance) Leader() (protocol.MemberID, protocol.Term) { return in.leader, in.term }

// Role returns what the member is in this instance.
func (in *Instance) Role() protocol.Role { return in.role }

// Abandon fails all pending batches.
func (in *Instance) Abandon(err error) {
	for _, b := range in.pending {
		b.Fail(err)
	}
}

// Pending returns how many batches are pending: proposed, and not committed as far as is known
// here.
func (in *Instance) Pending() int { return len(in.pending) }

// Step tells the instance what happened and collects in out what follows from it.
func (in *Instance) Step(now time.Duration, input protocol.Input, out *Outbox) {
	in.step(now, input, out)
	in.collect(now, out)
	if _, ok := input.(protocol.Tick); ok {
		in.repeat(now, out)
	}
}

// StepAll is Step for several inputs at once. What follows from all of them needs fewer messages.
func (in *Instance) StepAll(clock *member.Clock, inputs []protocol.Input, out *Outbox) {
	for _, input := range inputs {
		in.step(clock.Now(), input, out)
	}
	in.collect(clock.Now(), out)
}

func (in *Instance) step(now time.Duration, input protocol.Input, out *Outbox) {
	switch input := input.(type) {
	case protocol.Persisted:
		in.release(input.Seq, out)
	case protocol.Unreachable:
		in.cutOff(input.Member)
	case *protocol.Message:
		if want, ok := input.Part.(protocol.Wanted); ok && input.Type == protocol.MsgTail {
			in.noteWanted(order.Slot(want))
			return
		}
		if in.backlog.holdUp(input, in.cfg.Codec.Of(input.Type).Brings) {
			return
		}
	}
	in.stepCore(now, input)
}

// stepCore steps the core, and notes when it wants to be woken.
func (in *Instance) stepCore(now time.Duration, input protocol.Input) {
	in.eff.WakeAt = 0
	in.core.Step(now, input, &in.eff)
	in.wakeAt = in.eff.WakeAt
}

// WakeAt is the instant at which the core wants a Wake; 0: it wants none.
func (in *Instance) WakeAt() time.Duration { return in.wakeAt }

// Propose seals a batch of this member, hands it to the core and keeps it until it is committed or
// given up. The batch has its numbers: see Proposals.Take.
func (in *Instance) Propose(now time.Duration, b *intake.Batch, out *Outbox) {
	b.Seal(in.cfg.Session, b.Entry.ID.Seq, b.Entry.Low)
	in.lastAt = now
	to := in.route(b)
	forwarded := in.forwarded(to)
	in.await(b)
	if to.To != 0 && in.admits(b, to, &forwarded) {
		in.propose(now, out, b)
	}
}

// route says where a batch goes now.
func (in *Instance) route(b *intake.Batch) protocol.Route {
	if int(b.Path) < len(in.routes) {
		return in.routes[b.Path]
	}
	return protocol.Route{To: in.leader, Term: in.term}
}

// await puts a batch among the pending ones. Usually it is the last one. It is not if another
// instance brought it before.
func (in *Instance) await(b *intake.Batch) {
	if b.Answered {
		in.early++
	}
	if n := len(in.pending); n == 0 || in.pending[n-1].Entry.ID.Seq < b.Entry.ID.Seq {
		in.pending = append(in.pending, b)
		return
	}
	at, _ := slices.BinarySearchFunc(in.pending, b.Entry.ID.Seq, bySeq)
	in.pending = slices.Insert(in.pending, at, b)
}

// Read asks for a read index; the answer comes as a ReadIndex with the question's context.
func (in *Instance) Read(now time.Duration, read protocol.Read, out *Outbox) {
	in.reads = append(in.reads, pendingRead{Read: read, born: now, at: now})
	in.Step(now, read, out)
}

// Retire takes out the pending batches when the instance is not active any more. Another instance is to bring them.
func (in *Instance) Retire() (again []*intake.Batch) {
	again, in.pending, in.early = in.pending, nil, 0
	for _, b := range again {
		b.Renew()
	}
	return again
}

// Tail is what the log fills of the global log; nil unless the instance is merged.
func (in *Instance) Tail() *order.Tail { return in.tail }

// Rounds says how the instance stands in the merging, for [WantedRounds].
func (in *Instance) Rounds(now time.Duration) InstanceRounds {
	if in.tail == nil {
		return InstanceRounds{Instance: in.cfg.Instance}
	}
	return InstanceRounds{
		Instance: in.cfg.Instance, Want: in.tail.Want(), Round: in.tail.Round(), Told: in.told,
		Able: in.role == protocol.Leader && !in.skipping(now), Idle: in.idle(now),
	}
}

// skipping reports whether a skip is under way. One that is not in the log after a while is lost.
func (in *Instance) skipping(now time.Duration) bool {
	return in.tail.Skipping() ||
		in.cfg.Decided && in.skipTo > in.tail.Round() && now-in.skippedAt < in.cfg.RetryAfter
}

// idleAfter is for how long an instance has no batch before it skips ahead. An instance that takes
// part in the work would put its next batch far ahead, and all others would have to skip up to
// there too.
const idleAfter = 5 * time.Millisecond

func (in *Instance) idle(now time.Duration) bool {
	return !in.tail.Busy() && (in.batchAt == 0 || now-in.batchAt >= idleAfter)
}

// proposes reports whether this member's batches are proposed by itself.
func (in *Instance) proposes() bool {
	if in.cfg.Decided && len(in.routes) > 0 {
		return in.routes[0].To == in.cfg.Self
	}
	return in.role == protocol.Leader
}

// noteWanted notes which slot another instance wants, as another member knows it.
func (in *Instance) noteWanted(want order.Slot) {
	if in.told.Compare(want) < 0 {
		in.told = want
	}
}

// SkipRounds proposes to skip rounds if this member leads the instance, and other instances wait for it
// or soon would. want is the furthest slot that any other instance wants. There is at most one
// skip that is not committed. The next skip brings what is wanted meanwhile.
func (in *Instance) SkipRounds(now time.Duration, want order.Slot, out *Outbox) {
	if in.tail != nil && in.role == protocol.Leader {
		in.skip(now, want, out)
	}
}

func (in *Instance) skip(now time.Duration, want order.Slot, out *Outbox) {
	if in.skipping(now) {
		return
	}
	if want.Compare(in.told) < 0 {
		want = in.told
	}
	to, ok := order.Skip(in.cfg.Instance, in.tail.Round(), want, in.idle(now))
	if !ok {
		return
	}
	in.skips++
	in.skipTo, in.skippedAt = to, now
	in.stepCore(now, protocol.Propose{Entries: []protocol.Entry{protocol.NewSkip(to)}})
	in.collect(now, out)
}

// Skips counts the skips that were proposed here.
func (in *Instance) Skips() uint64 { return in.skips }

// Remind tells the instance's leader, on another member, that other instances have waited for it
// for some time. want is the furthest slot that any of them wants. Usually that leader knows by
// itself, because it follows the others too. It does not if just that link is broken. Where several members propose,
// one that does skips itself. Remind is called once in a heartbeat.
func (in *Instance) Remind(now, timeout time.Duration, want order.Slot, out *Outbox) {
	if in.tail == nil || in.role == protocol.Leader || in.leader == 0 || in.leader == in.cfg.Self {
		in.behindAt = 0
		return
	}
	if _, behind := order.Skip(in.cfg.Instance, in.tail.Round(), want, false); !behind {
		in.behindAt = 0
		return
	}
	if in.behindAt == 0 {
		in.behindAt = now
	}
	if now-in.behindAt < timeout {
		return
	}
	in.behindAt = now
	if in.cfg.Decided && in.proposes() {
		in.skip(now, want, out)
		return
	}
	out.Send = append(out.Send, &protocol.Message{
		Type: protocol.MsgTail, Instance: in.cfg.Instance, From: in.cfg.Self, To: in.leader, Term: in.term,
		Part: protocol.Wanted(want),
	})
}

// The adaptive depth. While one batch is pending everything else waits and makes the next one bigger (batches are
// expensive, commands are cheap). Where the way to a quorum is long or the disk is slow, waiting would cost. So a batch
// also leaves when the last one left a while ago. The interval was measured. With none, a lone burst over a link of 1.5
// ms waits too long. With a shorter one, closed loops on one machine lose throughput. Batches that are large or full
// gain nothing by waiting; their number and bytes are limited elsewhere too.
//
// A leader that takes the batches of all members gathers them once more. With ISS each member proposes its own batches:
// each is a message to all other members, and all acknowledge it to all. So there the next batch waits longer while the
// disk writes: most other disks are busy then too, and would write it with their next sync at the earliest.
const (
	adaptiveDepth    = 1
	adaptiveMax      = 256
	adaptiveInterval = 250 * time.Microsecond
	writingInterval  = 2 * time.Millisecond
	largeBatch       = 64 << 10
)

// Room reports whether the next batch, of that size in bytes, full or not, should be proposed now. If not, wait says
// after which time to ask again. 0: only when something was answered. No one waits for what is answered early: the core
// bounds its bytes, and for how long it waits for a leader does not count here.
func (in *Instance) Room(now time.Duration, bytes int, full bool) (ok bool, wait time.Duration) {
	n := len(in.pending) - in.early
	if in.backlog.beyond(in.backlog.applied) {
		return false, 0
	}
	if n > 0 && in.unanswered()+bytes > in.cfg.ProposedBytes {
		return false, 0
	}
	if in.cfg.Depth > 0 {
		return n < in.cfg.Depth, 0
	}
	switch {
	case n < adaptiveDepth, (full || bytes >= largeBatch) && n < adaptiveMax:
		return true, 0
	case n >= adaptiveMax:
		return false, 0
	}
	wait = in.lastAt + in.interval() - now
	return wait <= 0, max(wait, 0)
}

// unanswered is the bytes of the pending batches that are not answered.
func (in *Instance) unanswered() (bytes int) {
	for _, b := range in.pending {
		if !b.Answered {
			bytes += b.Size()
		}
	}
	return bytes
}

// interval is the time after which the next batch leaves while others are pending.
func (in *Instance) interval() time.Duration {
	if r := in.routes; len(r) == 1 && r[0].To == in.cfg.Self && in.recorded > in.durable {
		return writingInterval
	}
	return adaptiveInterval
}

// cutOff makes the instance propose the bodies again that were forwarded to a member, because they
// may be lost with the link to it. Other batches are soon repeated anyway.
func (in *Instance) cutOff(from protocol.MemberID) {
	for _, b := range in.pending {
		if b.Entry.BodySize > 0 && b.ProposedTo == from && from != in.cfg.Self {
			b.Refused = true
		}
	}
}

// proposedBytes is the default of ProposedBytes. It fills a link of 1 Gbit/s and 100 ms, and fits
// into a link's queue several times. It is the same for a leader's own batches: otherwise these would fill the queues
// of disk and links, and the clients of other members would wait twice as long.
const proposedBytes = 16 << 20

// forwarded is the bytes of the batches that another member was handed and has not settled.
func (in *Instance) forwarded(to protocol.Route) (bytes int) {
	for _, b := range in.pending {
		if to.To != in.cfg.Self && b.ProposedUnder(to) {
			bytes += b.Size()
		}
	}
	return bytes
}

// lot is how much a member was handed: see forwarded.
type lot struct {
	to    protocol.MemberID
	bytes int
}

// lot returns how much was handed to a member, to be counted on. It is valid until the next call.
func (in *Instance) lot(to protocol.Route) *int {
	i := slices.IndexFunc(in.lots, func(l lot) bool { return l.to == to.To })
	if i < 0 {
		i = len(in.lots)
		in.lots = append(in.lots, lot{to.To, in.forwarded(to)})
	}
	return &in.lots[i].bytes
}

// admits reports whether a batch may be handed over now, and counts it in forwarded.
// Another member gets only so much as may be unsettled at a time. What is more than a link's queue
// takes would be dropped and repeated, again and again. Each repetition would take the place of
// what was never sent.
func (in *Instance) admits(b *intake.Batch, to protocol.Route, forwarded *int) bool {
	if to.To == in.cfg.Self || b.ProposedUnder(to) {
		return true
	}
	crowded := slices.Contains(in.crowded, to.To)
	if !crowded && *forwarded > 0 && *forwarded+b.Size() > in.cfg.ProposedBytes {
		in.crowded, crowded = append(in.crowded, to.To), true
	}
	if !crowded {
		*forwarded += b.Size()
	} else if b.Proposed == 0 {
		b.Reason = protocol.ReasonOverloaded
	}
	return !crowded
}

// propose hands batches to the core in one step.
func (in *Instance) propose(now time.Duration, out *Outbox, batches ...*intake.Batch) {
	p := protocol.Propose{Entries: make([]protocol.Entry, len(batches))}
	for i, b := range batches {
		if b.Proposed == 0 && len(b.Withdrawn) > 0 {
			in.reseal(b)
		}
		p.Entries[i] = b.Entry
		b.Proposed++
		to := in.route(b)
		if b.ProposedUnder(to) {
			b.Repeats++
		} else {
			b.Repeats = 0
		}
		b.ProposedAt, b.ProposedTo, b.ProposedTerm, b.Refused = now, to.To, to.Term, false
		if b.Options != nil {
			if p.Options == nil {
				p.Options = make([]protocol.ProposeOptions, len(batches))
			}
			p.Options[i] = *b.Options
		}
	}
	in.stepCore(now, p)
	// What the core refuses right here went no further. A refusal that comes later may be of
	// another copy, or an old one. Then only time tells whether the proposal took effect.
	for _, r := range in.eff.Reject {
		if at, ok := in.find(r.ID); ok {
			in.pending[at].Proposed--
		}
	}
	in.collect(now, out)
}

// reseal seals a batch that was never proposed without the commands that were withdrawn.
func (in *Instance) reseal(b *intake.Batch) {
	b.DropWithdrawn()
	b.Seal(in.cfg.Session, b.Entry.ID.Seq, b.Entry.Low)
}

func (in *Instance) find(id protocol.ProposalID) (at int, ok bool) {
	at, ok = slices.BinarySearchFunc(in.pending, id.Seq, bySeq)
	return at, ok && id.Session == in.cfg.Session
}

// collect moves the core's effects to the outbox.
func (in *Instance) collect(now time.Duration, out *Outbox) {
	eff := &in.eff
	for i := range eff.Persist {
		out.Persist = append(out.Persist, member.WALRecord(in.cfg.Instance, &eff.Persist[i]))
		in.follow(now, &eff.Persist[i])
	}
	if len(eff.Persist) > 0 {
		in.recorded = eff.Seq
	}
	out.Seq = eff.Seq
	out.Send = append(out.Send, eff.Send...)
	for _, m := range eff.Release {
		if in.recorded <= in.durable || in.cfg.Mutant == member.MutantReleaseEarly {
			out.Send = append(out.Send, m)
		} else {
			in.held = append(in.held, heldMessage{after: in.recorded, msg: m})
		}
	}
	in.accepted(eff.Accepted, out) // first, because those that are committed too do not wait any more
	commits, own := eff.Commit, len(out.Own)
	if base := eff.Install; base != nil {
		in.installed(base, out)
		for len(commits) > 0 && commits[0].Index <= base.Index {
			commits = commits[1:] // the snapshot stands for it
		}
	}
	in.committed(now, commits, out)
	if in.cfg.Mutant == member.MutantHasty {
		in.hasten(out)
	}
	for _, r := range eff.Reads {
		if in.dropRead(r.Context) {
			out.Reads = append(out.Reads, r)
		}
	}
	in.rejected(eff.Reject, out)
	out.Want = append(out.Want, eff.Want...)
	out.Snapshots = append(out.Snapshots, eff.Snapshots...)
	if eff.Forgot != nil {
		out.Forgot = eff.Forgot
	}
	if eff.Diverged != nil {
		out.Stop = eff.Diverged
	}
	if eff.Unusable != nil {
		out.Stop = eff.Unusable
	}
	if eff.Suspect != 0 {
		out.Suspect = eff.Suspect
	}
	changed := eff.Changed
	eff.Reset()
	if changed {
		out.Changed = true
		in.observe()
		in.again(now, out, false)
	} else if len(in.crowded) > 0 && len(out.Own) > own {
		in.againBatches(now, out, false)
	}
}

// hasten is for a mutant. It hands out a skip that was just appended as if it were committed, if
// nothing is missing before it.
func (in *Instance) hasten(out *Outbox) {
	for i := range in.eff.Persist {
		r := &in.eff.Persist[i]
		if r.Kind != protocol.RecordEntry || r.Entry.Kind != protocol.EntrySkip || in.role != protocol.Leader {
			continue
		}
		if last := in.core.Status().Commit; r.Entry.Index == last+1 {
			out.Commit = append(out.Commit, r.Entry)
		}
	}
}

// follow keeps the tail at the log's end.
func (in *Instance) follow(now time.Duration, r *protocol.Record) {
	switch {
	case in.tail == nil:
	case in.cfg.Decided && r.Kind == protocol.RecordCell:
		in.tail.Ahead(&r.Entry)
		in.noteBatch(now, &r.Entry)
	case in.cfg.Decided && r.Kind == protocol.RecordEntry:
		in.decided(now, &r.Entry)
	case r.Kind == protocol.RecordEntry:
		in.tail.Append(&r.Entry)
		if r.Entry.Kind.Commands() && in.role == protocol.Leader {
			in.batchAt = now
		}
	case r.Kind == protocol.RecordBase:
		in.tail.Reset(r.Base)
	}
}

// decided adds a decided entry to the tail, if that does not have it. It comes when it is committed or when it is
// written, whichever is first.
func (in *Instance) decided(now time.Duration, e *protocol.Entry) {
	if e.Index > in.tail.End() {
		in.tail.Append(e)
		in.noteBatch(now, e)
	}
}

func (in *Instance) noteBatch(now time.Duration, e *protocol.Entry) {
	if e.Kind.Commands() {
		in.batchAt = now
	}
}

func (in *Instance) release(seq uint64, out *Outbox) {
	in.durable = max(in.durable, seq)
	n := 0
	for n < len(in.held) && in.held[n].after <= in.durable {
		n++
	}
	for i, h := range in.held[:n] {
		if !in.replaced(h.msg, in.held[i+1:n]) {
			out.Send = append(out.Send, h.msg)
		}
	}
	in.held = slices.Delete(in.held, 0, n)
}

// replaced reports whether one of the later messages makes a message unnecessary.
func (in *Instance) replaced(m *protocol.Message, later []heldMessage) bool {
	codec := in.cfg.Codec
	return codec != nil && codec.Replaces != nil && slices.ContainsFunc(later, func(h heldMessage) bool {
		return h.msg.To == m.To && codec.Replaces(h.msg, m)
	})
}

func (in *Instance) observe() {
	st := in.core.Status()
	in.leader, in.term, in.role, in.routes = st.Leader, st.Term, st.Role, st.Routes
	if in.tail != nil && !in.cfg.Decided {
		in.tail.Cut(st.Last)
	}
}

// installed drops what the same effects committed before. It also forgets which leader has which
// pending batch. A snapshot may stand for some of them, so all are proposed again.
func (in *Instance) installed(base *protocol.Base, out *Outbox) {
	b := *base
	in.backlog.given = b.Index
	out.Install = &b
	out.Commit = nil
	for _, batch := range out.Own {
		in.await(batch)
	}
	out.Own = nil
	for _, batch := range in.pending {
		batch.Refused = true
	}
}

func bySeq(b *intake.Batch, seq uint64) int {
	switch {
	case b.Entry.ID.Seq < seq:
		return -1
	case b.Entry.ID.Seq > seq:
		return 1
	}
	return 0
}

func (in *Instance) committed(now time.Duration, entries []protocol.Entry, out *Outbox) {
	if n := len(entries); n > 0 && in.tail != nil {
		for i := range entries {
			if in.cfg.Decided {
				in.decided(now, &entries[i])
			}
		}
		in.tail.Committed(entries[n-1].Index)
	}
	in.backlog.noteCommitted(entries)
	out.Commit = append(out.Commit, entries...)
	for i := range entries {
		switch e := &entries[i]; e.Kind {
		case protocol.EntryBatch:
			in.committedOwn(e.ID, 0, out)
		case protocol.EntryGroup:
			in.committedGroup(e, out)
		}
	}
}

// committedGroup looks for own batches in a group. If its payload is not at hand they stay pending,
// and are proposed again in time. Then they are found to be repetitions.
func (in *Instance) committedGroup(e *protocol.Entry, out *Outbox) {
	for rest := e.Payload; ; {
		b, next, ok, err := protocol.NextBatch(rest)
		if err != nil || !ok {
			return // the applier says what is wrong
		}
		in.committedOwn(b.ID, e.Index, out)
		rest = next
	}
}

// committedOwn takes a batch out of the pending ones if it is this member's. group is the index of the
// group that has it, 0: none does.
func (in *Instance) committedOwn(id protocol.ProposalID, group protocol.Index, out *Outbox) {
	if at, ok := in.find(id); ok {
		b := in.pending[at]
		b.Group = group
		out.Own = append(out.Own, b)
		in.pending = slices.Delete(in.pending, at, at+1)
		if b.Answered {
			in.early--
		}
	}
}

// accepted notes which batches the core promises to commit. They stay pending until that has
// happened.
func (in *Instance) accepted(ids []protocol.ProposalID, out *Outbox) {
	for _, id := range ids {
		at, ok := in.find(id)
		if !ok || in.pending[at].Mode() != protocol.ModeAccepted || in.pending[at].Answered {
			continue
		}
		in.pending[at].Answered = true
		in.early++
		out.Accepted = append(out.Accepted, in.pending[at])
	}
}

func (in *Instance) rejected(list []protocol.Rejection, out *Outbox) {
	for _, r := range list {
		switch {
		case r.Context == 0:
			in.rejectedBatch(r, out)
		case in.rejectedRead(r.Context):
		default:
			out.Refused = append(out.Refused, r)
		}
	}
}

func (in *Instance) rejectedBatch(r protocol.Rejection, out *Outbox) {
	at, ok := in.find(r.ID)
	if !ok {
		return
	}
	b := in.pending[at]
	b.Refused, b.Reason = true, r.Reason
	if in.passes(r.Reason) || b.Answered {
		return // an answered batch is in the log, or will be; who refuses it does not know that
	}
	var err error = &member.RefusedError{What: "proposal", Reason: r.Reason, Leader: r.Leader}
	if b.Proposed > 0 {
		err = errors.Join(member.ErrMaybeCommitted, err)
	}
	in.pending = slices.Delete(in.pending, at, at+1)
	out.Failed = append(out.Failed, FailedBatch{b, err})
}

// passes reports whether a proposal that was refused for a reason is to be proposed again. A leader that is removed
// refuses what comes from members that stay, until they know the next one, which takes it.
func (in *Instance) passes(r protocol.Reason) bool {
	if r == protocol.ReasonRemoved && in.cfg.Mutant != member.MutantTurnedAway {
		return !in.core.Status().Removed
	}
	return r.Retryable()
}

func (in *Instance) rejectedRead(context uint64) bool {
	for i := range in.reads {
		if in.reads[i].Context == context {
			in.reads[i].refused = true
			return true
		}
	}
	return false
}

func (in *Instance) dropRead(context uint64) bool {
	for i := range in.reads {
		if in.reads[i].Context == context {
			in.reads = slices.Delete(in.reads, i, i+1)
			return true
		}
	}
	return false
}

// repeat gives up what is too old and repeats what was refused or went unanswered.
func (in *Instance) repeat(now time.Duration, out *Outbox) {
	in.expire(now, out)
	in.again(now, out, true)
}

func (in *Instance) expire(now time.Duration, out *Outbox) {
	keep := in.pending[:0]
	for _, b := range in.pending {
		if now-b.Born < in.cfg.GiveUp+b.TravelTime() || b.Answered {
			keep = append(keep, b)
			continue
		}
		out.Failed = append(out.Failed, FailedBatch{b, b.Abandoned()})
	}
	clear(in.pending[len(keep):])
	in.pending = keep
	in.reads = slices.DeleteFunc(in.reads, func(r pendingRead) bool {
		if now-r.born < in.cfg.GiveUp {
			return false
		}
		out.FailedReads = append(out.FailedReads, r.Context)
		return true
	})
}

// again repeats pending batches and reads. After a change of leader it repeats those that another
// leader got. At a tick (late) it also repeats those that were refused or went unanswered.
func (in *Instance) again(now time.Duration, out *Outbox, late bool) {
	in.againBatches(now, out, late)
	if in.leader == 0 {
		return
	}
	var again []protocol.Read
	for i := range in.reads {
		r := &in.reads[i]
		if !late && r.refused || late && (r.refused || now-r.at >= in.cfg.RetryAfter) {
			r.at, r.refused = now, false
			again = append(again, r.Read)
		}
	}
	for _, r := range again {
		in.stepCore(now, r)
		in.collect(now, out)
	}
}

// againBatches repeats batches, in order, as far as they fit.
func (in *Instance) againBatches(now time.Duration, out *Outbox, late bool) {
	var batches []*intake.Batch
	in.crowded, in.lots = in.crowded[:0], in.lots[:0]
	for _, b := range in.pending {
		if to := in.route(b); to.To != 0 && in.due(now, b, to, late) && in.admits(b, to, in.lot(to)) {
			batches = append(batches, b)
		}
	}
	if len(batches) > 0 {
		in.propose(now, out, batches...)
	}
}

func (in *Instance) due(now time.Duration, b *intake.Batch, to protocol.Route, late bool) bool {
	switch {
	case !b.ProposedUnder(to):
		return true
	case !late:
		return false
	case b.Refused && b.Reason == protocol.ReasonOverloaded && to.To != in.cfg.Self:
		return now-b.ProposedAt >= in.cfg.RetryAfter/8 // otherwise its bytes would be sent for nothing many times a second
	case b.Refused, b.Proposed == 0:
		return true
	}
	// A leader that is only slow still has the earlier copy. So asking becomes ever less frequent,
	// and is later where it costs more bytes. This keeps repetition from becoming the load.
	return to.To != in.cfg.Self && now-b.ProposedAt >= (in.cfg.RetryAfter+b.TravelTime())<<min(b.Repeats, 8)
}

// Check verifies the invariants of the instance and its core.
func (in *Instance) Check() error {
	for i, h := range in.held {
		if h.after <= in.durable || i > 0 && in.held[i-1].after > h.after {
			return fmt.Errorf("instance %d: message held after %d while %d is durable", in.cfg.Instance, h.after, in.durable)
		}
	}
	for i := 1; i < len(in.pending); i++ {
		if in.pending[i-1].Entry.ID.Seq >= in.pending[i].Entry.ID.Seq {
			return fmt.Errorf("instance %d: pending batches out of order", in.cfg.Instance)
		}
	}
	early := 0
	for _, b := range in.pending {
		if b.Answered {
			early++
		}
	}
	if early != in.early {
		return fmt.Errorf("instance %d: %d pending batches are answered, not %d", in.cfg.Instance, early, in.early)
	}
	if err := in.checkTail(); err != nil {
		return err
	}
	return in.core.Check()
}

// checkTail verifies that the tail follows the log. Where bodies are coded, a new leader forgets entries that no one
// can make whole. The tail learns of that only with the next entry in the log, and nothing is proposed before it.
func (in *Instance) checkTail() error {
	if in.tail == nil {
		return nil
	}
	st, end := in.core.Status(), in.tail.End()
	follows := end == st.Last || end > st.Last && st.Placement != "copy"
	if in.cfg.Decided {
		follows = end >= st.Commit
	}
	if !follows {
		return fmt.Errorf("instance %d: the log ends at %d, committed up to %d, and its tail at %d", in.cfg.Instance,
			st.Last, st.Commit, end)
	}
	return in.tail.Check()
}

// withdraw withdraws a command of a pending batch. If none is left, the batch is not pending any more.
func (in *Instance) withdraw(t intake.Ticket) (ok, empty bool) {
	at := slices.Index(in.pending, t.Batch) // another instance may have it by now
	if at < 0 || !t.Batch.WithdrawAt(t.At, in.cfg.Mutant) {
		return false, false
	}
	if !t.Batch.Empty() || t.Batch.Proposed > 0 {
		return true, false
	}
	in.pending = slices.Delete(in.pending, at, at+1)
	return true, true
}
