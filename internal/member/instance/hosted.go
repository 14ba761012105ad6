package instance

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
)

// HostedConfig says how a member runs an instance.
type HostedConfig struct {
	Self                protocol.MemberID
	Instance            protocol.InstanceID
	Heartbeat, Election time.Duration
	Leaders             protocol.Leaders
	Keyed               bool // a batch has one instance that may take it
	// Closed: a seal has ended the instance, see [Hosted.Close]. Stands: the instance begins behind a seal, and this
	// member is to be its first leader.
	Closed, Stands bool
	KeepLogBytes   int64 // of log that is kept for members that catch up
	// Mutant is one of old-clock, keep-nothing, weave-give-up-early, weave-cut-committed, weave-depart-any and
	// drain-unheeded; "": none.
	Mutant mutant.Name
}

// Hosted is one instance as its member runs it: the core with its [Instance], and everything that is decided around
// them from turn to turn. A turn has two halves. Take takes in all that happened. Then Next lets in this member's
// proposals and reads, and returns what is to be carried out, until nothing is left. What a driver carries out may let
// in more. Not safe for concurrent use.
type Hosted struct {
	cfg   HostedConfig
	calls Calls
	inst  *Instance
	clock member.Clock
	out   Outbox

	status   *protocol.Status // when it was last published
	progress hostedProgress
	happened *Happened // what the turn takes in
	turn     Turn      // what Next returned
	handed   bool      // turn has what out had
	over     bool      // nothing is left of the turn
	ticked   bool      // a turn had a tick

	upgrades Upgrades // bodies that are written apart from their entries
	reads    hostedReads
	keep     LogKeeper     // up to where the log may be cut
	batchAt  time.Duration // when a waiting batch may leave; 0 if it does not wait for a time

	merge   hostedMerge
	lead    hostedLead
	retired hostedRetired
	seal    hostedSeal
	tended  hostedTended
	quiet   hostedQuiet

	unread    UnreadableEntries
	following MembershipFollower
	search    SnapshotSearch
	missing   protocol.MemberID // of search: a member to be asked; 0: none
	behind    protocol.MemberID // a member that takes part in the instance, which is closed here; 0: none
	departure Departure         // the first instance's
}

// hostedTended is when ticks last did what is done once in a heartbeat.
type hostedTended struct {
	at      time.Duration       // tend
	namedAt time.Duration       // noteLogs
	others  []protocol.MemberID // members of the other instances, as the core was told; not changed
	scratch []protocol.MemberID // of retain
}

// hostedProgress is how far the log and Apply have what the instance wants.
type hostedProgress struct {
	submitted uint64 // the last step that was handed to the log
	durable   uint64 // the last step that the instance knows to be durable; ≤ submitted
	// given is the last entry that was handed to Apply, or for which a snapshot stands that the core has
	// taken over. Up to there the log was handed over too.
	given protocol.Index
}

// hostedReads are the reads that wait for the core.
type hostedReads struct {
	groups map[uint64]*intake.ReadGroup // by context
	last   uint64                       // the context of the last read
}

// hostedMerge is the instance's part in merging the instances into one log.
type hostedMerge struct {
	thread InstanceRounds // as the siblings know it
	risen  uint64         // the count of wants when this one last compared what the siblings want
	wakes  []protocol.InstanceID
}

// hostedLead decides whether the instance should be led by another member.
type hostedLead struct {
	preference LeaderPreference
	stays      bool // an operator wanted it to be led here
}

// hostedRetired is the end of an instance that is retired.
type hostedRetired struct {
	endsAt time.Duration // when the instance may end; 0: it is not retired
	bytes  int64         // what had been applied when it was retired
	waits  bool          // its time is over, and it waits for snapshots that stand for its log
	tickAt time.Duration // when the next tick is heeded, if it waits
	ended  bool          // its log is given up
}

// NewHosted begins to run an instance.
func NewHosted(cfg HostedConfig, calls Calls, inst *Instance) *Hosted {
	h := &Hosted{
		cfg: cfg, calls: calls, inst: inst, clock: member.Clock{Read: calls.Now, Mutant: cfg.Mutant}, over: true,
		keep:  LogKeeper{Bytes: cfg.KeepLogBytes, Mutant: cfg.Mutant},
		reads: hostedReads{groups: map[uint64]*intake.ReadGroup{}}, search: SnapshotSearch{Lonely: calls.Now()},
		departure: Departure{Mutant: cfg.Mutant},
	}
	h.publish()
	h.progress.given = max(h.status.First, 1) - 1
	h.note()
	if cfg.Closed {
		h.close()
	}
	return h
}

// Tune takes in other settings. It is called between two turns.
func (h *Hosted) Tune(t *member.Tuning) {
	h.cfg.Heartbeat, h.cfg.Election, h.cfg.Leaders = t.Heartbeat, t.Election, t.Leaders
	h.inst.cfg.RetryAfter, h.inst.cfg.GiveUp = t.Election, t.GiveUp
}

// Now is the time of the step that comes next.
func (h *Hosted) Now() time.Duration { return h.clock.Now() }

// Departure finds out whether the cluster continues without the member. Only the first instance's
// counts.
func (h *Hosted) Departure() *Departure { return &h.departure }

// Status is how the instance stood when it was last published, first when it began.
func (h *Hosted) Status() *protocol.Status { return h.status }

// Stay says that an operator wants the instance to be led here. That holds until it is not led
// here any more.
func (h *Hosted) Stay() { h.lead.stays = true }

// Step tells the instance that something happened; it is called within a turn.
func (h *Hosted) Step(in protocol.Input) { h.inst.Step(h.clock.Now(), in, &h.out) }

// Take begins a turn with everything that happened.
func (h *Hosted) Take(t *Happened) {
	h.clock.Begin()
	h.happened, h.over = t, false
	first := t.Tick && !h.ticked
	h.ticked = h.ticked || first
	h.noteApplied()
	if t.BodyNews {
		h.Step(t.Bodies)
	}
	if t.Durable > h.progress.durable {
		h.progress.durable = t.Durable
		h.Step(protocol.Persisted{Seq: t.Durable})
	}
	if first {
		h.tick() // before it a core has nothing random, and may drop messages
	}
	if h.cfg.Stands {
		h.cfg.Stands = false
		h.Step(protocol.Stand{})
	}
	if len(t.Inputs) > 0 {
		h.quiet.heard = h.clock.Now()
	}
	h.noteBehind(t.Inputs)
	h.inst.StepAll(&h.clock, t.Inputs, &h.out)
	for _, job := range t.Jobs {
		job()
	}
	if at := h.inst.WakeAt(); at > 0 && h.clock.Now() >= at {
		h.Step(protocol.Wake{})
	}
	if t.Tick && !first && h.heedsTick() {
		h.tick()
	}
}

// Next returns what is to be carried out next, nil if nothing is left of the turn. It is valid until the next call.
// An instance that is retired may have ended then: see Ended.
func (h *Hosted) Next() *Turn {
	if h.over {
		return nil
	}
	h.turn.reset()
	if h.handed {
		h.out.Reset()
		h.handed = false
	}
	h.admit()
	h.turn.AskMissing, h.missing = h.missing, 0
	h.turn.Behind, h.behind = h.behind, 0
	if out := &h.out; !out.Empty() || out.Seq != h.progress.submitted {
		h.handed = true
		h.hand(out)
		return &h.turn
	}
	h.over = true
	if h.end() || h.turn.AskMissing|h.turn.Behind != 0 {
		return &h.turn
	}
	return nil
}

// end ends the turn. It reports whether there is anything to carry out.
func (h *Hosted) end() bool {
	if h.happened.Tick {
		h.publish()
		h.noteQuiet()
		h.turn.Status, h.turn.Merge = h.status, h.MergeStatus()
		if h.first() {
			h.turn.Departed, h.turn.Tend = h.depart(), true
		}
	}
	if h.retired.endsAt > 0 && (h.clock.Now() >= h.retired.endsAt || h.crowds()) {
		h.endRetired()
	}
	h.turn.Closed, h.seal.tell = h.seal.tell, false
	return h.happened.Tick || h.turn.WantSnapshot || h.turn.Cut > 0 || h.turn.Closed
}

// Due is when the next turn is due even if nothing happens, because a batch may leave or the core wants to be woken; 0:
// at the next tick.
func (h *Hosted) Due() time.Duration {
	if h.retired.waits {
		return 0
	}
	if at := h.inst.WakeAt(); at > 0 && (h.batchAt == 0 || at < h.batchAt) {
		return at
	}
	return h.batchAt
}

// Ended reports whether the instance was retired and is not needed any more. Nothing is to be told
// to it then.
func (h *Hosted) Ended() bool { return h.retired.ended }

// Rests reports whether the instance is retired, has stayed long enough, and only waits until snapshots stand for its
// log. That may take long. Until then it answers messages, but an election timeout may pass from tick to tick.
func (h *Hosted) Rests() bool { return h.retired.waits }

// heedsTick reports whether a tick is one for the instance. One that rests heeds at most two in an election timeout.
func (h *Hosted) heedsTick() bool {
	if !h.retired.waits {
		return true
	}
	now := h.clock.Now()
	if now < h.retired.tickAt {
		return false
	}
	h.retired.tickAt = now + h.cfg.Election/2
	return true
}

// first reports whether this is the first instance. It does what is to be done once for all
// instances.
func (h *Hosted) first() bool { return h.calls.Siblings().IDs()[0] == h.cfg.Instance }

// noteApplied tells the instance how far it is applied. Nothing waits for a retired instance, so
// all of it counts as applied.
func (h *Hosted) noteApplied() {
	if h.happened.Active {
		h.inst.Applied(h.happened.Added, h.happened.Applied)
	} else {
		h.inst.Applied(h.inst.Given(), h.inst.Given())
	}
}

// publish notes how the instance stands, to be published.
func (h *Hosted) publish() {
	st := h.inst.Core().Status()
	h.status = &st
}

// admit lets in what waits: batches, reads, and what the merging wants.
func (h *Hosted) admit() {
	h.propose()
	h.read()
	h.mergeRounds()
}

// stride is how many batches an instance takes in a row, at most, before another one does. If
// batches are small and many, those of one instance are written and sent together.
const stride = 64

// propose takes this member's batches as long as the instance may take more, and as long as no
// other instance would take them sooner.
func (h *Hosted) propose() {
	h.batchAt = 0
	h.note()
	taken := 0
	source := h.calls.Source
	for bytes, full, path := source.Waiting(); bytes > 0; bytes, full, path = source.Waiting() {
		siblings := h.calls.Siblings()
		lane := !h.cfg.Keyed && HasPath(siblings, path)
		if lane && !h.first() {
			siblings.Wake(0)
			return
		}
		if o := Preferred(siblings, Large(bytes, full)); !h.cfg.Keyed && !lane && siblings.IDs()[o] != h.cfg.Instance &&
			(taken == 0 || taken >= stride) {
			siblings.Wake(o) // it may not know that a batch waits, or that its time has come
			return
		}
		now := h.clock.Now()
		ok, wait := h.inst.Room(now, bytes, full)
		if !ok {
			if wait > 0 {
				h.batchAt = now + wait
			}
			return
		}
		b := source.TakeBatch()
		if b == nil {
			return // another instance took it
		}
		if b.Empty() {
			b.Settled()
			continue
		}
		h.keepEarlier(b, siblings)
		h.inst.Propose(now, b, &h.out)
		h.note()
		taken++
	}
}

// keepEarlier leaves it open, in a batch that was never proposed, whether this member's earlier incarnations are over,
// if the first instance may owe them something. Its own log has that before the batch. The global log may not.
func (h *Hosted) keepEarlier(b *intake.Batch, s Siblings) {
	if !h.cfg.Keyed && !h.first() && b.Proposed == 0 && s.Status(0).Owes && h.cfg.Mutant != member.MutantReplacesOwed {
		b.Entry.Low = 0
	}
}

// HasPath reports whether the first instance has a path of its own for batches: this member's lane. Other instances
// leave them to it, also while the leader takes them, so that they stay in one order.
func HasPath(s Siblings, path protocol.Path) bool {
	if path == 0 || len(s.IDs()) == 1 {
		return false
	}
	st := s.Status(0)
	return int(path) < len(st.Routes) && (st.Routes[path] != st.Routes[0] || st.Lanes != nil && st.Lanes.ByLeader)
}

// Preferred is which of a member's instances should take its next batch, which is large or not.
func Preferred(s Siblings, large bool) int {
	n := len(s.IDs())
	if n == 1 {
		return 0
	}
	return Prefer(n, large, s.Load)
}

// WakeTakers wakes the instance that may take what was just proposed: home, or with 0 the one that should take
// the next batch, which is large or not. In a keyed order that may be any of them.
func WakeTakers(s Siblings, keyed bool, home protocol.InstanceID, large bool, wake func(i int)) {
	switch {
	case home != 0:
		wake(slices.Index(s.IDs(), home))
	case keyed:
		for i := range s.IDs() {
			wake(i)
		}
	default:
		wake(Preferred(s, large))
	}
}

// note publishes how much work of this member's the instance has.
func (h *Hosted) note() {
	leader, _ := h.inst.Leader()
	load := Load{Leads: h.inst.proposes(), Led: leader != 0, Pending: h.inst.Pending()}
	if tail := h.inst.Tail(); tail != nil {
		load.Round = tail.Round()
	}
	h.calls.Source.NoteLoad(load)
}

// hand moves the outbox into the turn.
func (h *Hosted) hand(out *Outbox) {
	t := &h.turn
	if out.Install != nil {
		t.Install = out.Install
		h.keep.Begin(out.Install.Index, h.happened.AppliedBytes)
		h.progress.given = out.Install.Index
	}
	t.Forgot, t.Stop, t.Send = out.Forgot, out.Stop, out.Send
	if out.Seq != h.progress.submitted {
		h.progress.submitted = out.Seq
		h.upgrades.Note(out.Persist, out.Seq, h.progress.durable)
		t.Persist, t.Seq = out.Persist, out.Seq
	}
	if n := len(out.Commit); n > 0 {
		t.Commit = h.inst.Commitment(out)
		h.progress.given = max(h.progress.given, out.Commit[n-1].Index)
	}
	t.Accepted, t.Failed, t.Want, t.Refused, t.Suspect = out.Accepted, out.Failed, out.Want, out.Refused, out.Suspect
	h.handReads(out)
	for _, to := range out.Snapshots {
		t.Snapshots = append(t.Snapshots, SnapshotRequest{To: to, Offer: h.offer()})
	}
	if out.Changed {
		h.publish()
		t.Status, t.Changed = h.status, true
	}
}

// offer is what the instance wants of a snapshot for another member.
func (h *Hosted) offer() *member.SnapshotOffer {
	_, term := h.inst.Leader()
	offer := &member.SnapshotOffer{Instance: h.cfg.Instance, Term: term}
	if st := h.inst.Core().Status(); !st.Apart { // else how far the receiver's log goes does not say what it has
		offer.After = st.First - 1
	}
	return offer
}

// Upgrading reports whether the instance is writing more of a body than was held. Nothing less may
// replace that.
func (h *Hosted) Upgrading(ref protocol.BodyRef) bool {
	return h.upgrades.Writing(ref, h.progress.durable)
}

// SnapshotWritten returns up to which entry the log is to be cut, now that a snapshot is durable: see LogKeeper and
// CutAt; 0: nowhere. bytes is how much was applied up to the snapshot. streaming returns the index of a snapshot that
// is being sent to a member. It is called within a turn.
func (h *Hosted) SnapshotWritten(newest, upTo protocol.Index, bytes int64, harmed protocol.Index,
	streaming func(protocol.MemberID) protocol.Index) protocol.Index {
	st := h.inst.Core().Status()
	cut := CutAt(h.keep.Snapshot(newest, upTo, bytes, &st, streaming), newest, harmed)
	cut = min(cut, h.progress.given)       // the snapshot may be another member's, and the core not know it yet
	cut = min(cut, st.Commit-st.Unwritten) // the rest comes into the log later
	if cut < st.First {
		return 0
	}
	h.Step(protocol.Compact{Index: cut})
	return cut
}

// Proposed reports whether the instance has a batch that was given to the core, and is not known to be committed.
func (h *Hosted) Proposed(b *intake.Batch) bool {
	return slices.Contains(h.inst.pending, b) && b.Proposed > 0
}

// Withdraw withdraws a command of a batch that the instance has. It is called within a turn.
func (h *Hosted) Withdraw(t intake.Ticket) bool {
	ok, empty := h.inst.withdraw(t)
	if empty {
		t.Batch.Settled()
	}
	return ok
}
