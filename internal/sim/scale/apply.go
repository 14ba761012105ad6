package scale

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

const (
	// snapshotBytes is the number of bytes of log between snapshots. It is small, so that a long run needs no more
	// memory than a short one. Snapshots cost nothing here.
	snapshotBytes = 4 << 20
	// keepLogBytes is the default of braid.Options.KeepLogBytes.
	keepLogBytes = 1 << 30
)

// applyThread is the thread that applies committed entries. It executes [apply.Apply]. It is the world and the state
// machine of apply.Apply, and counts the costs of applying.
type applyThread struct {
	m      *node
	thread *thread
	queue  apply.ApplyQueue
	steps  *apply.Apply
	known  *apply.Applied

	// The current turn: its costs, and the results that it publishes at its end.
	cost  spend
	items []apply.ApplyItem // a buffer
	again []apply.ApplyItem
	news  bool // its applied index has changed
	// commands is the number of commands that the state machine got.
	commands int64
	cuts     []apply.Written
}

func newApply(m *node, meta member.Meta) (*applyThread, error) {
	a := &applyThread{m: m, queue: apply.ApplyQueue{Limit: apply.ApplyQueueBytes}}
	applier, err := m.w.newApplier(m, a, &meta)
	if err != nil {
		return nil, fmt.Errorf("scale: %w", err)
	}
	applier.Again = func(b *intake.Batch) { m.w.note(m.proposals.Again([]*intake.Batch{b})) }
	a.known = apply.NewApplied(applier)
	a.steps = apply.NewApply(applier, meta.Cursor, snapshotBytes, a)
	a.thread = m.cpu.thread("apply", a.work, a.finish)
	return a, nil
}

func (a *applyThread) push(it apply.ApplyItem) {
	a.queue.Push(it)
	a.thread.wake()
}

func (a *applyThread) work() spend {
	a.cost = 0
	a.items = a.queue.Take(a.items)
	for i := range a.items {
		it := &a.items[i]
		n, before := len(it.Commit.Entries), a.cost
		if m := a.m.w.meter; m != nil && n > 0 {
			began := worked()
			a.m.w.note(a.steps.Do(it))
			m.add(meterApply, n, m.since(began)-float64(a.cost-before))
		} else {
			a.m.w.note(a.steps.Do(it))
		}
		if n > 0 {
			a.cost.on(a.m.w.steps.Apply, n, 0)
		}
	}
	clear(a.items)
	return a.cost
}

func (a *applyThread) finish() {
	if a.news {
		a.known.Note(a.steps.Applier)
		a.news = false
	}
	for _, it := range a.again {
		a.push(it)
	}
	a.again = a.again[:0]
	for _, w := range a.cuts {
		for _, l := range a.m.loops {
			l.do(func() {
				if cut := l.hosted.SnapshotWritten(w.Meta.Cursor.Point(l.instance).Index, 0, w.Bytes, 0, noStreams); cut > 0 {
					l.logs = append(l.logs, logWork{cut: cut})
				}
			})
		}
	}
	a.cuts = a.cuts[:0]
	if a.m.load != nil {
		a.m.load.applied()
	}
}

func noStreams(protocol.MemberID) protocol.Index { return 0 }

// resolve counts the cost of a batch that is resolved.
func (a *applyThread) resolve(b *intake.Batch) {
	a.cost.on(a.m.w.costs.Settle, len(b.Done), 0)
	a.m.proposals.Settled(a.m.w.now, b)
}

// Left implements apply.ApplyWorld, as the methods below do.
func (a *applyThread) Left(payload int, applied int64) { a.queue.Left(payload, applied) }

func (a *applyThread) Installed() { a.queue.Installed() }

func (a *applyThread) Again(it apply.ApplyItem) { a.again = append(a.again, it) }

func (a *applyThread) Meet() {
	for _, l := range a.m.loops {
		l.input(protocol.Meet{})
	}
}

func (a *applyThread) Publish(*apply.Applier) error {
	a.news = true
	return nil
}

func (a *applyThread) PublishConfigs(applier *apply.Applier) { a.known.NoteConfigs(applier) }

func (a *applyThread) Repairing(*order.Cursor) {}

func (a *applyThread) Useless() {}

func (a *applyThread) Reshaped(*apply.Applier, *member.Meta) error { return nil }

func (a *applyThread) Staged() (member.ReceivedSnapshot, error) { return nil, errors.ErrUnsupported }

func (a *applyThread) Merged(*member.Meta, error) {}

func (a *applyThread) Beginning() bool { return false }

func (a *applyThread) Restored(*apply.Applier, protocol.InstanceID, protocol.Index) error {
	return nil
}

// Cut lets the instances cut their logs at the end of the turn.
func (a *applyThread) Cut(meta *member.Meta, bytes int64) {
	a.cuts = append(a.cuts, apply.Written{Meta: *meta, Bytes: bytes})
}

func (a *applyThread) Save(meta member.Meta, _ member.Snapshot, bytes int64) {
	a.Again(apply.ApplyItem{Wrote: &apply.Written{Meta: meta, Bytes: bytes}})
}

func (a *applyThread) Saved(*member.Saved) {}

func (a *applyThread) Received(protocol.InstanceID, protocol.Index) (member.ReceivedSnapshot, error) {
	return nil, &behindError{a.m.id}
}

func (a *applyThread) Prune(protocol.Position) error { return nil }

func (a *applyThread) Tell(apply.ApplyNews) {}

// machineOf is the state machine of a member. It does nothing; only calling it has a cost.
type machineOf struct{ a *applyThread }

func (m machineOf) Apply(commands []member.Command) error {
	m.a.cost.on(m.a.m.w.costs.Command, len(commands), 0)
	m.a.commands += int64(len(commands))
	return nothing{}.Apply(commands)
}

func (machineOf) Snapshot() (member.Snapshot, error) { return nothing{}, nil }

func (machineOf) Restore(r io.Reader) error { return nothing{}.Restore(r) }

// nothing is a state machine without a state, and its view.
type nothing struct{}

func (nothing) Apply(commands []member.Command) error {
	for i := range commands {
		commands[i].Result = nil
	}
	return nil
}

func (nothing) Snapshot() (member.Snapshot, error) { return nothing{}, nil }

func (nothing) Restore(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

func (nothing) WriteTo(context.Context, io.Writer) error { return nil }

func (nothing) Close() error { return nil }
