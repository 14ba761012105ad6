package scale

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Cost is the CPU time of something, in nanoseconds: once, for each of its parts (entries,
// commands), and for each byte.
type Cost struct {
	Once float64 `json:"ns"`
	Each float64 `json:"ns_each,omitempty"`
	Byte float64 `json:"ns_per_byte,omitempty"`
}

// Costs is what the pieces of the work cost on a machine.
type Costs struct {
	// Factor multiplies all costs of CPU and stands for what the pieces do not show; see Fit.
	Factor float64 `json:"factor"`

	Submit  Cost `json:"submit"`  // a command is given to a member
	Propose Cost `json:"propose"` // a batch is sealed and given to its leader, or a skip is proposed
	Append  Cost `json:"append"`  // a follower takes a message; each: entry
	Ack     Cost `json:"ack"`     // a leader takes an answer; each: entry that it commits
	Durable Cost `json:"durable"` // an instance learns that its disk is done; each: likewise
	Tick    Cost `json:"tick"`
	Turn    Cost `json:"turn"`    // a turn of any thread: waking others, locks, the clock
	Frame   Cost `json:"frame"`   // a message is built; each: entry
	Write   Cost `json:"write"`   // a system call that sends
	Read    Cost `json:"read"`    // a system call that receives
	Decode  Cost `json:"decode"`  // a received message is decoded; each: entry
	Record  Cost `json:"record"`  // a record is put into the log's buffer
	Sync    Cost `json:"sync"`    // the CPU's part of writing and syncing
	Apply   Cost `json:"apply"`   // a commitment is merged and applied; each: entry
	Command Cost `json:"command"` // each: command that is applied
	Settle  Cost `json:"settle"`  // the result of a batch is given to the proposer; each: command

	// Wake is how long a sleeping thread takes until it runs. Hop is how long a message over
	// loopback takes besides. Both are in nanoseconds.
	Wake float64 `json:"wake_ns"`
	Hop  float64 `json:"hop_ns"`
	// Disk is how long a small write and its sync take: the distribution in nanoseconds, at even
	// steps from the shortest to the longest. DiskShared is the same for three at once on one disk.
	Disk       []float64 `json:"disk_ns"`
	DiskShared []float64 `json:"disk_shared_ns"`
	// DiskByte is how much longer a sync takes for each byte.
	DiskByte float64 `json:"disk_ns_per_byte"`
}

func (c *Costs) validate() error {
	for _, v := range c.cpu() {
		if v.Once < 0 || v.Each < 0 || v.Byte < 0 {
			return &ConfigError{fmt.Sprintf("negative cost %+v", *v)}
		}
	}
	if c.Factor <= 0 || len(c.Disk) < 2 || len(c.DiskShared) < 2 || c.Wake < 0 || c.Hop < 0 {
		return &ConfigError{"costs are not complete: they come from Calibrate"}
	}
	return nil
}

// cpu lists the costs of CPU time.
func (c *Costs) cpu() []*Cost {
	return []*Cost{
		&c.Submit, &c.Propose, &c.Append, &c.Ack, &c.Durable, &c.Tick, &c.Turn, &c.Frame, &c.Write, &c.Read,
		&c.Decode, &c.Record, &c.Sync, &c.Apply, &c.Command, &c.Settle,
	}
}

// scaled returns the costs multiplied by the factor.
func (c Costs) scaled() Costs {
	for _, v := range c.cpu() {
		v.Once, v.Each, v.Byte = v.Once*c.Factor, v.Each*c.Factor, v.Byte*c.Factor
	}
	c.Factor = 1
	return c
}

// spend is a sum of CPU time, in nanoseconds.
type spend float64

func (s *spend) on(c Cost, each, bytes int) {
	*s += spend(c.Once + c.Each*float64(each) + c.Byte*float64(bytes))
}

func (s spend) duration() time.Duration { return time.Duration(s) }

// draw draws from a distribution that is given at even steps.
func draw(rng *rand.Rand, steps []float64) float64 {
	at := rng.Float64() * float64(len(steps)-1)
	i := min(int(at), len(steps)-2)
	return steps[i] + (at-float64(i))*(steps[i+1]-steps[i])
}
