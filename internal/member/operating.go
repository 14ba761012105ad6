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

// Reshapes reports whether the number of instances of a log under a profile, which is merged or not, can change.
func (c *OperationConfig) Reshapes(p *protocol.Profile, merged bool) bool {
	if c.Grows == nil {
		return merged
	}
	return c.Grows(p)
}

// InstanceInput is an input for an instance.
type InstanceInput struct {
	Instance protocol.InstanceID
	Input    protocol.Input
}
