package fit

import (
	"time"

	"github.com/braidlog/braid/protocol"
)

// Report is what one member measured within a span of time. It travels to the leader as JSON.
type Report struct {
	Member protocol.MemberID `json:"member"`
	Span   time.Duration     `json:"span"`
	// Asked are the commands that clients asked this member for, and that were answered within the span.
	Asked Load `json:"asked"`
	// Trips are the round trips to other members, those without a link omitted.
	Trips []Trip `json:"trips,omitempty"`
	Links []Link `json:"links,omitempty"`
	// Loops are the shares of the span, 0…1, in which each instance's event loop was busy, by instance; Apply is that of
	// the apply loop, CPU that of all cores which the process used.
	Loops []float64 `json:"loops,omitempty"`
	Apply float64   `json:"apply"`
	CPU   float64   `json:"cpu"`
	Disk  Disk      `json:"disk"`
	// Unapplied is how many committed entries were not applied at the end of the span.
	Unapplied uint64 `json:"unapplied,omitempty"`
}

// Load counts commands.
type Load struct {
	Commands uint64 `json:"commands"`
	Bytes    uint64 `json:"bytes"` // of commands and their bodies
	// Blind are those commands whose results are not needed, and that may take a lane.
	Blind uint64 `json:"blind,omitempty"`
	// Early are those blind commands whose clients ask to be answered when they are accepted in a lane.
	Early uint64 `json:"early,omitempty"`
	// Large are those with a body, and LargeBytes the bytes of their bodies.
	Large      uint64 `json:"large,omitempty"`
	LargeBytes uint64 `json:"largeBytes,omitempty"`
	// Waited is the sum of the times from each proposal to its answer. Divided by the span it is the mean number of
	// commands in progress.
	Waited time.Duration `json:"waited"`
}

// LoadSince is what was counted between two sums.
func LoadSince(o, l Load) Load {
	return Load{
		Commands: l.Commands - o.Commands, Bytes: l.Bytes - o.Bytes, Blind: l.Blind - o.Blind, Early: l.Early - o.Early,
		Large: l.Large - o.Large, LargeBytes: l.LargeBytes - o.LargeBytes, Waited: l.Waited - o.Waited,
	}
}

// Trip is a round trip to a member: the shortest one of the span.
type Trip struct {
	To   protocol.MemberID `json:"to"`
	Time time.Duration     `json:"time"`
}

// Link is what a member sent to another one.
type Link struct {
	To     protocol.MemberID `json:"to"`
	Bytes  uint64            `json:"bytes"`            // sent within the span
	Queued uint64            `json:"queued,omitempty"` // bytes that waited at the end of the span
}

// Disk is what a member's log did within the span.
type Disk struct {
	Syncs uint64        `json:"syncs"`
	Time  time.Duration `json:"time"` // spent in writing and syncing
	Bytes uint64        `json:"bytes"`
}
