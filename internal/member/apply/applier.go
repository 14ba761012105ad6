package apply

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// Applier is the pure half of the apply loop. It merges what the instances commit, lets each
// proposal take effect at most once, runs the state machine and hands out results. Not safe for
// concurrent use.
type Applier struct {
	order    order.Order
	sessions *Sessions
	sm       member.StateMachine
	load     member.Loader
	// Instances are the active ones, in their order. There are as many as the cursor has points.
	Instances []InstanceState
	session   protocol.Session
	derive    member.Derive

	// skip is the position up to which a state machine on disk had applied before this incarnation. Commands up to it
	// only update the sessions.
	skip protocol.Position
	// brought is the position of the state that was found at the start; 0: another state took its place.
	brought protocol.Position
	// Within: that state is no further than the end of the log as it was found, though perhaps further than what is
	// known to be decided. Then other members may get it: this member might be the only one that can give them a state,
	// without which nothing is decided.
	Within bool
	// last is the position of the last command that the state machine was given; ≥ skip. In a keyed
	// order both are 0: each group has positions of its own.
	last protocol.Position
	// stuck says that an entry's payload could not be loaded, or that the state is damaged. The
	// state is not what the order says then, so nothing is applied until a snapshot is installed.
	stuck bool

	// later is what instances committed that begin after the cursor, in the order in which it came.
	// Their ids are above those of all that were ever active at the cursor.
	later []intake.CommittedEntries

	placed []order.Placed
	group  []protocol.Entry // the batches of the group that is being applied
	run    commandRun
	// groups is the state machine if the order is keyed; else nil.
	groups *Groups
	// Changes is the number of configuration entries and reshapes that were applied.
	Changes uint64
	// passed are the memberships that were applied and that no one was told of yet. lead is the first instance's last
	// entry that was applied in this incarnation.
	passed []memberships
	lead   order.Point
	// Given is called with the body of each command that the state machine is about to be given. Passed is called with
	// the body of a command that it is not given, usually because the command was applied before. nil: no one wants to
	// know.
	Given, Passed func(protocol.BodyRef)
	// Begins and Ends are called with each batch of this member before the state machine is given commands of it, and
	// when it has returned. A large batch is given in parts. nil: no one wants to know.
	Begins, Ends func(*intake.Batch)
	// Again is called with each batch of this member whose instance was retired before this member
	// saw it applied. Perhaps it took effect, behind a snapshot. It is to be proposed again, with
	// the same numbers. nil: such batches fail.
	Again func(*intake.Batch)
	// Malformed is called with each batch that is passed over because it is not what it says it is; nil: no one wants
	// to know.
	Malformed func(protocol.InstanceID, protocol.Index, error)
	// mutant is no-sessions, weave-session-of-instance, keyed-whole-snapshot, forget-sessions, forget-sections,
	// group-as-one, weave-mix, any-state, tokens-unchecked or state-unchecked.
	mutant mutant.Name
}

// commandRun is the commands that the state machine is given at once, and whose results they are.
type commandRun struct {
	commands []member.Command
	cost     int // of commands, see applyBytes
	results  []resultSpan
	of       protocol.InstanceID // the group of keys of all of them, if the order is keyed
}

// InstanceState is what the applier knows of an instance.
type InstanceState struct {
	Instance protocol.InstanceID
	Config   protocol.Config // as of the cursor
	// derived is what the core derives from its log, as of what is applied; nil: it derives nothing.
	derived protocol.Derived
	// apart says that the log has gone on from where it met those of other members: see protocol.Meeting.
	apart bool
	// waiting is how many entries with something to apply wait in the order. Those that Install
	// left there do not count.
	waiting int
	// resident is how many payload bytes wait in the order. Those that Install left there do not
	// count.
	resident int
	// own[head:] are this member's committed batches whose entries were not applied yet, in
	// the order in which they were committed.
	own  []ownBatch
	head int
}

type ownBatch struct {
	index protocol.Index
	batch *intake.Batch
}

// removeOwn removes and returns the waiting batch with a number, usually the first.
func (in *InstanceState) removeOwn(seq uint64) *intake.Batch {
	for i := in.head; i < len(in.own); i++ {
		b := in.own[i].batch
		if b.Entry.ID.Seq != seq {
			continue
		}
		if i > in.head {
			in.own = slices.Delete(in.own, i, i+1)
			return b
		}
		in.own[i] = ownBatch{}
		if in.head++; in.head == len(in.own) {
			in.own, in.head = in.own[:0], 0
		}
		return b
	}
	return nil
}

// settle takes out all waiting batches up to an index, and calls tell with each of them.
func (in *InstanceState) settle(upTo protocol.Index, tell func(*intake.Batch)) {
	keep := in.own[:0]
	for _, o := range in.own[in.head:] {
		if o.index <= upTo {
			tell(o.batch)
		} else {
			keep = append(keep, o)
		}
	}
	clear(in.own[len(keep):])
	in.own, in.head = keep, 0
}

// resultSpan stands for count commands of a batch, beginning with the one numbered from. Their
// results stand in commands[at:].
type resultSpan struct {
	batch           *intake.Batch
	from, at, count int
}

// applyBytes is how much the state machine is handed in one call: commands, with callOverhead for each, which is for
// results and waiters, until there is so much. A call gets all that waits if it is less. So a state machine for which a
// call is expensive, because it syncs its disk, gets few of them, and what is handed over stays in the processor's
// cache.
const (
	applyBytes   = 256 << 10
	callOverhead = 240
)

// Machine returns the state machine.
func (a *Applier) Machine() member.StateMachine { return a.sm }

// NewApplier returns an applier that continues after what meta describes.
func NewApplier(sm member.StateMachine, meta member.Meta, session protocol.Session, skip protocol.Position,
	load member.Loader) *Applier {
	a := &Applier{
		order: order.New(meta.Cursor), sessions: NewSessions(meta.Sessions), sm: sm, load: load,
		session: session, skip: skip, brought: skip, last: max(skip, meta.Command),
	}
	if meta.Cursor.Keyed {
		a.groups = sm.(*Groups)
	}
	a.configure(&meta)
	return a
}

// configure takes the memberships from a snapshot.
func (a *Applier) configure(meta *member.Meta) {
	old := a.Instances
	a.Instances = nil
	for _, p := range meta.Cursor.Points {
		base := meta.Base(p.Instance)
		in := InstanceState{Instance: p.Instance, Config: base.Config.Clone()}
		for i := range old {
			if old[i].Instance == p.Instance {
				in.own, in.head, in.derived = old[i].own, old[i].head, old[i].derived
			}
		}
		a.Instances = append(a.Instances, in)
	}
}

// Apply applies committed entries. An error is final: the state machine's disk failed, or the log
// is not what was written. There is one exception: a snapshot that waits to be installed has cut
// the log. Until it is installed Apply only collects.
func (a *Applier) Apply(c intake.CommittedEntries) error {
	a.collect(&c)
	if a.stuck {
		return nil
	}
	err := a.advance()
	if err != nil && member.Damaged(a.sm) != nil {
		a.Halt()
		return nil
	}
	return err
}

// Halt says that the state is not what was applied. Nothing is applied until a snapshot is
// installed. That snapshot need not be ahead.
func (a *Applier) Halt() {
	a.failPlaced(member.ErrResultUnknown)
	a.stuck = true
}

// advance applies what the order gives out now.
func (a *Applier) advance() error {
	for more := true; more; more = a.seal() || a.begun() {
		a.placed = a.order.Next(a.placed[:0])
		for i := range a.placed {
			if err := a.place(&a.placed[i]); err != nil {
				return err
			}
		}
		clear(a.placed)
	}
	return a.flush()
}

// seal decides whether a seal counts at whose place the order stands. It reports whether the order stood at one.
func (a *Applier) seal() bool {
	s := a.order.Sealing()
	if s == nil {
		return false
	}
	if sealed := a.order.Seal(verdict(&s.Seal, a.Configs(), a.mutant)); sealed != nil {
		if a.reshape(sealed.Plan); a.mutant == member.MutantSealsForget {
			a.sessions = NewSessions(nil)
		}
		a.passed = append(a.passed, memberships{configs: a.Configs(), lead: a.lead})
	}
	return true
}

// verdict reports whether a seal counts where the active instances have these memberships.
func verdict(s *protocol.Seal, configs []protocol.Config, m mutant.Name) bool {
	switch m {
	case member.MutantFirstMembers:
		configs = configs[:1]
	case member.MutantAnyVersion:
		any := *s
		any.Profile.Version = configs[0].Profile.Version + 1
		s = &any
	}
	return s.Counts(configs)
}

// begun collects what was committed by instances that have begun by now. It reports whether there was
// anything.
func (a *Applier) begun() (some bool) {
	if len(a.later) == 0 {
		return false
	}
	waiting, at := a.later, a.order.Cursor()
	a.later = nil
	for i := range waiting {
		if c := &waiting[i]; at.Expects(c.Instance) {
			a.later = append(a.later, *c)
		} else {
			a.collect(c)
			some = true
		}
	}
	return some
}

// Stuck reports whether Apply waits for a snapshot. What is applied is then not what the cursor
// says.
func (a *Applier) Stuck() bool { return a.stuck }

// Resident is how many payload bytes wait in the order.
func (a *Applier) Resident() (bytes int) {
	for i := range a.Instances {
		bytes += a.Instances[i].resident
	}
	for _, c := range a.later {
		for i := range c.Entries {
			bytes += len(c.Entries[i].Payload)
		}
	}
	return bytes
}

// collect hands what was committed to the order. The order passes over entries for which a
// snapshot stands, and those of a retired instance, for which nothing stands. An instance may have begun
// at a place to which the order has not come here, because nothing is applied any more until there is
// another state. Then what it commits waits.
func (a *Applier) collect(c *intake.CommittedEntries) {
	added, in := a.order.Added(c.Instance), a.Of(c.Instance)
	if in == nil && a.ahead(c.Instance) {
		a.later = append(a.later, *c)
		return
	}
	at := 0
	for _, b := range c.Own {
		for at+1 < len(c.Entries) && !b.CommittedIn(&c.Entries[at]) {
			at++
		}
		switch index := c.Entries[at].Index; {
		case in == nil:
			a.again(b)
		case index <= added:
			b.Fail(member.ErrResultUnknown)
		default:
			in.own = append(in.own, ownBatch{index, b})
		}
	}
	for i := range c.Entries {
		e := &c.Entries[i]
		if in == nil || e.Index <= added {
			continue
		}
		in.resident += len(e.Payload)
		switch e.Kind {
		case protocol.EntryBatch, protocol.EntryGroup, protocol.EntryConfig, protocol.EntryLane, protocol.EntryGeneration,
			protocol.EntryEmpty:
			in.waiting++
		}
	}
	a.order.Add(c.Instance, c.Entries)
}

// ahead reports whether an instance begins at a place to which the state machine has not come.
func (a *Applier) ahead(instance protocol.InstanceID) bool {
	at := a.order.Cursor()
	return at.Expects(instance)
}

// Of finds what is known of an instance; nil if it is not active.
func (a *Applier) Of(instance protocol.InstanceID) *InstanceState {
	for i := range a.Instances {
		if a.Instances[i].Instance == instance {
			return &a.Instances[i]
		}
	}
	return nil
}

// Meeting tells where an instance's log meets those of other members; nil if it is everywhere the same.
func (a *Applier) Meeting(instance protocol.InstanceID) protocol.Meeting {
	if in := a.Of(instance); in != nil {
		m, _ := in.derived.(protocol.Meeting)
		return m
	}
	return nil
}

// Apart reports whether no other member need come to the state that this one has now.
func (a *Applier) Apart() bool {
	return slices.ContainsFunc(a.Instances, func(in InstanceState) bool { return in.apart })
}

// Waiting is how many entries of an instance that have something to apply wait in the order.
func (a *Applier) Waiting(instance protocol.InstanceID) int {
	if in := a.Of(instance); in != nil {
		return in.waiting
	}
	return 0
}

// again has a batch proposed through another instance.
func (a *Applier) again(b *intake.Batch) {
	if a.Again == nil {
		b.Fail(member.ErrMaybeCommitted)
		return
	}
	b.Renew()
	a.Again(b)
}

func (a *Applier) place(p *order.Placed) error {
	e := &p.Entry
	in := a.Of(p.Instance)
	if in != nil {
		in.resident = max(0, in.resident-len(e.Payload))
		in.waiting = max(0, in.waiting-1)
	}
	if p.Instance == a.Instances[0].Instance {
		a.lead = order.Point{Instance: p.Instance, Index: e.Index}
	}
	if !e.Applicable() {
		if err := a.load(p.Instance, e); err != nil {
			a.stuck = true
			return member.LostIfUnreadable(&member.LoadError{Instance: p.Instance, Index: e.Index, Err: err})
		}
	}
	if in != nil && in.derived != nil {
		in.derived.Apply(e)
		if logs, differ := in.derived.(protocol.Meeting); differ {
			in.apart = !logs.Meets(e)
		}
	}
	switch e.Kind {
	case protocol.EntryBatch:
		return a.placeBatch(p)
	case protocol.EntryGroup:
		return a.placeGroup(p)
	case protocol.EntryConfig:
		c, err := protocol.DecodeConfig(e.Payload)
		if err != nil {
			return fmt.Errorf("entry %d of instance %d: %w", e.Index, p.Instance, err)
		}
		if in != nil {
			in.Config = c
		}
		a.Changes++
		a.passed = append(a.passed, memberships{configs: a.Configs(), lead: a.lead})
	case protocol.EntryReshape:
		if p.Plan != nil { // else the log is not merged, and it means nothing
			a.reshape(p.Plan)
		}
	}
	return nil
}

// reshape follows the global log to other instances. Retired ones are forgotten.
func (a *Applier) reshape(p *order.Plan) {
	shape := p.At.Instances()
	instances := make([]InstanceState, 0, len(shape))
	for _, id := range shape {
		if in := a.Of(id); in != nil {
			instances = append(instances, *in)
		} else {
			instances = append(instances, a.born(id, p))
		}
	}
	old := a.Instances
	a.Instances = instances
	a.sessions.Retire(shape)
	a.Changes++
	for i := range old {
		if in := &old[i]; a.Of(in.Instance) == nil {
			in.settle(member.AllIndexes, a.again)
		}
	}
}

// born is an instance at its first moment, with the membership that a plan gives it.
func (a *Applier) born(id protocol.InstanceID, p *order.Plan) InstanceState {
	in := InstanceState{Instance: id, Config: a.Of(p.Members).Config.Clone()}
	if p.Seal != nil {
		in.Config = p.Seal.Begin(&a.Of(p.Members).Config)
	}
	if a.derive != nil {
		in.derived = a.derive(in.Config)
	}
	return in
}

func (a *Applier) placeBatch(p *order.Placed) error {
	e := &p.Entry
	if a.groups != nil && a.run.of != p.Instance {
		if err := a.flush(); err != nil {
			return err
		}
		a.run.of = p.Instance
	}
	own, body := a.removeOwn(p.Instance, e), a.body(p)
	if body != nil && e.Count != 1 {
		a.malformed(p, own, 0, e.CheckBatch())
		notifyBody(a.Passed, body)
		return nil
	}
	if !a.sessions.Admit(p.Instance, e) && a.mutant != member.MutantNoSessions {
		if own != nil {
			own.Fail(member.ErrResultUnknown)
		}
		notifyBody(a.Passed, body)
		return nil
	}
	passed := 0
	if a.skip >= p.First {
		passed = int(min(uint64(a.skip-p.First)+1, uint64(e.Count)))
	}
	if e.ID.Session == a.session && passed > 0 {
		if err := a.aheadOf(p.First); err != nil {
			if own != nil {
				own.Fail(errors.Join(member.ErrMaybeCommitted, err))
			}
			return err
		}
	}
	if own != nil && passed > 0 {
		own.FailFirst(passed, member.ErrResultUnknown)
	}
	rest, from, at := e.Payload, passed, len(a.run.commands)
	for i := range int(e.Count) {
		command, tail, err := protocol.NextCommand(rest)
		if err != nil {
			a.expect(own, from, at)
			a.malformed(p, own, max(i, passed), err)
			return nil
		}
		rest = tail
		if i < passed {
			notifyBody(a.Passed, body)
			continue
		}
		notifyBody(a.Given, body)
		a.run.commands = append(a.run.commands,
			member.Command{Position: p.First + protocol.Position(i), Data: command, Body: body})
		if a.run.cost += len(command) + callOverhead; a.run.cost < applyBytes {
			continue
		}
		a.expect(own, from, at)
		if err := a.flush(); err != nil {
			return err
		}
		from, at = i+1, 0
	}
	a.expect(own, from, at)
	return nil
}

// placeGroup applies the batches of a group one after the other. Each is known by its own numbers.
func (a *Applier) placeGroup(p *order.Placed) (err error) {
	if a.group, err = p.Entry.Batches(a.group[:0]); err != nil {
		a.malformed(p, nil, 0, err)
		if in := a.Of(p.Instance); in != nil {
			in.settle(p.Entry.Index, func(b *intake.Batch) {
				b.Fail(&member.RefusedError{What: "proposal", Reason: protocol.ReasonMalformed})
			})
		}
		return nil
	}
	batch := order.Placed{Instance: p.Instance, First: p.First}
	for i := range a.group {
		batch.Entry = a.group[i]
		batch.Entry.Index, batch.Entry.Term = p.Entry.Index, p.Entry.Term // where it stands, for who reports it
		if a.mutant == member.MutantGroupAsOne {
			batch.Entry.ID = a.group[0].ID
		}
		if err := a.placeBatch(&batch); err != nil {
			return err
		}
		batch.First += protocol.Position(batch.Entry.Count)
	}
	clear(a.group)
	return nil
}

// malformed passes over the commands of a batch from one on, because they are not what the batch
// says it is. No leader appends such a batch now, so it is from before leaders looked. All members
// have the same bytes, so all pass over the same commands.
func (a *Applier) malformed(p *order.Placed, own *intake.Batch, from int, err error) {
	if own != nil && from < len(own.Done) {
		own.FailFrom(from, &member.RefusedError{What: "proposal", Reason: protocol.ReasonMalformed})
	}
	if a.Malformed != nil {
		a.Malformed(p.Instance, p.Entry.Index, err)
	}
}

func notifyBody(who func(protocol.BodyRef), body *protocol.BodyRef) {
	if who != nil && body != nil {
		who(*body)
	}
}

// body names the body of an entry's one command; nil if it has none.
func (a *Applier) body(p *order.Placed) *protocol.BodyRef {
	if p.Entry.BodySize == 0 {
		return nil
	}
	ref := p.Entry.Ref(p.Instance)
	return &ref
}

// expect notes that the results of own's commands, beginning with the one numbered from, will
// stand in commands[at:].
func (a *Applier) expect(own *intake.Batch, from, at int) {
	if count := len(a.run.commands) - at; own != nil && count > 0 {
		a.run.results = append(a.run.results, resultSpan{own, from, at, count})
	}
}

// removeOwn removes and returns the waiting batch of an entry of this member's session, usually the first.
func (a *Applier) removeOwn(instance protocol.InstanceID, e *protocol.Entry) *intake.Batch {
	if e.ID.Session != a.session {
		return nil
	}
	if in := a.Of(instance); in != nil {
		return in.removeOwn(e.ID.Seq)
	}
	return nil
}

// flush runs the state machine on the commands that were collected. It hands out the results of a
// batch in one pass.
func (a *Applier) flush() error {
	if n := len(a.run.commands); n > 0 {
		a.tell(a.Begins)
		sm := a.sm
		if a.groups != nil {
			sm = a.groups.of(a.run.of)
		} else {
			a.last = a.run.commands[n-1].Position
		}
		if err := sm.Apply(a.run.commands); err != nil {
			return &member.MachineError{Op: "apply", Err: err}
		}
		a.tell(a.Ends)
	}
	for _, s := range a.run.results {
		s.batch.Settle(s.from, a.run.commands[s.at:s.at+s.count])
	}
	clear(a.run.results)
	clear(a.run.commands)
	a.run.results, a.run.commands, a.run.cost = a.run.results[:0], a.run.commands[:0], 0
	return nil
}

// tell tells someone of the batches whose commands are run.
func (a *Applier) tell(who func(*intake.Batch)) {
	if who == nil {
		return
	}
	for _, s := range a.run.results {
		who(s.batch)
	}
}

// Ahead reports whether a snapshot is ahead of what is applied.
func (a *Applier) Ahead(meta *member.Meta) bool {
	at := a.order.Cursor()
	return at.Before(&meta.Cursor)
}

// Fits reports whether a snapshot can take the place of a state that is damaged. It must not be
// behind what is ordered already, because that is not ordered again.
func (a *Applier) Fits(meta *member.Meta) bool {
	at := a.order.Cursor()
	return !meta.Cursor.Before(&at) || a.mutant == member.MutantAnyState
}

// Install replaces everything by a snapshot: its meta and its state. The snapshot is ahead, or
// takes the place of a damaged state. Batches of this member for which it stands are told that
// their result is not known. Those of an instance that is retired there are proposed again. Install
// then applies what was added beyond the snapshot and follows it at once.
//
// The state is read to its end before anything is applied to it. A [*protocol.SectionError] says that this program
// cannot continue from the snapshot. Nothing was changed then.
func (a *Applier) Install(meta member.Meta, state io.Reader) error {
	derived, err := meta.Derived(a.derive)
	if err != nil {
		return err
	}
	if err := member.CheckLineage(&a.Instances[0].Config, &meta.Config); err != nil &&
		a.mutant != member.MutantAnyLineage {
		return err
	}
	if state != nil {
		if err := member.Restore(a.sm, state); err != nil {
			return err
		}
	}
	if a.mutant == member.MutantMix {
		meta.Cursor = a.mixed(meta.Cursor)
	}
	a.order.Install(meta.Cursor)
	a.sessions = NewSessions(meta.Sessions)
	a.sessions.Mutant = a.mutant
	unknown := func(b *intake.Batch) { b.Fail(member.ErrResultUnknown) }
	a.failPlaced(member.ErrResultUnknown)
	for i := range a.Instances {
		in := &a.Instances[i]
		if slices.Contains(meta.Cursor.Instances(), in.Instance) {
			in.settle(meta.Cursor.Point(in.Instance).Index, unknown)
			continue
		}
		in.settle(member.AllIndexes, a.again)
	}
	a.configure(&meta)
	if a.mutant != member.MutantForgetSections {
		a.setDerived(derived)
	}
	a.skip, a.last, a.brought = meta.Command, meta.Command, 0 // the state may be ahead of the cursor
	a.stuck = false
	return a.advance()
}

// FailOwn tells an error to every batch of this member that is committed and not applied here.
func (a *Applier) FailOwn(err error) {
	a.failPlaced(err)
	for i := range a.Instances {
		a.Instances[i].settle(member.AllIndexes, func(b *intake.Batch) { b.Fail(err) })
	}
	for i := range a.later {
		for _, b := range a.later[i].Own {
			b.Fail(err)
		}
		a.later[i].Own = nil
	}
}

// failPlaced tells an error to the batches that were about to be applied.
func (a *Applier) failPlaced(err error) {
	for _, s := range a.run.results {
		s.batch.FailFrom(s.from, err)
	}
	clear(a.run.results)
	clear(a.run.commands)
	clear(a.placed)
	a.run.results, a.run.commands, a.run.cost = a.run.results[:0], a.run.commands[:0], 0
}

// Cursor tells how far the global log is applied.
func (a *Applier) Cursor() order.Cursor { return a.order.Cursor() }

// Added is the index of the last entry of an instance that Apply was given, or for which a
// snapshot stands. What is added in all instances and contiguous in the global log is applied.
// Take a state that has added what was committed everywhere at some moment: it includes everything
// that could be applied anywhere by then (docs/internals/niagara.md, 3.3, the vector rule).
func (a *Applier) Added(instance protocol.InstanceID) protocol.Index { return a.order.Added(instance) }

// Config is the first instance's membership as of the cursor. It is the cluster's.
func (a *Applier) Config() protocol.Config { return a.Instances[0].Config }

// Configs are the memberships of all active instances as of the cursor, in their order.
func (a *Applier) Configs() []protocol.Config {
	out := make([]protocol.Config, len(a.Instances))
	for i := range a.Instances {
		out[i] = a.Instances[i].Config
	}
	return out
}

// Meta describes the applied state for a snapshot.
func (a *Applier) Meta() member.Meta {
	config := a.Config()
	m := member.Meta{Cursor: a.order.Cursor(), Command: a.last, Config: config.Clone(), Sessions: a.sessions.States(),
		Sections: a.Sections()}
	for i := range a.Instances[1:] {
		m.Others = append(m.Others, a.Instances[i+1].Config.Clone())
	}
	if a.mutant == member.MutantForgetSessions {
		m.Sessions = nil
	}
	return m
}

// Break makes a mutant of the applier and of its order.
func (a *Applier) Break(m mutant.Name) {
	a.mutant, a.sessions.Mutant = m, m
	if n, ok := a.order.(*order.Niagara); ok {
		n.Mutant = mutant.Name(m)
	}
}

// mixed is, for a mutant, where a member would be that goes to a snapshot in one instance alone:
// in the one in which the snapshot is furthest ahead.
func (a *Applier) mixed(to order.Cursor) order.Cursor {
	mix := a.order.Cursor().Clone()
	if !slices.Equal(mix.Instances(), to.Instances()) {
		return to
	}
	far := 0
	for i := range mix.Points {
		if to.Points[i].Index-mix.Points[i].Index > to.Points[far].Index-mix.Points[far].Index {
			far = i
		}
	}
	mix.Position, mix.Next = to.Position, order.Slot{Round: mix.Next.Round + 1, Instance: mix.Points[0].Instance}
	mix.Points[far] = to.Points[far]
	return mix
}

// Check verifies the invariants.
func (a *Applier) Check() error {
	if err := a.sessions.Check(); err != nil {
		return err
	}
	if a.last < a.skip {
		return fmt.Errorf("applier: at command %d, but the state is at %d", a.last, a.skip)
	}
	at := a.order.Cursor()
	if a.stuck { // the order may be further than what is applied
		return a.order.Check()
	}
	if !slices.EqualFunc(at.Points, a.Instances,
		func(p order.Point, c InstanceState) bool { return p.Instance == c.Instance }) {
		return fmt.Errorf("applier: %d memberships for instances %v", len(a.Instances), at.Instances())
	}
	for i := range a.Instances {
		if in := &a.Instances[i]; in.derived != nil && a.derive == nil {
			return fmt.Errorf("applier: instance %d: something is derived from its log, and nothing is known of it",
				in.Instance)
		}
	}
	for _, c := range a.later {
		if c.Instance < at.Unused() {
			return fmt.Errorf("applier: entries of instance %d wait until it begins, and it has begun", c.Instance)
		}
	}
	return a.order.Check()
}
