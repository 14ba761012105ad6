package paper

import (
	"bufio"
	"io"
	"sync"
	"time"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench"
)

// machine is a member's state machine: bench's, which records the order of applied commands, with a price for
// applying and a bell that rings when a command has been applied. The result of a command with a body is the body's
// name.
type machine struct {
	m    *bench.Machine
	cost time.Duration // of one command
	// positions: the result of each command is its position.
	positions bool
	debt      time.Duration // cost that was not slept for yet; only Apply uses it
	store     store         // the values that strong reads read

	mu      sync.Mutex
	applied uint64
	target  uint64
	bell    chan time.Time // holds the instant at which applied reached target
}

func newMachine(cost time.Duration) *machine {
	return &machine{m: bench.NewMachine(1), cost: cost, bell: make(chan time.Time, 1)}
}

// ringAt makes the bell ring when a given number of commands have been applied since the beginning.
func (m *machine) ringAt(target uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.target = target
	select {
	case <-m.bell: // of an aborted run
	default:
	}
	if m.applied >= target {
		m.bell <- time.Now()
	}
}

// Apply implements [braid.StateMachine].
func (m *machine) Apply(commands []braid.Command) error {
	err := m.m.Apply(commands)
	m.count(commands)
	return err
}

// count keeps the values of applied commands, pays for them, and rings the bell.
func (m *machine) count(commands []braid.Command) {
	for i := range commands {
		m.store.put(commands[i].Data)
		switch {
		case m.positions:
			commands[i].Result = m.applied + uint64(i) // only Apply and Restore change it
		case commands[i].Body != nil:
			commands[i].Result = *commands[i].Body
		}
	}
	m.pay(len(commands))
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.applied
	m.applied += uint64(len(commands))
	if before < m.target && m.applied >= m.target {
		select {
		case m.bell <- time.Now():
		default:
		}
	}
}

// pay sleeps for the cost of commands. Short sleeps are not exact, so debts accumulate, and the excess of a sleep is
// subtracted.
func (m *machine) pay(commands int) {
	const least = 2 * time.Millisecond
	m.debt += m.cost * time.Duration(commands)
	if m.debt < least {
		return
	}
	began := time.Now()
	time.Sleep(m.debt)
	m.debt -= time.Since(began)
}

// Snapshot implements [braid.StateMachine].
func (m *machine) Snapshot() (braid.Snapshot, error) {
	s, err := m.m.Snapshot()
	return &storing{s, m.store.copied()}, err
}

// Restore implements [braid.StateMachine].
func (m *machine) Restore(r io.Reader) error {
	in := bufio.NewReader(r)
	if err := m.store.restore(in); err != nil {
		return err
	}
	err := m.m.Restore(in)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied, _ = m.m.Digest()
	return err
}
