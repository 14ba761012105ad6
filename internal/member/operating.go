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
	// Grows reports whether the number of instances of a log under a profile can change; nil: it cannot, unless the log
	// is merged.
	Grows  func(*protocol.Profile) bool
	Mutant mutant.Name // operation-unconfirmed, drain-to-drained
}

// InstanceInput is an input for an instance.
type InstanceInput struct {
	Instance protocol.InstanceID
	Input    protocol.Input
}
