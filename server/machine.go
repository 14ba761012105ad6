package server

import (
	"context"
	"io"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
)

// machine makes a store a state machine of the log. The store's positions are the positions of the
// global log.
type machine struct {
	store *store.Store
	// commands is reused from one Apply to the next.
	commands []store.Command
}

var (
	_ braid.DurableStateMachine = (*machine)(nil)
	_ braid.BodyKeeper          = (*machine)(nil)
	_ braid.Repairable          = (*machine)(nil)
	_ braid.Born                = (*machine)(nil)
	_ braid.Versioned           = (*machine)(nil)
)

// Apply implements braid.StateMachine. The name applyEntries of the part that changes the database is expected on the
// stack by etcd's own consistency checks.
func (m *machine) Apply(commands []braid.Command) error { return m.applyEntries(commands) }

func (m *machine) applyEntries(commands []braid.Command) error {
	m.commands = m.commands[:0]
	for i := range commands {
		m.commands = append(m.commands, store.Command{
			Position: uint64(commands[i].Position), Data: commands[i].Data, Body: storeRef(commands[i].Body),
		})
	}
	err := m.store.Apply(m.commands)
	for i := range m.commands {
		commands[i].Result = m.commands[i].Result
	}
	clear(m.commands)
	return err
}

// Snapshot implements braid.StateMachine.
func (m *machine) Snapshot() (braid.Snapshot, error) {
	snapshot, err := m.store.Snapshot()
	if err != nil {
		return nil, err
	}
	return frozen{snapshot}, nil
}

// Restore implements braid.StateMachine.
func (m *machine) Restore(r io.Reader) error { return m.store.Restore(r) }

// Applied implements braid.DurableStateMachine.
func (m *machine) Applied() braid.Position { return braid.Position(m.store.Applied()) }

// Sync implements braid.DurableStateMachine.
func (m *machine) Sync() error { return m.store.Sync() }

// Damaged implements braid.Repairable.
func (m *machine) Damaged() error { return m.store.Damage().Err() }

// Birth implements braid.Born.
func (m *machine) Birth() string { return m.store.Birth() }

// Versions of the state: quotasVersion has quotas of prefixes.
const (
	plainVersion = iota
	quotasVersion
)

// StateVersion implements braid.Versioned.
func (m *machine) StateVersion() (needed, known uint8) {
	if m.store.HadPrefixQuotas() {
		return quotasVersion, quotasVersion
	}
	return plainVersion, quotasVersion
}

// Condemn implements braid.Repairable.
func (m *machine) Condemn(cause error) { m.store.Damage().Condemn(cause) }

// LiveBodies implements braid.BodyKeeper.
func (m *machine) LiveBodies(yield func(braid.BodyRef)) error {
	return m.store.LiveBodies(func(ref store.BodyRef) { yield(logRef(ref)) })
}

// frozen makes a store's snapshot a braid.Snapshot.
type frozen struct{ *store.Snapshot }

// WriteTo implements braid.Snapshot.
func (f frozen) WriteTo(ctx context.Context, w io.Writer) error { return f.Snapshot.WriteTo(ctx, w) }
