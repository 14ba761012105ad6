package device

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/transport/netspec"
	"github.com/braidlog/braid/protocol"
)

// Distances are the delays of messages from one member to another: between DelayMin and DelayMax. With a
// specification the delay is the latency between the two members, plus jitter.
type Distances struct {
	DelayMin, DelayMax time.Duration
	Net                netspec.Spec  // the latency of each pair of members, if they differ; member i is m<i>
	Farthest           time.Duration // the longest of them
}

// ParseNet parses a specification. It may have only latencies and jitter: losses and narrow links of a simulation
// follow from the seed.
func ParseNet(text string) (netspec.Spec, error) {
	spec, err := netspec.Parse(text)
	if err == nil {
		err = spec.LatencyOnly()
	}
	return spec, err
}

// LeastHeartbeat returns the shortest interval of heartbeats that distances allow. All other times follow from it. An
// election timeout is at least eighteen times the longest latency.
func (d *Distances) LeastHeartbeat() time.Duration { return 6 * d.Farthest }

// Stretch adapts the bounds to the specification. DelayMax is then the longest delay of any message, and its excess
// over the longest latency may be added to each delay.
func (d *Distances) Stretch() {
	if !d.Net.Enabled() {
		return
	}
	d.DelayMin, d.DelayMax = min(d.DelayMin, d.Farthest), d.Farthest+min(d.DelayMax-d.DelayMin, d.Farthest/2)
}

// Near drops the specification: from now on all members are as near to each other as the bounds say.
func (d *Distances) Near() { d.Net, d.Farthest = netspec.Spec{}, 0 }

// Describe returns a line for a trace; "" if all distances are the same.
func (d *Distances) Describe() string {
	if !d.Net.Enabled() {
		return ""
	}
	return fmt.Sprintf("paths between members: %s\n", &d.Net)
}

// Path returns the shortest and the longest delay from one member to another.
func (n *Network) Path(d *Distances, from, to protocol.MemberID) (lo, hi time.Duration) {
	if !d.Net.Enabled() {
		return d.DelayMin, d.DelayMax
	}
	l := n.Link(from, to)
	if l.path == nil {
		path := d.Net.Link(nameOf(from), nameOf(to))
		l.path = &path
	}
	return max(0, l.path.Latency-l.path.Jitter), l.path.Latency + l.path.Jitter + max(0, d.DelayMax-d.Farthest)
}

// nameOf returns a member's name in a specification.
func nameOf(id protocol.MemberID) string { return fmt.Sprintf("m%d", uint64(id)) }
