package node

import (
	"time"

	"github.com/braidlog/braid/protocol"
)

// The clock of a member, and pauses of its process.

// process is the process of a member: whether it runs, its clock, and the end of its pause.
type process struct {
	Env *Environment
	ID  protocol.MemberID

	Up   bool
	Down time.Duration // when it stopped last
	Life int           // changes with each start and stop; callbacks of another incarnation do nothing

	// The clock: local time is offset + rate·global time.
	Offset time.Duration
	rate   float64
	// Paused is the end of the process's pause.
	Paused time.Duration
	// delayed is the time at which events that were due during a pause happen, even if the process resumes earlier.
	delayed time.Duration
	// Frozen: the process is paused in the middle of a turn of all its instances. Requests of clients in that time
	// become part of those turns.
	Frozen bool
}

// Clock is the time by the member's own clock.
func (p *process) Clock() time.Duration {
	return p.Offset + time.Duration(float64(p.Env.Now())*p.rate)
}

// SetRate changes how fast the clock runs from now on; it does not jump.
func (p *process) SetRate(rate float64) {
	now := p.Clock()
	p.rate = rate
	p.Offset += now - p.Clock()
	p.Env.Tracef("FAULT the clock of %s runs at %.4f", p.ID, rate)
}

// Later runs do after d, unless the process stops first. If the process is paused, do runs when it resumes.
func (p *process) Later(d time.Duration, do func()) {
	life := p.Life
	p.Env.After(d, func() {
		if p.Up && p.Life == life {
			p.WhenAwake(do)
		}
	})
}

// WhenAwake runs do now, or when the process resumes if it is paused.
func (p *process) WhenAwake(do func()) {
	if p.Paused > p.Env.Now() {
		p.delayed = max(p.delayed, p.Paused)
		p.Later(p.Paused-p.Env.Now(), do)
		return
	}
	do()
}

// sameLife runs do if the process with this incarnation still runs.
func (p *process) sameLife(life int, do func()) {
	if p.Up && p.Life == life {
		p.WhenAwake(do)
	}
}

// Still returns the end of the process's pause, or of the delays that follow from it.
func (p *process) Still() time.Duration { return max(p.Paused, p.delayed) }

// tickLater schedules the next tick. A process that was paused finds a tick, messages and clients' requests at the
// same time when it resumes. It may process them in any order.
func (m *Member) tickLater(d time.Duration) {
	w, life := m.Env, m.Life
	w.After(d, func() {
		switch {
		case !m.Up || m.Life != life:
		case m.Paused > w.Now():
			m.delayed = max(m.delayed, m.Paused)
			m.tickLater(m.Paused - w.Now() + w.hop())
		default:
			m.tick()
		}
	})
}

// Freeze pauses the process in the middle of a turn of each instance. The turns begin just before.
func (m *Member) Freeze(d time.Duration) {
	if m.Frozen || m.silent || m.Paused > m.Env.Now() {
		return
	}
	for _, s := range m.hosted() {
		if m.Up {
			s.take()
		}
	}
	if !m.Up {
		return
	}
	m.Frozen, m.Paused = true, m.Env.Now()+d
	m.Env.Count(frozenInTurns)
	m.thawLater()
}

func (m *Member) thawLater() {
	life := m.Life
	m.Env.After(m.Paused-m.Env.Now(), func() {
		switch {
		case !m.Up || m.Life != life || !m.Frozen:
		case m.Paused > m.Env.Now(): // longer than was planned
			m.thawLater()
		default:
			m.Thaw()
		}
	})
}

// Thaw resumes the turns. Requests of clients meanwhile become part of them.
func (m *Member) Thaw() {
	m.Frozen = false
	for _, s := range m.hosted() {
		if m.Up && s.within {
			s.finish()
		}
	}
}
