package node

import (
	"time"
)

// The clock of a member, and what happens when its process stands still.

// Clock is the time by the member's own clock.
func (m *Member) Clock() time.Duration {
	return m.Offset + time.Duration(float64(m.Env.Now())*m.rate)
}

// SetRate changes how fast the clock runs from now on; it does not jump.
func (m *Member) SetRate(rate float64) {
	now := m.Clock()
	m.rate = rate
	m.Offset += now - m.Clock()
	m.Env.Tracef("FAULT the clock of %s runs at %.4f", m.ID, rate)
}

// Later runs do after d, unless the process stops before. If the process is paused, do runs when
// the process goes on.
func (m *Member) Later(d time.Duration, do func()) {
	life := m.Life
	m.Env.After(d, func() {
		if m.Up && m.Life == life {
			m.WhenAwake(do)
		}
	})
}

// WhenAwake runs do now, or when the process goes on if it stands still.
func (m *Member) WhenAwake(do func()) {
	if m.Paused > m.Env.Now() {
		m.delayed = max(m.delayed, m.Paused)
		m.Later(m.Paused-m.Env.Now(), do)
		return
	}
	do()
}

// sameLife runs do, if the process still runs that had this life.
func (m *Member) sameLife(life int, do func()) {
	if m.Up && m.Life == life {
		m.WhenAwake(do)
	}
}

// still is until when the process stands still, or something waits because it did.
func (m *Member) still() time.Duration { return max(m.Paused, m.delayed) }

// tickLater plans the next tick. A process that stood still finds a tick, messages and clients at
// the same time when it goes on. It may take them in any order.
func (m *Member) tickLater(d time.Duration) {
	w, life := m.Env, m.Life
	w.After(d, func() {
		switch {
		case !m.Up || m.Life != life:
		case m.Paused > w.Now():
			m.tickLater(m.Paused - w.Now() + w.hop())
		default:
			m.tick()
		}
	})
}

// Freeze lets the process stand still in the middle of a turn of each instance. The turns begin
// just before.
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

// Thaw lets the turns go on. What clients asked meanwhile becomes part of them.
func (m *Member) Thaw() {
	m.Frozen = false
	for _, s := range m.hosted() {
		if m.Up && s.within {
			s.finish()
		}
	}
}
