package node

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

// WriterPauses draws the delays of the writers of logs.
var WriterPauses = draw.New("pauses")

var fullDisks = count.New("full_disks", "writes that found no room")

// writer runs the steps of a member's log on virtual time, as the goroutine of wal.Writer does. A sync takes the time
// of the disk. Other steps are delayed too. Power may be lost between any two steps, and within each step.
type writer struct {
	m       *Member
	Steps   *wal.Commits
	count   uint64 // calls of Submit
	planned int    // counts scheduled steps: only the last one runs
	waiting bool   // for a call of Submit, or for the end of a pause
	closing bool   // the member was told to stop, and ignores that the writer is closed
}

func newWriter(m *Member, log *wal.Log, bodies *wal.Bodies) *writer {
	w := &writer{m: m}
	w.Steps = wal.NewCommits(log, bodies, w.beside)
	w.Steps.Mutant = mutant.Name(m.Env.Set.Mutant)
	log.Mutant = w.Steps.Mutant
	w.plan()
	return w
}

// Submit implements wal.Writer's Submit. It does not call done if the process has stopped.
func (w *writer) Submit(records []wal.Record, done func(error)) {
	w.count++
	w.m.Env.Mix(uint64(len(records)))
	w.Steps.Submit(records, w.alive(done))
	w.wake()
}

// Compact implements wal.Writer's Compact.
func (w *writer) Compact(instance uint32, index uint64) {
	w.Steps.Compact(instance, index)
	w.wake()
}

// Rewrite implements wal.Writer's Rewrite.
func (w *writer) Rewrite(instance uint32, done func(error)) {
	w.Steps.Rewrite(instance, w.alive(done))
	w.wake()
}

// Tidy implements wal.Writer's Tidy.
func (w *writer) Tidy() {
	if w.Steps.Tidy(); w.Steps.Pause() < 0 {
		w.wake()
	}
}

func (w *writer) alive(done func(error)) func(error) {
	life := w.m.Life
	return func(err error) {
		if w.m.Up && w.m.Life == life && (!w.closing || !errors.Is(err, wal.ErrClosed)) {
			done(err)
		}
	}
}

// Busy reports whether a submitted record is not durable yet, or not reported yet.
func (w *writer) Busy() bool {
	jobs, _ := w.Steps.Queued()
	return jobs > 0 || w.Steps.Stage() != wal.StageIdle
}

func (w *writer) wake() {
	if w.waiting {
		w.waiting = false
		w.after(w.m.Env.hop())
	}
}

// plan schedules the next step.
func (w *writer) plan() {
	jobs, _ := w.Steps.Queued()
	switch idle := w.Steps.Stage() == wal.StageIdle; {
	case w.Steps.Syncs() && w.Steps.Busy():
		w.after(w.m.syncTime())
	case w.Steps.Busy() || idle && jobs > 0:
		w.after(w.m.Env.hop())
	case w.Steps.Pause() < 0:
		w.waiting = true
	default:
		w.waiting = true
		w.after(w.pause(idle))
	}
}

// pause returns how long the writer waits now. It changes the pause of an idle log only; the pause of a full disk is
// as in production.
func (w *writer) pause(idle bool) time.Duration {
	d := w.Steps.Pause()
	if idle {
		d = time.Duration(2 * w.m.Env.From(WriterPauses).Share() * w.m.Env.Set.Idle * float64(d))
	}
	return d
}

// after runs the next step after d, unless another one is scheduled first.
func (w *writer) after(d time.Duration) {
	w.planned++
	plan := w.planned
	w.m.Later(d, func() {
		if plan == w.planned {
			w.goOn()
		}
	})
}

func (w *writer) goOn() {
	if w.m.Stalled > w.m.Env.Now() && w.Steps.Syncs() {
		w.after(w.m.Env.Set.Heartbeat)
		return
	}
	due := w.waiting // a pause is over
	w.waiting = false
	if w.Steps.Gather() || due {
		w.step()
	}
	if w.m.Up {
		w.plan()
	}
}

func (w *writer) step() {
	m := w.m
	m.looksAtDisk()
	w.Steps.Step()
	st := w.Steps.Stats()
	switch {
	case !m.Up:
	case m.Disk.PowerLost(): // the power fails now, perhaps without a report
		m.fail(device.ErrPower)
	case st.Full != nil && !m.Disk.Full:
		m.fail(fmt.Errorf("there is room on the disk: %w", st.Full))
	case st.Full != nil:
		m.Env.Count(fullDisks)
		judgeFullDisk(m, st.Full)
	}
}

// The returned wait runs do at once if it has not run. Otherwise do runs a little later.
func (w *writer) beside(do func()) (wait func()) {
	ran := false
	wait = func() {
		if !ran {
			ran = true
			do()
		}
	}
	w.m.Later(w.m.Env.hop(), func() {
		if wait(); w.m.Disk.PowerLost() {
			w.m.fail(device.ErrPower)
		}
	})
	return wait
}

// Close ends the writer and closes the files, like a process at a planned stop.
func (w *writer) Close() {
	w.closing = true
	w.Steps.Close()
	for !w.Steps.Closed() {
		w.Steps.Gather()
		w.step()
		if !w.m.Up {
			return
		}
	}
	err := errors.Join(w.m.Body.Store.Close(), w.m.Log.Close())
	if err != nil && !errors.Is(err, device.ErrPower) && !errors.Is(err, device.ErrSync) && !errors.Is(err, device.ErrIO) && !errors.As(err, new(*wal.FullError)) {
		w.m.Env.Violate(w.m.ID, fmt.Errorf("closes its files: %w", err))
	}
}

// wrote is called when a step of the instance is durable. nth is the number of the call of Submit. commit is the
// commit index that is then on the disk.
func (s *MemberInstance) wrote(seq, nth uint64, commit protocol.Index, err error) {
	m := s.Member
	if err != nil {
		m.fail(err)
		return
	}
	if m.Env.Tracing() {
		m.Env.Tracef("%s   durable up to step %d%s", m.ID, seq, m.Env.Named(s.Instance))
	}
	m.Env.Violate(m.ID, s.Judges.Ledger.Durable(m.Judged(), seq))
	s.Judges.Bodies.Durable(m.Judged(), nth)
	s.Noted = max(s.Noted, commit)
	if s.unwritten = 0; s.recorded > seq {
		s.unwritten = m.Clock()
	}
	s.durable = max(s.durable, seq)
	s.wake()
}

// WhenWritten runs do when no write is in progress: now, soon, or perhaps never.
func (m *Member) WhenWritten(tries int, do func()) {
	switch {
	case m.Env.Calm || tries == 0:
	case m.Writer.Busy():
		m.Later(m.syncTime()/2, func() { m.WhenWritten(tries-1, do) })
	default:
		do()
	}
}
