package member

import (
	"time"

	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
)

// OperationConfig says how a member carries out operations.
type OperationConfig struct {
	Self                protocol.MemberID
	Heartbeat, Election time.Duration
	GiveUp              time.Duration
	Leaders             protocol.Leaders
	Grows               bool        // others can join the one instance with which the log began
	Mutant              mutant.Name // operation-unconfirmed
}

// InstanceInput is an input for an instance.
type InstanceInput struct {
	Instance protocol.InstanceID
	Input    protocol.Input
}
