package machine

import (
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// AsStateMachine returns the state machine as package member sees it.
func (s *Machine) AsStateMachine() member.StateMachine {
	if s.Durable() {
		return durable{s}
	}
	return s
}

// durable is a state machine that keeps its own state on disk.
type durable struct{ *Machine }

// Applied implements member.DurableStateMachine.
func (d durable) Applied() protocol.Position { return d.position + d.c.Ahead }

// Sync implements member.DurableStateMachine.
func (d durable) Sync() error {
	if d.damage != nil {
		return d.damage
	}
	d.c.Save(d.Freeze())
	return nil
}

// Birth implements cluster.Born.
func (d durable) Birth() string { return d.birth }

// Damaged implements member.Repairable.
func (d durable) Damaged() error { return d.damage }

// Condemn implements member.Repairable.
func (d durable) Condemn(cause error) {
	d.damage = cause
	d.c.Save(d.Freeze())
}
