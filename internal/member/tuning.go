package member

import (
	"time"

	"github.com/braidlog/braid/protocol"
)

// Tuning has the settings of the applied profile that the rules around the cores use.
type Tuning struct {
	Heartbeat, Election time.Duration
	Leaders             protocol.Leaders
	TrimWhole           bool // replace whole copies of coded bodies by a row where that is safe
}

// GiveUp is for how long a proposal or a read is tried before it fails.
func (t *Tuning) GiveUp() time.Duration { return 5*time.Second + 5*t.Election }

// Hedge is when a question about a body is repeated to further members.
func (t *Tuning) Hedge() time.Duration { return max(t.Heartbeat/2, time.Millisecond) }

// Tune takes in other settings. Operations that have begun keep those with which they began.
func (c *OperationConfig) Tune(t *Tuning) {
	c.Heartbeat, c.Election, c.GiveUp, c.Leaders = t.Heartbeat, t.Election, t.GiveUp(), t.Leaders
}
