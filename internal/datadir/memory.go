package datadir

import (
	"io"
	"sync"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/protocol"
)

// InMemory makes a state machine that keeps its state in memory a [member.Mendable]: a member that joins a cluster that
// began with a state gives up its own empty one, and waits for that of another member. A state machine that is durable,
// or Mendable already, is returned as it is, and so are those of which [apply.CheckMachine] and [cluster.BirthOf] must
// see the type.
func InMemory(sm member.StateMachine) member.StateMachine {
	switch sm.(type) {
	case member.DurableStateMachine, member.Mendable, *apply.Groups, cluster.Born:
		return sm
	}
	m := &memory{StateMachine: sm}
	if k, ok := sm.(bodyKeeper); ok {
		return keepingMemory{m, k}
	}
	return m
}

// bodyKeeper is what package body asks of a state machine.
type bodyKeeper interface {
	LiveBodies(yield func(protocol.BodyRef)) error
}

// memory is a state machine in memory that may be without a state.
type memory struct {
	member.StateMachine
	mu   sync.Mutex
	gone error // why there is no state; nil: there is one
}

// keepingMemory is a memory that refers to bodies.
type keepingMemory struct {
	*memory
	bodyKeeper
}

func (m *memory) Damaged() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone
}

func (m *memory) Condemn(cause error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone = cause
}

func (m *memory) Apply(commands []member.Command) error {
	if err := m.Damaged(); err != nil {
		return err
	}
	return m.StateMachine.Apply(commands)
}

func (m *memory) Snapshot() (member.Snapshot, error) {
	if err := m.Damaged(); err != nil {
		return nil, err
	}
	return m.StateMachine.Snapshot()
}

func (m *memory) Restore(r io.Reader) error {
	if err := m.StateMachine.Restore(r); err != nil {
		return err
	}
	m.Condemn(nil)
	return nil
}
