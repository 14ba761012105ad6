package node

import (
	"fmt"

	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/history"
	"github.com/braidlog/braid/internal/sim/judge"
)

// Reads at a member, and their judges.

var BarrierReads = count.New("barrier_reads", "barrier reads", count.Staged)

// readers is a group of reads that complete together.
type readers struct {
	intake.ReadGroup
	list []reader
}

type reader struct {
	// floor is the last place in the global log that any member had applied at the request.
	floor judge.Place
	// accepted is everything that was accepted by then; nil: the client does not need to see it.
	accepted *history.AcceptedWrites
	done     func(ok bool)
}

// Read calls done with true when the member's state includes everything that was acknowledged before the call, or
// with false when that fails. It requests read indexes as docs/internals/niagara.md, 3.3, has it. With barrier the
// state also includes everything that was accepted before the call.
func (m *Member) Read(barrier bool, done func(ok bool)) { m.read(barrier, false, done) }

// Confirm is Read that asks all instances.
func (m *Member) Confirm(done func(ok bool)) { m.read(false, true, done) }

func (m *Member) read(barrier, whole bool, done func(ok bool)) {
	r := reader{floor: m.Env.Court.Executed, done: done}
	kind := 0
	if barrier {
		kind, r.accepted = 1, m.Env.History.Accepted()
	}
	m.Admit(func() {
		first := m.InForce[0]
		if !first.reads.Gathering(barrier) {
			m.gathering[kind] = m.newReaders(barrier)
			first.reads.Gather(&m.gathering[kind].ReadGroup)
			first.wake()
		}
		m.gathering[kind].Whole = m.gathering[kind].Whole || whole
		m.gathering[kind].list = append(m.gathering[kind].list, r)
	})
}

func (m *Member) newReaders(barrier bool) *readers {
	g := &readers{}
	g.Barrier = barrier
	g.Done = func(err error) {
		m.Env.Events.Add(readsGrouped, min(1, len(g.list)-1))
		for i := range g.list {
			if r := &g.list[i]; m.Up {
				if err == nil {
					judgeRead(m, r)
					judgeBarrier(m, r)
				}
				r.done(err == nil)
			}
		}
	}
	return g
}

// readDone starts the next group of reads.
func (r *Running) readDone() {
	if len(r.InForce) > 1 {
		r.InForce[0].wake()
	}
}

// judgeRead checks that a read sees everything that any member applied before the request (N3).
func judgeRead(m *Member, r *reader) {
	cursor, _ := m.Progress.At()
	if at := m.Env.Court.PlaceOf(&cursor); at.Compare(r.floor) < 0 {
		m.Env.Violate(m.ID, fmt.Errorf("N3: a read is answered at round %d of instance %d; when it was asked for %d of %d was executed",
			at.Round, at.Instance, r.floor.Round, r.floor.Instance))
	}
}

// judgeBarrier checks that a read sees everything that was accepted before the request (L11).
func judgeBarrier(m *Member, r *reader) {
	if r.accepted == nil {
		return
	}
	m.Env.Count(BarrierReads)
	m.Env.Violate(m.ID, r.accepted.Seen(m.Machines.First.Position()))
}

// Look makes Apply complete waiters for positions that are applied already.
func (m *Member) Look() { m.Push(apply.ApplyItem{Look: true}) }
