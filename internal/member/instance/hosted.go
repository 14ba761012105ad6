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
	Keyed               bool  // a batch has one instance that may take it
	KeepLogBytes        int64 // of log that is kept for members that catch up
	LargeMessage        int   // from how many bytes on others have to wait for a message, on a slow link
	LargeFor            time.Duration
	Mutant              mutant.Name // old-clock, keep-nothing, weave-give-up-early, weave-cut-committed, weave-depart-any, durable-when-submitted
}

// Hosted is one instance as its member runs it: the core with its [Instance], and all that is
// decided around them from turn to turn. What it asks of the rest of the member goes through
// [Host]. A turn has two halves. Take takes in all that happened. Finish lets in this member's
// proposals and reads, and carries out at once all that follows. Not safe for concurrent use.
type Hosted struct {
	cfg   HostedConfig
	host  Host
	inst  *Instance
	clock member.Clock
	out   Outbox

	progress hostedProgress
	turn     *Happened // what the turn takes in

	upgrades Upgrades // bodies on their way to the disk apart from their entries
	reads    hostedReads
	large    map[protocol.MemberID]time.Duration // when a member was sent a large message
	keep     LogKeeper                           // up to where the log may be cut
	room     time.Duration                       // when a waiting batch may leave; 0 if it does not wait for a time

	merge   hostedMerge
	lead    hostedLead
	retired hostedRetired

	unread    UnreadableEntries
	following MembershipFollower
	search    SnapshotSearch
	departure Departure           // the first instance's
	others    []protocol.MemberID // that the other instances have, as the core was told; not changed
	scratch   []protocol.MemberID // of retain
	looked    time.Duration       // when tend last looked whether all is as it should be
	published time.Duration       // when noteLogs last looked whose logs the membership does not name
	status    *protocol.Status
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
	ended  bool          // its log is given up
}

// NewHosted begins to run an instance.
func NewHosted(cfg HostedConfig, host Host, inst *Instance) *Hosted {
	h := &Hosted{
		cfg: cfg, host: host, inst: inst, clock: member.Clock{Read: host.Now, Mutant: cfg.Mutant},
		keep:  LogKeeper{Bytes: cfg.KeepLogBytes, Mutant: cfg.Mutant},
		reads: hostedReads{groups: map[uint64]*intake.ReadGroup{}}, large: map[protocol.MemberID]time.Duration{}, search: SnapshotSearch{Lonely: host.Now()}, departure: Departure{Mutant: cfg.Mutant},
	}
	h.publish()
	h.progress.given = max(h.status.First, 1) - 1
	h.note()
	h.publishWeave()
	return h
}

// ID is the instance's.
func (h *Hosted) ID() protocol.InstanceID { return h.cfg.Instance }

// Instance is what is run.
func (h *Hosted) Instance() *Instance { return h.inst }

// Now is the time of the step that comes next.
func (h *Hosted) Now() time.Duration { return h.clock.Now() }

// Departure finds out whether the cluster goes on without the member. Only the first instance's
// counts.
func (h *Hosted) Departure() *Departure { return &h.departure }

// Submitted is the last step that was handed to the log.
func (h *Hosted) Submitted() uint64 { return h.progress.submitted }

// Stay says that an operator wants the instance to be led here. That holds until it is not led
// here any more.
func (h *Hosted) Stay() { h.lead.stays = true }

// Step tells the instance that something happened; it is called within a turn.
func (h *Hosted) Step(in protocol.Input) { h.inst.Step(h.clock.Now(), in, &h.out) }

// Take begins a turn with everything that happened.
func (h *Hosted) Take(t *Happened) {
	h.clock.Begin()
	h.turn = t
	h.noteApplied()
	if t.BodyNews {
		h.Step(t.Bodies)
	}
	if t.Durable > h.progress.durable {
		h.progress.durable = t.Durable
		h.Step(protocol.Persisted{Seq: t.Durable})
	}
	h.inst.StepAll(&h.clock, t.Inputs, &h.out)
	for _, job := range t.Jobs {
		job()
	}
	if at := h.inst.WakeAt(); at > 0 && h.clock.Now() >= at {
		h.Step(protocol.Wake{})
	}
	if t.Tick {
		h.tick()
	}
}

// Finish ends a turn. It returns when the next turn is due even if nothing happens; 0: at the next
// tick. An instance that is retired may have ended: see Ended.
func (h *Hosted) Finish() (due time.Duration) {
	h.admit()
	h.flush()
	if h.turn.Tick {
		h.publish()
		if h.first() {
			h.depart()
			h.host.TendState(h.status)
			h.host.Relink(false)
		}
	}
	if h.retired.endsAt > 0 && h.clock.Now() >= h.retired.endsAt {
		h.endRetired()
	}
	return h.due()
}

// due is when the next turn is due, because a batch may leave or the core wants to be woken.
func (h *Hosted) due() time.Duration {
	if at := h.inst.WakeAt(); at > 0 && (h.room == 0 || at < h.room) {
		return at
	}
	return h.room
}

// Ended reports whether the instance was retired and is not needed any more. Nothing is to be told
// to it then.
func (h *Hosted) Ended() bool { return h.retired.ended }

// Retired reports whether the instance is not in force any more.
func (h *Hosted) Retired() bool { return h.retired.endsAt > 0 }

// first reports whether this is the first instance. It does what is to be done once for all
// instances.
func (h *Hosted) first() bool { return h.host.Siblings().IDs()[0] == h.cfg.Instance }

// noteApplied tells the instance how far it is applied. Nothing waits for a retired instance, so
// all of it counts as applied.
func (h *Hosted) noteApplied() {
	if h.turn.Active {
		h.inst.Applied(h.turn.Added, h.turn.Applied)
	} else {
		h.inst.Applied(h.inst.Given(), h.inst.Given())
	}
}

// publish makes known how the instance stands.
func (h *Hosted) publish() {
	st := h.inst.Core().Status()
	h.status = &st
	h.host.Publish(&st)
}

// admit lets in what waits: batches, reads, and what the weaving wants.
func (h *Hosted) admit() {
	h.propose()
	h.read()
	h.weave()
}

// stride is how many batches an instance takes in a row, at most, before another one does. If
// batches are small and many, those of one instance are written and sent together.
const stride = 64

// propose takes this member's batches as long as the instance may take more, and as long as no
// other instance would take them sooner.
func (h *Hosted) propose() {
	timed := h.room > 0
	h.room = 0
	h.note()
	taken := 0
	for bytes, full := h.host.Waiting(); bytes > 0; bytes, full = h.host.Waiting() {
		siblings := h.host.Siblings()
		if o := Preferred(siblings); !h.cfg.Keyed && siblings.IDs()[o] != h.cfg.Instance && (taken == 0 || taken >= stride) {
			if timed || siblings.Load(o).Pending == 0 { // that instance may not know that a batch waits
				siblings.Wake(o)
			}
			return
		}
		now := h.clock.Now()
		ok, wait := h.inst.Room(now, bytes, full)
		if !ok {
			if wait > 0 {
				h.room = now + wait
			}
			return
		}
		b := h.host.TakeBatch()
		if b == nil {
			return // another instance took it
		}
		if b.Empty() {
			b.Settled()
			continue
		}
		h.inst.Propose(now, b, &h.out)
		h.note()
		taken++
	}
}

// Preferred is which of a member's instances should take its next batch.
func Preferred(s Siblings) int {
	n := len(s.IDs())
	if n == 1 {
		return 0
	}
	return Prefer(n, s.Load)
}

// WakeTakers wakes the instance that may take what was just proposed: home, or with 0 the one that should take
// the next batch. In a keyed order that may be any of them.
func WakeTakers(s Siblings, keyed bool, home protocol.InstanceID, wake func(i int)) {
	switch {
	case home != 0:
		wake(slices.Index(s.IDs(), home))
	case keyed:
		for i := range s.IDs() {
			wake(i)
		}
	default:
		wake(Preferred(s))
	}
}

// note publishes how much work of this member's the instance has.
func (h *Hosted) note() {
	leader, _ := h.inst.Leader()
	load := Load{Leads: h.inst.Role() == protocol.Leader, Led: leader != 0, Pending: h.inst.Pending()}
	if tail := h.inst.Tail(); tail != nil {
		load.Round = tail.Round()
	}
	h.host.NoteLoad(load)
}

// flush carries out the outbox until nothing is left. What is finished may let in what waits.
func (h *Hosted) flush() {
	for out := &h.out; !out.Empty() || out.Seq != h.progress.submitted; {
		h.carryOut(out)
		changed := out.Changed
		out.Reset()
		if changed {
			h.publish()
			h.host.Relink(true)
		}
		h.admit()
	}
}

// carryOut sends before it writes, so that the followers and this member's disk work in parallel.
func (h *Hosted) carryOut(out *Outbox) {
	if out.Install != nil { // before the log is cut under the commits that wait
		h.keep.Begin(out.Install.Index, h.turn.AppliedBytes)
		h.host.BodiesInstalling(out.Install.Index)
		h.host.Install(out.Install)
		h.progress.given = out.Install.Index
	}
	if out.Forgot != nil { // before the leader hears of it, because the leader does not tell it again
		h.host.Condemn(out.Forgot)
	}
	if out.Diverged != nil {
		h.host.Fail(out.Diverged)
	}
	h.send(out.Send)
	h.persist(out)
	for _, b := range out.Accepted {
		b.Accept()
	}
	if len(out.Commit) > 0 {
		h.host.BodiesCommitted(out.Commit)
		h.host.Commit(h.inst.Commitment(out))
		h.progress.given = max(h.progress.given, out.Commit[len(out.Commit)-1].Index)
	}
	for _, f := range out.Failed {
		f.Batch.Fail(f.Err)
	}
	h.finishReads(out)
	if len(out.Want) > 0 {
		h.host.Want(out.Want)
	}
	for _, refused := range out.Refused {
		h.host.Refused(refused)
	}
	if out.Suspect != 0 {
		h.notifySiblings(protocol.Suspect{Member: out.Suspect})
	}
	for _, to := range out.Snapshots {
		_, term := h.inst.Leader()
		offer := &member.SnapshotOffer{Instance: h.cfg.Instance, Term: term}
		if st := h.inst.Core().Status(); !st.Apart { // else how far the receiver's log goes does not say what it has
			offer.After = st.First - 1
		}
		h.host.SendSnapshot(to, offer)
	}
}

// notifySiblings gives the other instances an input.
func (h *Hosted) notifySiblings(in protocol.Input) {
	siblings := h.host.Siblings()
	for i, id := range siblings.IDs() {
		if id != h.cfg.Instance {
			siblings.Tell(i, in)
		}
	}
}

func (h *Hosted) persist(out *Outbox) {
	if out.Seq == h.progress.submitted {
		return
	}
	h.progress.submitted = out.Seq
	h.upgrades.Note(out.Persist, out.Seq, h.progress.durable)
	if h.cfg.Mutant == member.MutantDurableEarly {
		h.host.Input(protocol.Persisted{Seq: out.Seq})
	}
	h.host.Submit(out.Persist, out.Seq)
}

// Upgrading reports whether the instance is writing more of a body than was held. Nothing less may
// replace that.
func (h *Hosted) Upgrading(ref protocol.BodyRef) bool {
	return h.upgrades.Writing(ref, h.progress.durable)
}

// SnapshotWritten returns up to which entry the log is to be cut, now that a snapshot is durable: see LogKeeper and
// CutAt; 0: nowhere. bytes is how much was applied up to the snapshot. streaming returns the index of a snapshot that
// is being sent to a member. It is called within a turn.
func (h *Hosted) SnapshotWritten(newest, upTo protocol.Index, bytes int64, harmed protocol.Index, streaming func(protocol.MemberID) protocol.Index) protocol.Index {
	st := h.inst.Core().Status()
	cut := CutAt(h.keep.Snapshot(newest, upTo, bytes, &st, streaming), newest, harmed)
	cut = min(cut, h.progress.given)       // the snapshot may have come from another member, and the core not know of it yet
	cut = min(cut, st.Commit-st.Unwritten) // the rest comes into the log later
	if cut < st.First {
		return 0
	}
	h.Step(protocol.Compact{Index: cut})
	return cut
}

// Withdraw withdraws a command of a batch that the instance has. It is called within a turn.
func (h *Hosted) Withdraw(t intake.Ticket) bool {
	ok, empty := h.inst.withdraw(t)
	if empty {
		t.Batch.Settled()
	}
	return ok
}
