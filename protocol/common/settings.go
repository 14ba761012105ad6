package common

import (
	"errors"
	"fmt"
	"time"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// Limits and defaults of these settings.
const (
	MaxCodeK         = 64 // more fragments than members are useless
	DefaultInstances = 4  // of protocol niagara, as many as the paper's network cards
	longestElection  = 50 * time.Second
)

// The settings that all protocols have. A protocol or an order for which one has no meaning allows its default alone:
// see registry.Protocol.Choose, which also fills in the defaults that depend on the protocol.
var (
	// Order is how instances are merged into the global log. The default is the protocol's own.
	Order = &setting.Setting[string]{
		Name: "order", Agree: true, Change: setting.Never,
		Check: setting.Check[string]{Range: "single, niagara or keyed"},
		Help:  "how instances are merged into one log; given by the protocol",
	}
	// Leaders are the members that should lead the instances.
	Leaders = &setting.Setting[protocol.Leaders]{
		Name: "leaders", Text: setting.Words[protocol.Leaders](), Agree: true, Change: setting.Local,
		Check: setting.Check[protocol.Leaders]{Range: "together or spread"},
		Help: "with niagara: the leaders of the instances: together, one member leads all; spread, each member leads some " +
			"(default together, with placement code spread)",
	}
	// Placement is where members keep the bodies of large commands. The default is the protocol's own.
	Placement = &setting.Setting[protocol.Placement]{
		Name: "placement", Text: setting.Words[protocol.Placement](), Agree: true, Change: setting.ByEntry,
		Check: setting.Check[protocol.Placement]{Range: "copy or code"},
		Help: "where large values are kept: copy, whole on every member; code, a fragment on each (default: the protocol's " +
			"own)",
	}
	// CodeK is the maximal number of fragments that make a body whole.
	CodeK = &setting.Setting[int]{
		Name: "code-k", Agree: true, Change: setting.Local, Check: setting.Range(0, MaxCodeK),
		Help: "with placement code: maximal number of fragments that make a value whole, 1 to 64; never more " +
			"than a majority " +
			"of the members (0: a majority less one, which tolerates a slow member)",
	}
	// ElectionTimeout is the time without a leader after which a member campaigns.
	ElectionTimeout = &setting.Setting[time.Duration]{
		Name: "election-timeout", Default: time.Second, Agree: true, Change: setting.Timed,
		Check: setting.Range(time.Millisecond, longestElection),
		Help:  electionHelp,
		Parts: milliseconds("election-timeout", electionHelp, time.Second),
	}
	// LeaseReads lets a leader answer reads by its clock.
	LeaseReads = &setting.Setting[bool]{
		Name: "lease-reads", Agree: true, Change: setting.Timed,
		Help: "answer reads by the leader's lease, which relies on clocks of the same speed, instead of a round trip",
	}
	// Heartbeat is the interval of a leader's heartbeats.
	Heartbeat = &setting.Setting[time.Duration]{
		Name: "heartbeat-interval", Default: 100 * time.Millisecond, Change: setting.Local,
		Check: setting.AtLeast(time.Millisecond),
		Help:  heartbeatHelp,
		Parts: milliseconds("heartbeat-interval", heartbeatHelp, 100*time.Millisecond),
	}
	// Instances is the number of instances with which a new cluster begins. The default depends on the protocol.
	Instances = &setting.Setting[int]{
		Name: "instances", Change: setting.Reshaped, Check: setting.Range(0, protocol.MaxInstances),
		Help: "with niagara and iss: number of instances of a new cluster, 1 to 64 (0: 4 with niagara, 1 with iss)",
	}
	// ExtraWhole is the number of whole copies of bodies beyond the necessary ones, if there are any.
	ExtraWhole = &setting.Setting[int]{
		Name: "extra-whole", Change: setting.Local, Check: setting.Range(0, MaxCodeK),
		Help: "with placement code: while members are down, number of whole copies beyond the necessary ones",
	}
	// TrimWhole cuts whole copies down to fragments.
	TrimWhole = &setting.Setting[bool]{
		Name: "trim-whole", Change: setting.Local,
		Help: "with placement code: cut whole copies down to a fragment once enough members hold theirs",
	}
)

const (
	electionHelp  = "milliseconds without a leader before an election, at least 3 heartbeats"
	heartbeatHelp = "milliseconds between a leader's heartbeats"
)

// What the leader does when another profile would fit the load better.
var (
	// Fit says whether that is measured, and whether it is done.
	Fit = &setting.Setting[protocol.Fit]{
		Name: "fit", Default: protocol.FitAdvise, Text: setting.Words[protocol.Fit](), Agree: true, Untold: true,
		Change: setting.Local,
		Check: setting.Check[protocol.Fit]{Range: "off, advise or on", Refuse: func(f protocol.Fit) error {
			if f != protocol.FitOff && f != protocol.FitAdvise && f != protocol.FitOn {
				return errors.New("not off, advise or on")
			}
			return nil
		}},
		Help: "what to do when another protocol, setting or leader would fit the load better: off, nothing; advise, say " +
			"so; on, change it",
	}
	// FitAvoid has the changes that were taken back, and when: see package fit.
	FitAvoid = &setting.Setting[string]{
		Name: "fit-avoid", Agree: true, Untold: true, Change: setting.Local,
		Help: "with fit on: changes that were taken back, and are not tried again for some time; the leader sets it",
	}
)

// Layout has the settings of the log's instances and of the placement of bodies.
var Layout = setting.Table{Rows: []setting.Any{Order, Leaders, Placement, CodeK, Instances, ExtraWhole, TrimWhole}}

// Time has the settings of timing. No protocol changes their defaults.
var Time = setting.Table{Rows: []setting.Any{Heartbeat, ElectionTimeout, LeaseReads}, Fit: threeHeartbeats}

// Fitting has the settings of fitting the log to its load. No protocol changes their defaults.
var Fitting = setting.Table{Rows: []setting.Any{Fit, FitAvoid}}

// Settings are all of them. Members compare them in this order.
var Settings = setting.Table{Rows: setting.Union(Layout, Time, Fitting).Rows, Fit: threeHeartbeats}

// threeHeartbeats requires that one lost heartbeat does not start an election.
func threeHeartbeats(v setting.Values) error {
	beat, timeout := Heartbeat.In(v), ElectionTimeout.In(v)
	if timeout < 3*beat {
		return &setting.Error{Name: ElectionTimeout.Name, Text: timeout.String(),
			Detail: fmt.Sprintf("is less than 3 heartbeats of %s", beat)}
	}
	return nil
}
