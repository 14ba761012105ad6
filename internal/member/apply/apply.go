package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// maxEntriesBetween is how many entries may come between two snapshots, however small they are.
// Each costs the core some memory.
const maxEntriesBetween = 200_000

// ApplyWorld is what Apply asks of the member around it.
type ApplyWorld interface {
	// Left says that so many payload bytes do not wait any more, and that so much was applied.
	// Installed says that a snapshot in the queue is done with. See ApplyQueue.
	Left(payload int, applied int64)
	Installed()
	// Again queues an item behind all that waits.
	Again(ApplyItem)

	// Publish lets others know how far the global log is applied. PublishConfigs lets them know
	// the memberships too. See Applied.
	// An error is final.
	Publish(*Applier) error
	PublishConfigs(*Applier)
	// Repairing says that the state is damaged and what another state must include. nil says that
	// this is over. Useless says that a snapshot cannot take the place of the damaged state. See
	// StateExchange.
	Repairing(needs *order.Cursor)
	Useless()

	// Reshaped says that other instances may be active where Apply stands now. The plans up to there are carried out
	// then, if they are not yet: see Planner. installed is the snapshot by which Apply came there; nil: it came by the
	// log. Beginning reports whether the log does not durably have the beginnings of all instances yet. A Begun follows
	// then.
	Reshaped(a *Applier, installed *member.Meta) error
	Beginning() bool
	// Restored says that bodies are to be kept for another state. An instance's snapshot brought
	// that state, up to an index; or, with 0, it takes the place of a damaged one.
	Restored(a *Applier, instance protocol.InstanceID, index protocol.Index) error
	// Cut says that a durable snapshot stands for the logs of the active instances. bytes is how much had been applied
	// when the snapshot was taken.
	Cut(meta *member.Meta, bytes int64)

	// Meet asks the cores for an entry at which members meet: see protocol.Meet.
	Meet()
	// Save writes a snapshot to a file, and closes its state. state is nil if the state machine
	// keeps its own state on disk. Wrote follows.
	Save(meta member.Meta, state member.Snapshot, bytes int64)
	// Saved says where the durable snapshots stand.
	Saved(at *member.Saved)
	// Received opens the newest durable snapshot that has a state. All its bytes were verified. It
	// goes at least as far as this index of the instance.
	Received(instance protocol.InstanceID, index protocol.Index) (member.ReceivedSnapshot, error)
	// Staged opens the snapshot of another member that waits to be merged into the state. All its bytes were
	// verified. Merged says that a snapshot of what came of it is durable, or why there is none. Only in a
	// keyed order: see [Applier.Merge].
	Staged() (member.ReceivedSnapshot, error)
	Merged(at *member.Meta, err error)
	// Prune removes snapshots from before a position.
	Prune(protocol.Position) error

	// Tell says what happened.
	Tell(ApplyNews)
}

// ApplyNews is something that an operator may want to know.
type ApplyNews struct {
	What     ApplyEvent
	Instance protocol.InstanceID
	Base     protocol.Base
	Position protocol.Position
	Err      error
}

// ApplyEvent is what happened.
type ApplyEvent uint8

// What Apply tells.
const (
	SnapshotInstalled ApplyEvent = iota
	SnapshotWritten
	SnapshotFailed  // one could not be written; the next try comes after as much log again
	SnapshotsRemain // old ones cannot be removed
	StateDamaged    // others are asked for theirs
	StateUseless    // a snapshot cannot take the place of the damaged state
	StateReplaced
)

// Apply applies what the instances of a member commit, takes snapshots of the state, and puts
// snapshots of other members in its place. Replication does not wait for it: what it has not
// applied yet waits in an ApplyQueue. Not safe for concurrent use.
type Apply struct {
	*Applier
	world ApplyWorld
	// snapshotBytes is after how many bytes of entries a snapshot is due.
	snapshotBytes int64

	total int64 // what was applied since the start, as LogKeeper counts
	// since the last snapshot
	logged  int64
	entries int64

	meeting bool // a snapshot waits until members meet, and the cores know: see protocol.Meeting

	merging mergeStage
	saving  bool // a snapshot is being written; one at a time
	due     bool // one is wanted, however little was applied since the last one
	saved   member.Saved

	repairing bool // the state is damaged, and others are asked for theirs
}

// NewApply returns an Apply. saved is where the newest durable snapshot stands.
func NewApply(a *Applier, saved order.Cursor, snapshotBytes int64, world ApplyWorld) *Apply {
	p := &Apply{Applier: a, world: world, saved: member.Saved{Newest: saved}, snapshotBytes: snapshotBytes}
	if member.Damaged(a.Machine()) != nil {
		a.Halt()
	}
	return p
}

// Do does what one item says. An error is final, unless it only says that a snapshot waits to be
// installed: see ApplyQueue.Overtaken.
func (p *Apply) Do(it *ApplyItem) error {
	if it.View != nil {
		p.show(it)
		return nil
	}
	if err := p.answer(it); err != nil {
		return err
	}
	return p.follow()
}

// follow does what is due after something was applied.
func (p *Apply) follow() error {
	if p.Stuck() {
		p.mend()
		return nil // what the order says is not what is applied
	}
	if err := p.world.Publish(p.Applier); err != nil {
		return err
	}
	err := p.maybeSnapshot()
	if err != nil && member.Damaged(p.Machine()) != nil {
		p.saving = false
		p.Halt()
		p.mend()
		return nil
	}
	return err
}

// answer does what an item says.
func (p *Apply) answer(it *ApplyItem) error {
	switch {
	case it.Wrote != nil:
		p.wrote(it.Wrote)
	case it.Begun, it.Look: // a snapshot may have waited for the one; all that is applied is published for the other
	case it.Due:
		p.due = true
	case it.Halt:
		if member.Damaged(p.Machine()) != nil {
			p.Halt()
		}
	case it.Repair:
		return p.repair()
	case it.Merge:
		return p.merge()
	case it.Rewrite:
		p.due = p.due || p.merging == mergeDone
	case it.Install != nil:
		return p.install(it.Commit.Instance, *it.Install)
	default:
		err := p.applyParts(it.Commit)
		if it.Applied != nil {
			it.Applied()
		}
		return err
	}
	return nil
}

// show answers with a view of the state. It answers later if the state is not what the order says:
// then a snapshot is in the queue.
func (p *Apply) show(it *ApplyItem) {
	switch err := member.Damaged(p.Machine()); {
	case err != nil:
		it.View(StateView{Err: err})
	case p.Stuck():
		p.world.Again(*it)
	case p.doubtful() && !p.Within:
		it.View(StateView{Err: &member.NoStateError{Detail: "it is further than the log, which may be of another cluster"}})
	case p.Apart():
		p.due = true // the next one will have more
		it.View(p.met())
	default:
		it.View(p.view())
	}
}

func (p *Apply) view() StateView {
	state, err := p.Machine().Snapshot()
	return StateView{Meta: p.Meta(), State: state, Err: err}
}

// met is the state at the last place at which members met and that has a snapshot.
func (p *Apply) met() StateView {
	f, err := p.world.Received(p.Instances[0].Instance, 0)
	if err != nil {
		return StateView{Err: err}
	}
	return StateView{Meta: f.Meta(), State: fileState{f}}
}

// fileState is the state in a snapshot.
type fileState struct{ member.ReceivedSnapshot }

// WriteTo implements [member.Snapshot].
func (f fileState) WriteTo(ctx context.Context, w io.Writer) error {
	if _, err := io.Copy(w, f.ReceivedSnapshot); err != nil {
		return err
	}
	return errors.Join(f.Verify(), ctx.Err())
}

// applyParts applies what was committed. It stops at each entry at which members meet, because a snapshot may wait for
// it. After an error the rest is collected.
func (p *Apply) applyParts(c intake.CommittedEntries) (err error) {
	for {
		part, rest := p.untilMeeting(c)
		err = cmp.Or(err, p.apply(part))
		if len(rest.Entries) == 0 {
			return err
		}
		if err == nil {
			err = p.follow()
		}
		c = rest
	}
}

// untilMeeting splits what was committed after the first entry at which members meet.
func (p *Apply) untilMeeting(c intake.CommittedEntries) (part, rest intake.CommittedEntries) {
	logs := p.Meeting(c.Instance)
	if logs == nil {
		return c, rest
	}
	own := 0
	for i := range c.Entries {
		e := &c.Entries[i]
		for own < len(c.Own) && c.Own[own].CommittedIn(e) {
			own++
		}
		if !logs.Meets(e) {
			continue
		}
		p.meeting = false
		part, rest = c, c
		part.Entries, rest.Entries = c.Entries[:i+1:i+1], c.Entries[i+1:]
		part.Own, rest.Own = c.Own[:own:own], c.Own[own:]
		return part, rest
	}
	return c, rest
}

func (p *Apply) apply(c intake.CommittedEntries) error {
	before, inOrder := p.Changes, p.Resident()
	err := p.Apply(c)
	resident, cost := inOrder-p.Resident(), int64(0) // what left the order
	for i := range c.Entries {
		resident += len(c.Entries[i].Payload)
		p.logged += int64(c.Entries[i].Bytes())
		cost += intake.EntryCost(&c.Entries[i])
	}
	p.entries += int64(len(c.Entries))
	p.total += cost
	p.world.Left(resident, cost)
	if err != nil {
		return err
	}
	if p.Changes != before {
		if err := p.world.Reshaped(p.Applier, nil); err != nil {
			return err
		}
		p.world.PublishConfigs(p.Applier)
	}
	return nil
}

// install replaces the state by the snapshot that an instance has accepted, or by one that goes further. A snapshot
// that fails is not installed: the member stops, and the plans never learn where the log continues.
func (p *Apply) install(instance protocol.InstanceID, base protocol.Base) error {
	after, err := p.goTo(instance, base)
	if err != nil {
		return err
	}
	p.world.Installed()
	return after
}

// goTo is install. Another instance may have had the snapshot installed already. after is that of replace.
func (p *Apply) goTo(instance protocol.InstanceID, base protocol.Base) (after, err error) {
	switch at := p.Cursor(); {
	case at.Retired(instance) && p.Of(instance) == nil:
		return nil, nil
	case p.Added(instance) >= base.Index && base.Index > 0 && !p.Stuck():
		// Another instance had it installed, or one that goes further.
		if err := p.world.Restored(p.Applier, instance, base.Index); err != nil || !at.Keyed {
			return nil, err
		}
		return nil, p.forgetOlder()
	}
	f, err := p.world.Received(instance, base.Index)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	meta := f.Meta()
	if !p.Ahead(&meta) {
		return nil, p.world.Restored(p.Applier, instance, base.Index)
	}
	if after, err = p.replace(f, meta, instance, base.Index); err != nil {
		return nil, err
	}
	if member.Damaged(p.Machine()) == nil {
		p.repaired()
	}
	p.world.Tell(ApplyNews{What: SnapshotInstalled, Instance: instance, Base: base, Position: meta.Cursor.Position})
	if after != nil {
		return after, nil
	}
	p.world.PublishConfigs(p.Applier)
	p.save(member.Saved{Newest: meta.Cursor, Oldest: p.saved.Oldest})
	if err := p.world.Prune(meta.Cursor.Position); err != nil || p.saving {
		return nil, err // an older one may still be written, see wrote
	}
	p.save(member.Saved{Newest: meta.Cursor, Oldest: meta.Cursor})
	return nil, nil
}

// replace puts another state in the place of this one. after says that what waits behind the new
// state cannot be read. The applier is stuck again then, and another snapshot is to come.
func (p *Apply) replace(f member.ReceivedSnapshot, meta member.Meta, instance protocol.InstanceID,
	index protocol.Index) (after, err error) {
	resident := p.Resident()
	after = p.Install(meta, f)
	if after != nil && (!p.Stuck() || member.Damaged(p.Machine()) != nil) {
		return nil, after
	}
	if err := p.world.Reshaped(p.Applier, &meta); err != nil {
		return nil, err
	}
	if err := p.world.Restored(p.Applier, instance, index); err != nil {
		return nil, err
	}
	p.logged, p.entries = 0, 0
	p.meeting = false
	p.world.Left(resident-p.Resident(), 0)
	return after, nil
}

// maybeSnapshot begins a snapshot when enough was applied since the last one. It waits until the
// beginnings of new instances are durable. A snapshot that names an instance of which the log
// knows nothing would leave open what was in a record that is damaged now. Where members have different logs, it waits
// until they meet.
func (p *Apply) maybeSnapshot() error {
	if p.saving || !p.due && p.logged < p.snapshotBytes && p.entries < maxEntriesBetween || p.world.Beginning() ||
		p.doubtful() {
		return nil
	}
	if p.Apart() {
		if !p.meeting {
			p.meeting = true
			p.world.Meet()
		}
		return nil
	}
	p.logged, p.entries, p.due = 0, 0, false
	p.saving = true
	if p.merging == mergeDone {
		p.merging = mergeSaving
	}
	if d, ok := p.Machine().(member.DurableStateMachine); ok {
		if err := d.Sync(); err != nil {
			return &member.MachineError{Op: "sync", Err: err}
		}
		p.world.Save(p.Meta(), nil, p.total)
		return nil
	}
	v := p.view()
	if v.Err != nil {
		return &member.MachineError{Op: "snapshot", Err: v.Err}
	}
	p.world.Save(v.Meta, v.State, p.total)
	return nil
}

// wrote ends a snapshot: the logs may be cut, and the next snapshot may begin. Nothing is lost if
// a snapshot could not be written. The next try comes after as much log again.
func (p *Apply) wrote(w *Written) {
	p.saving = false
	at := w.Meta.Cursor.Position
	if w.Err != nil {
		p.world.Tell(ApplyNews{What: SnapshotFailed, Position: at, Err: w.Err})
		p.mergeAgain()
		return
	}
	before := p.saved.Newest
	if at < before.Position { // another member's snapshot was installed while this one was written
		if err := p.forgetOlder(); err != nil {
			p.world.Tell(ApplyNews{What: SnapshotsRemain, Position: before.Position, Err: err})
		}
		return
	}
	p.save(member.Saved{Newest: w.Meta.Cursor, Oldest: p.saved.Oldest})
	p.world.Tell(ApplyNews{What: SnapshotWritten, Position: at})
	if p.merging == mergeSaving { // before the logs are cut: the cores take over what they lack
		p.merging = mergeNone
		p.world.Merged(&w.Meta, nil)
	}
	p.world.Cut(&w.Meta, w.Bytes)
	// The snapshot before this one stays, in case this one is damaged when it is needed. The log
	// goes back to the earlier one. If nothing was applied meanwhile, this one replaced the last one.
	if at == before.Position {
		return
	}
	if err := p.world.Prune(min(before.Position, at)); err != nil {
		p.world.Tell(ApplyNews{What: SnapshotsRemain, Position: at, Err: err})
		return
	}
	p.save(member.Saved{Newest: w.Meta.Cursor, Oldest: before})
}

// Saving reports whether a snapshot is being written.
func (p *Apply) Saving() bool { return p.saving }

func (p *Apply) save(at member.Saved) {
	p.saved = at
	p.world.Saved(&at)
}

// mend begins to ask other members for their state if this one is damaged, unless it asks already.
func (p *Apply) mend() {
	damage := member.Damaged(p.Machine())
	if damage == nil || p.repairing {
		return
	}
	needs := p.Cursor()
	p.repairing = true
	p.world.Repairing(&needs)
	p.world.Tell(ApplyNews{What: StateDamaged, Err: damage})
}

func (p *Apply) repaired() {
	if p.repairing {
		p.repairing = false
		p.world.Repairing(nil)
	}
}

// repair puts the newest snapshot that was received in the place of a damaged state. If that
// snapshot is of no use it is left alone: another one will come.
func (p *Apply) repair() error {
	if member.Damaged(p.Machine()) == nil {
		return nil
	}
	useless := func(err error) error {
		p.world.Useless()
		p.world.Tell(ApplyNews{What: StateUseless, Err: err})
		return nil
	}
	f, err := p.world.Received(p.Instances[0].Instance, 0)
	if err != nil {
		return useless(err)
	}
	defer f.Close()
	meta := f.Meta()
	if !p.Fits(&meta) {
		return useless(fmt.Errorf("it is at %d, the log is further", meta.Cursor.Position))
	}
	after, err := p.replace(f, meta, 0, 0)
	if member.Damaged(p.Machine()) != nil {
		p.Halt()
		return useless(err)
	}
	if err != nil {
		return err
	}
	p.repaired()
	p.world.Tell(ApplyNews{What: StateReplaced, Position: meta.Cursor.Position})
	if after != nil {
		return after
	}
	p.world.PublishConfigs(p.Applier)
	p.due = true // the log alone does not lead to the new state
	return nil
}
