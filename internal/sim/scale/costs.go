package scale

import (
	"fmt"
	"math/rand/v2"
	"slices"
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

	Submit  Cost `json:"submit"`  // commands that make a batch are given to a member; each: command
	Keyed   Cost `json:"keyed"`   // likewise, where the member is told their keys
	Turn    Cost `json:"turn"`    // a turn of any thread: waking others, locks, the clock
	Write   Cost `json:"write"`   // a system call that sends
	Read    Cost `json:"read"`    // a system call that receives
	Record  Cost `json:"record"`  // a record is put into the log's buffer
	Sync    Cost `json:"sync"`    // the CPU's part of writing and syncing
	Command Cost `json:"command"` // each: command that is applied
	Settle  Cost `json:"settle"`  // the result of a batch is given to the proposer; each: command

	// Digest is what it costs to seal a byte of a batch, and Unpack to decode a byte of a message.
	Digest Cost `json:"digest"`
	Unpack Cost `json:"unpack"`
	// Steps are what the code of each protocol costs, ascending by the members.
	Steps map[string][]Steps `json:"steps"`

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

// validate reports what is wrong with the costs, or missing for a run.
func (c *Costs) validate(of *Config) error {
	steps, ok := c.stepsOf(of)
	if !ok {
		return &ConfigError{"the costs of " + of.code() + " are not known: they come from Calibrate"}
	}
	for _, v := range slices.Concat(c.cpu(), steps.cpu()) {
		if v.Once < 0 || v.Each < 0 || v.Byte < 0 {
			return &ConfigError{fmt.Sprintf("negative cost %+v", *v)}
		}
	}
	if c.Factor <= 0 || len(c.Disk) < 2 || len(c.DiskShared) < 2 || c.Wake < 0 || c.Hop < 0 {
		return &ConfigError{"costs are not complete: they come from Calibrate"}
	}
	return nil
}

// cpu lists the costs of CPU time, but for those of protocols.
func (c *Costs) cpu() []*Cost {
	return []*Cost{&c.Submit, &c.Keyed, &c.Turn, &c.Write, &c.Read, &c.Record, &c.Sync, &c.Command, &c.Settle, &c.Digest, &c.Unpack}
}

// scaled returns the costs multiplied by the factor, with those of the one protocol that runs.
func (c Costs) scaled(of *Config) (Costs, Steps) {
	steps, _ := c.stepsOf(of) // validate has seen them
	for _, v := range slices.Concat(c.cpu(), steps.cpu()) {
		v.Once, v.Each, v.Byte = v.Once*c.Factor, v.Each*c.Factor, v.Byte*c.Factor
	}
	c.Factor = 1
	return c, steps
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
