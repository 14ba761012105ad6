package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// writerPauses draws what concerns the writers of logs.
var writerPauses = draw.New("pauses")

var fullDisks = count.New("full_disks", "writes that found no room")

// writer runs the steps of a member's log on virtual time, as the goroutine of wal.Writer does. A
// sync takes as long as the disk needs. Some time passes between other steps too. Power may be lost
// between any two steps, and within each step.
type writer struct {
	m       *Member
	steps   *wal.Commits
	count   uint64 // calls of Submit
	planned int    // counts plans: only the last one is carried out
	waiting bool   // for something that is submitted, or for the end of a pause
	closing bool   // the member was told to stop, and ignores that the writer is closed
}

func newWriter(m *Member, log *wal.Log, bodies *wal.Bodies) *writer {
	w := &writer{m: m}
	w.steps = wal.NewCommits(log, bodies, w.beside)
	w.steps.Mutant = mutant.Name(m.w.set.Mutant)
	log.Mutant = w.steps.Mutant
	w.plan()
	return w
}

// Submit does what wal.Writer's does. It does not call done if the process has stopped.
func (w *writer) Submit(records []wal.Record, done func(error)) {
	w.count++
	w.m.w.Mix(uint64(len(records)))
	w.steps.Submit(records, w.alive(done))
	w.wake()
}

// Compact does what wal.Writer's does.
func (w *writer) Compact(instance uint32, index uint64) {
	w.steps.Compact(instance, index)
	w.wake()
}

// Rewrite does what wal.Writer's does.
func (w *writer) Rewrite(instance uint32, done func(error)) {
	w.steps.Rewrite(instance, w.alive(done))
	w.wake()
}

// Tidy does what wal.Writer's does.
func (w *writer) Tidy() {
	if w.steps.Tidy(); w.steps.Pause() < 0 {
		w.wake()
	}
}

func (w *writer) alive(done func(error)) func(error) {
	life := w.m.life
	return func(err error) {
		if w.m.up && w.m.life == life && (!w.closing || !errors.Is(err, wal.ErrClosed)) {
			done(err)
		}
	}
}

// busy reports whether something submitted is not durable yet, or not reported yet.
func (w *writer) busy() bool {
	jobs, _ := w.steps.Queued()
	return jobs > 0 || w.steps.Stage() != wal.StageIdle
}

func (w *writer) wake() {
	if w.waiting {
		w.waiting = false
		w.after(w.m.w.hop())
	}
}

// plan plans the next step.
func (w *writer) plan() {
	jobs, _ := w.steps.Queued()
	switch idle := w.steps.Stage() == wal.StageIdle; {
	case w.steps.Syncs() && w.steps.Busy():
		w.after(w.m.syncTime())
	case w.steps.Busy() || idle && jobs > 0:
		w.after(w.m.w.hop())
	case w.steps.Pause() < 0:
		w.waiting = true
	default:
		w.waiting = true
		w.after(w.pause(idle))
	}
}

// pause is how long the writer waits now. It changes the pause of an idle log only; that of a full
// disk is as in production.
func (w *writer) pause(idle bool) time.Duration {
	d := w.steps.Pause()
	if idle {
		d = time.Duration(2 * w.m.w.From(writerPauses).Share() * w.m.w.set.Idle * float64(d))
	}
	return d
}

// after goes on after d, unless something else is planned before that.
func (w *writer) after(d time.Duration) {
	w.planned++
	plan := w.planned
	w.m.later(d, func() {
		if plan == w.planned {
			w.goOn()
		}
	})
}

func (w *writer) goOn() {
	if w.m.stalled > w.m.w.Now() && w.steps.Syncs() {
		w.after(w.m.w.set.Heartbeat)
		return
	}
	due := w.waiting // a pause is over
	w.waiting = false
	if w.steps.Gather() || due {
		w.step()
	}
	if w.m.up {
		w.plan()
	}
}

func (w *writer) step() {
	m := w.m
	m.looksAtDisk()
	w.steps.Step()
	st := w.steps.Stats()
	switch {
	case !m.up:
	case m.disk.PowerLost(): // the power fails now, and perhaps nobody was told
		m.fail(device.ErrPower)
	case st.Full != nil && !m.disk.Full:
		m.fail(fmt.Errorf("there is room on the disk: %w", st.Full))
	case st.Full != nil:
		m.w.Count(fullDisks)
		m.judgeFull(st.Full)
	}
}

// beside runs do a little later, or when somebody waits for it.
func (w *writer) beside(do func()) (wait func()) {
	ran := false
	wait = func() {
		if !ran {
			ran = true
			do()
		}
	}
	w.m.later(w.m.w.hop(), func() {
		if wait(); w.m.disk.PowerLost() {
			w.m.fail(device.ErrPower)
		}
	})
	return wait
}

// close ends the writer and closes the files, as a process does that is told to stop.
func (w *writer) close() {
	w.closing = true
	w.steps.Close()
	for !w.steps.Closed() {
		w.steps.Gather()
		w.step()
		if !w.m.up {
			return
		}
	}
	err := errors.Join(w.m.body.store.Close(), w.m.log.Close())
	if err != nil && !errors.Is(err, device.ErrPower) && !errors.Is(err, device.ErrSync) && !errors.Is(err, device.ErrIO) && !errors.As(err, new(*wal.FullError)) {
		w.m.w.Violate(w.m.id, fmt.Errorf("closes its files: %w", err))
	}
}

// wrote is called when a step of the instance is durable. nth says which call of Submit it was.
// commit is the commit index that is then on the disk.
func (s *memberInstance) wrote(seq, nth uint64, commit protocol.Index, err error) {
	m := s.m
	if err != nil {
		m.fail(err)
		return
	}
	if m.w.Tracing() {
		m.w.Tracef("%s   durable up to step %d%s", m.id, seq, m.w.named(s.instance))
	}
	m.w.Violate(m.id, s.judges.Ledger.Durable(m.judged(), seq))
	s.judges.Bodies.Durable(m.judged(), nth)
	s.noted = max(s.noted, commit)
	if s.unwritten = 0; s.recorded > seq {
		s.unwritten = m.clock()
	}
	s.durable = max(s.durable, seq)
	s.wake()
}

// whenWritten runs do when nothing is being written: now, soon, or perhaps never.
func (m *Member) whenWritten(tries int, do func()) {
	switch {
	case m.w.calm || tries == 0:
	case m.writer.busy():
		m.later(m.syncTime()/2, func() { m.whenWritten(tries-1, do) })
	default:
		do()
	}
}
