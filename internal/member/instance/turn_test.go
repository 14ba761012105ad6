package instance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

var onlyFirst = []protocol.InstanceID{1}

// alone is a member with one instance. It has batches and reads for it.
type alone struct {
	now     time.Duration
	batches []*intake.Batch
	reads   []*intake.ReadGroup
	status  *protocol.Status
}

func (a *alone) Waiting() (bytes int, full bool, path protocol.Path) {
	if len(a.batches) > 0 {
		path = a.batches[0].Path
	}
	return len(a.batches), false, path
}
func (a *alone) NoteLoad(Load)               {}
func (a *alone) Risen() uint64               { return 0 }
func (a *alone) Wanted() order.Slot          { return order.Slot{} }
func (a *alone) IDs() []protocol.InstanceID  { return onlyFirst }
func (a *alone) Load(int) Load               { return Load{} }
func (a *alone) Status(int) *protocol.Status { return a.status }
func (a *alone) Wake(int)                    {}

func (a *alone) TakeBatch() *intake.Batch {
	b := a.batches[0]
	a.batches = a.batches[1:]
	return b
}

func (a *alone) TakeReads() (groups []*intake.ReadGroup) {
	groups, a.reads = a.reads, nil
	return groups
}

func (a *alone) ReportRounds(_ InstanceRounds, wake []protocol.InstanceID) (order.Slot, []protocol.InstanceID) {
	return order.Slot{}, wake
}

func (a *alone) host() (*scriptedCore, *Hosted) {
	c, in := newScripted(1)
	h := NewHosted(HostedConfig{Self: 1, Instance: 1, Heartbeat: time.Second, Election: time.Second}, Calls{
		Now: func() time.Duration { return a.now }, Siblings: func() Siblings { return a }, Source: a, Rounds: a,
	}, in)
	a.status = h.Status()
	return c, h
}

// turns has a turn and says what it wants, a line for each part.
func (a *alone) turns(h *Hosted, t *Happened, carried func(*Turn)) (lines []string) {
	t.Active, t.Saved, t.Configs = true, &member.Saved{}, make([]protocol.Config, 1)
	h.Take(t)
	for turn := h.Next(); turn != nil; turn = h.Next() {
		lines = append(lines, told(turn))
		if turn.Status != nil {
			a.status = turn.Status
		}
		carried(turn)
	}
	return lines
}

// told says what a turn wants, as far as these tests bring it about.
func told(t *Turn) string {
	var s []string
	say := func(yes bool, format string, args ...any) {
		if yes {
			s = append(s, fmt.Sprintf(format, args...))
		}
	}
	say(len(t.Send) > 0, "send %d", len(t.Send))
	say(t.Seq > 0, "persist %d up to %d", len(t.Persist), t.Seq)
	say(len(t.Commit.Entries) > 0, "commit %d", len(t.Commit.Entries))
	say(len(t.Failed) > 0, "fail %d", len(t.Failed))
	for _, r := range t.ReadIndexes {
		say(true, "read index %d", r.Index)
	}
	say(len(t.FailedReads) > 0, "fail %d reads", len(t.FailedReads))
	say(t.Suspect != 0, "suspect %d", t.Suspect)
	for _, o := range t.Snapshots {
		say(true, "snapshot to %d after %d", o.To, o.Offer.After)
	}
	say(t.Status != nil && t.Changed, "changed")
	say(t.Status != nil && !t.Changed, "status")
	say(t.Departed != nil, "departed")
	say(t.Tend, "tend")
	say(t.WantSnapshot, "want a snapshot")
	say(t.Cut > 0, "cut")
	return strings.Join(s, ", ")
}

func TestTurns(t *testing.T) {
	message := []protocol.Input{&protocol.Message{Type: membertest.MsgLog}}
	entry := protocol.Entry{Kind: protocol.EntryNoop, Index: 1, Term: 1}
	for _, c := range []struct {
		name    string
		happens Happened
		effects func(*protocol.Effects)
		lines   []string
	}{
		{name: "nothing", effects: func(*protocol.Effects) {}},
		{
			name: "a message that is answered when the disk has a record", happens: Happened{Inputs: message},
			effects: func(e *protocol.Effects) {
				e.Persist = append(e.Persist, protocol.Record{Kind: protocol.RecordState})
				e.Release = append(e.Release, &protocol.Message{Type: membertest.MsgAck, To: 2})
				e.Seq = 1
			},
			lines: []string{"persist 1 up to 1"},
		},
		{
			name: "all at once", happens: Happened{Inputs: message},
			effects: func(e *protocol.Effects) {
				e.Send = append(e.Send, &protocol.Message{Type: membertest.MsgLog, To: 2})
				e.Persist = append(e.Persist, protocol.Record{Kind: protocol.RecordState})
				e.Seq, e.Suspect, e.Changed = 1, 3, true
				e.Commit = append(e.Commit, entry)
				e.Snapshots = append(e.Snapshots, 2)
			},
			lines: []string{"send 1, persist 1 up to 1, commit 1, suspect 3, snapshot to 2 after 0, changed"},
		},
		{
			name: "a tick", happens: Happened{Tick: true}, effects: func(*protocol.Effects) {},
			lines: []string{"status, tend"},
		},
		{
			name: "batches that no instance took in time", effects: func(*protocol.Effects) {},
			happens: Happened{Tick: true, Expired: []*intake.Batch{membertest.Sealed(1, "a")}},
			lines:   []string{"fail 1", "status, tend"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &alone{now: time.Second}
			core, h := a.host()
			core.status.First = 1
			core.then(c.effects)
			require.Equal(t, c.lines, a.turns(h, &c.happens, func(*Turn) {}))
			require.Nil(t, h.Next(), "the turn is over")
		})
	}
}

// What a driver carries out may let in more within the same turn.
func TestWhatIsCarriedOutLetsInMore(t *testing.T) {
	a := &alone{now: time.Second}
	core, h := a.host()
	core.then(func(e *protocol.Effects) { e.Send = append(e.Send, &protocol.Message{Type: membertest.MsgLog, To: 2}) })
	core.then(func(e *protocol.Effects) { e.Reads = append(e.Reads, protocol.ReadIndex{Context: 1, Index: 7}) })
	lines := a.turns(h, &Happened{Inputs: []protocol.Input{&protocol.Message{Type: membertest.MsgLog}}}, func(turn *Turn) {
		if len(turn.Send) > 0 {
			a.reads = append(a.reads, &intake.ReadGroup{})
		}
	})
	require.Equal(t, []string{"send 1", "read index 7"}, lines)
}

func TestATurnAllocatesNothingOfItsOwn(t *testing.T) {
	a := &alone{now: time.Second}
	_, h := a.host()
	group := &intake.ReadGroup{}
	happened := &Happened{Active: true, Saved: &member.Saved{}}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		h.Take(happened)
		for turn := h.Next(); turn != nil; turn = h.Next() {
			turn.ReadIndexes = append(turn.ReadIndexes, ReadIndex{group, 1})
		}
	}))
}

// A core has nothing random before its first tick, and may drop messages. Those that came before an instance began are
// in its first turn.
func TestTheFirstTickComesBeforeMessages(t *testing.T) {
	a := &alone{}
	c, h := a.host()
	for range 2 {
		message := &protocol.Message{Type: membertest.MsgLog}
		a.turns(h, &Happened{Tick: true, Inputs: []protocol.Input{message}}, func(*Turn) {})
	}
	var order []string
	for _, in := range c.inputs {
		order = append(order, fmt.Sprintf("%T", in))
	}
	require.Equal(t, []string{"protocol.Tick", "*protocol.Message", "*protocol.Message", "protocol.Tick"}, order)
}

// A retired instance whose time is over waits for snapshots, perhaps for long. It takes in messages then, but heeds few
// ticks.
func TestARetiredInstanceThatOnlyWaitsForSnapshotsRests(t *testing.T) {
	a := &alone{}
	c, h := a.host()
	turn := func(in Happened) (ticks int) {
		c.inputs = nil
		a.turns(h, &in, func(*Turn) {})
		for _, in := range c.inputs {
			if _, ok := in.(protocol.Tick); ok {
				ticks++
			}
		}
		return ticks
	}
	turn(Happened{Tick: true, Jobs: []func(){func() { h.Retire() }}})
	require.Equal(t, 1, turn(Happened{Tick: true}))
	require.False(t, h.Rests())
	a.now += retiredFor * h.cfg.Election
	turn(Happened{Tick: true})
	require.True(t, h.Rests())
	require.Equal(t, 1, turn(Happened{Tick: true}))
	require.Zero(t, turn(Happened{Tick: true}))
	turn(Happened{Inputs: []protocol.Input{&protocol.Message{Type: membertest.MsgLog}}})
	require.Len(t, c.inputs, 1)
	require.Zero(t, h.Due())
	a.now += h.cfg.Election
	require.Equal(t, 1, turn(Happened{Tick: true}))
	require.False(t, h.Ended())
}
