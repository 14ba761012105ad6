package sim

import (
	"time"
)

// The clock of a member, and what happens when its process stands still.

// clock is the time by the member's own clock.
func (m *Member) clock() time.Duration {
	return m.offset + time.Duration(float64(m.w.Now())*m.rate)
}

// setRate changes how fast the clock runs from now on; it does not jump.
func (m *Member) setRate(rate float64) {
	now := m.clock()
	m.rate = rate
	m.offset += now - m.clock()
	m.w.Tracef("FAULT the clock of %s runs at %.4f", m.id, rate)
}

// later runs do after d, unless the process stops before. If the process is paused, do runs when
// the process goes on.
func (m *Member) later(d time.Duration, do func()) {
	life := m.life
	m.w.After(d, func() {
		if m.up && m.life == life {
			m.whenAwake(do)
		}
	})
}

func (m *Member) whenAwake(do func()) {
	if m.paused > m.w.Now() {
		m.delayed = max(m.delayed, m.paused)
		m.later(m.paused-m.w.Now(), do)
		return
	}
	do()
}

// sameLife runs do, if the process still runs that had this life.
func (m *Member) sameLife(life int, do func()) {
	if m.up && m.life == life {
		m.whenAwake(do)
	}
}

// still is until when the process stands still, or something waits because it did.
func (m *Member) still() time.Duration { return max(m.paused, m.delayed) }

// tickLater plans the next tick. A process that stood still finds a tick, messages and clients at
// the same time when it goes on. It may take them in any order.
func (m *Member) tickLater(d time.Duration) {
	w, life := m.w, m.life
	w.After(d, func() {
		switch {
		case !m.up || m.life != life:
		case m.paused > w.Now():
			m.tickLater(m.paused - w.Now() + w.hop())
		default:
			m.tick()
		}
	})
}

// freeze lets the process stand still in the middle of a turn of each instance. The turns begin
// just before.
func (m *Member) freeze(d time.Duration) {
	if m.frozen || m.silent || m.paused > m.w.Now() {
		return
	}
	for _, s := range m.hosted() {
		if m.up {
			s.take()
		}
	}
	if !m.up {
		return
	}
	m.frozen, m.paused = true, m.w.Now()+d
	m.w.Count(frozenInTurns)
	m.thawLater()
}

func (m *Member) thawLater() {
	life := m.life
	m.w.After(m.paused-m.w.Now(), func() {
		switch {
		case !m.up || m.life != life || !m.frozen:
		case m.paused > m.w.Now(): // longer than was planned
			m.thawLater()
		default:
			m.thaw()
		}
	})
}

// thaw lets the turns go on. What clients asked meanwhile becomes part of them.
func (m *Member) thaw() {
	m.frozen = false
	for _, s := range m.hosted() {
		if m.up && s.within {
			s.finish()
		}
	}
}
