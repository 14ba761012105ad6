package fit

import (
	"github.com/braidlog/braid/protocol"
)

// Decision is what a [Fitter] makes of a [View].
type Decision struct {
	// Costs has each candidate, the active profile first, then by expected throughput.
	Costs []Cost
	// Wish is a change that is expected to gain enough; nil: all is well as it is.
	Wish *Wish
	// Waits says what the wish waits for; "": nothing.
	Waits string
	// Acts: the wish is to be carried out now. It waits for nothing, and the mode is on.
	Acts bool
	// Event is what is to be logged once; "": nothing.
	Event string
	// Avoids has the changes that were taken back and are not tried again yet.
	Avoids []Avoided
}

// Avoided is a change that was taken back.
type Avoided struct {
	Candidate
	Until int64 // from when it may be tried again, in Unix milliseconds
}

// Cost is what the model says of a candidate under today's load.
type Cost struct {
	Candidate
	// Throughput is the expected number of commands a second, and Latency the expected mean time of one, in seconds.
	Throughput float64
	Latency    float64
	// Limit says what limits the throughput: "round trips", "CPU", "leader's link" or that of a member, and as well
	// "disk", "loop" and "apply loop"; or that it was "measured before", and not computed.
	Limit string
	// Excluded is why the candidate is not possible or not allowed now; "": it is.
	Excluded string
}

// Candidate is a profile, with the member that leads under it.
type Candidate struct {
	Protocol string
	// Settings are those that differ from the ones which a switch to Protocol would keep.
	Settings map[string]string
	// Leader is the member that should lead; 0: several lead, or it does not matter.
	Leader protocol.MemberID
}

// Wish is one change: of the profile, or of the member that leads.
type Wish struct {
	Candidate
	// Version is the profile on which it was computed, and which alone it may replace, so that no change is undone
	// unseen.
	Version uint64
	// Gain is the expected factor on today's throughput, 1.2 for a fifth more.
	Gain   float64
	Reason string // in figures
	// TakesBack: an earlier change did not gain what it promised. Settings then note it too, see setting fit-avoid.
	TakesBack bool
	// Restores: a member is missing or slow, and the change lets the others serve again.
	Restores bool
}
