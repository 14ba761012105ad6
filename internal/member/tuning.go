package member

import (
	"time"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

// Tuning has the settings of the applied profile that the rules around the cores use, and the times that follow from
// them.
type Tuning struct {
	Heartbeat, Election time.Duration
	Leaders             protocol.Leaders
	TrimWhole           bool // replace whole copies of coded bodies by a row where that is safe
	Fit                 protocol.Fit

	// GiveUp is for how long a proposal or a read is tried before it fails.
	GiveUp time.Duration
	// Hedge is when a question about a body is repeated to further members, and Retry when all are asked again.
	Hedge, Retry time.Duration
}

// Under returns the settings under the values of a profile. Times that follow from others stay as they are.
func (t Tuning) Under(v setting.Values) Tuning {
	t.Heartbeat, t.Election = common.Heartbeat.In(v), common.ElectionTimeout.In(v)
	t.Leaders, t.TrimWhole, t.Fit = common.Leaders.In(v), common.TrimWhole.In(v), common.Fit.In(v)
	return t
}

// Tune takes in other settings. Operations that have begun keep those with which they began.
func (c *OperationConfig) Tune(t *Tuning) {
	c.Heartbeat, c.Election, c.GiveUp, c.Leaders = t.Heartbeat, t.Election, t.GiveUp, t.Leaders
}
