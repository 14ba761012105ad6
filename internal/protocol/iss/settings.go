package iss

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/setting"
)

// NoSkip and SkipWait set the behavior of a leader that has nothing to propose. See owner.go and epoch.go.
var (
	NoSkip = &setting.Setting[bool]{
		Name: "no-skip", Change: setting.Local, Experiment: true, Detour: true,
		Help: "empty values of an idle leader are decided by votes",
	}
	SkipWait = &setting.Setting[time.Duration]{
		Name: "skip-wait", Check: setting.AtLeast(time.Duration(0)), Change: setting.Local, Experiment: true, Detour: true,
		Help: "time after which an idle leader skips its slots",
	}
)

// Settings are those of ISS alone.
var Settings = setting.Table{Rows: []setting.Any{quorum.Setting, relay.Groups, epochs.Setting, NoSkip, SkipWait}}

// options are what an idle leader does.
type options struct {
	noSkip   bool
	skipWait time.Duration
}

func optionsOf(v setting.Values) options {
	return options{noSkip: NoSkip.In(v), skipWait: SkipWait.In(v)}
}
