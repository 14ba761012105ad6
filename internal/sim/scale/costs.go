package scale

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Cost is the CPU time of an operation, in nanoseconds: once, for each of its parts (entries, commands), and for each
// byte.
type Cost struct {
	Once float64 `json:"ns"`
	Each float64 `json:"ns_each,omitempty"`
	Byte float64 `json:"ns_per_byte,omitempty"`
}

// Costs are the costs of the parts of the work on a machine.
type Costs struct {
	// Factor multiplies all costs of CPU, for everything that the measured parts do not include; see Fit.
	Factor float64 `json:"factor"`

	Submit  Cost `json:"submit"`  // a batch of commands is submitted to a member; each: command
	Keyed   Cost `json:"keyed"`   // likewise, with the commands' keys
	Turn    Cost `json:"turn"`    // a turn of any thread: wakeups, locks, the clock
	Write   Cost `json:"write"`   // a system call that sends
	Read    Cost `json:"read"`    // a system call that receives
	Record  Cost `json:"record"`  // a record is copied to the log's buffer
	Sync    Cost `json:"sync"`    // the CPU's part of writing and syncing
	Command Cost `json:"command"` // each: command that is applied
	Settle  Cost `json:"settle"`  // the proposer gets the result of a batch; each: command

	// Digest is the cost of sealing a byte of a batch, and Unpack that of decoding a byte of a message.
	Digest Cost `json:"digest"`
	Unpack Cost `json:"unpack"`
	// Steps are the costs of the code of each protocol, ascending by the members.
	Steps map[string][]Steps `json:"steps"`

	// Wake is the time until a sleeping thread runs. Hop is the additional delay of a message over loopback. Both are in
	// nanoseconds.
	Wake float64 `json:"wake_ns"`
	Hop  float64 `json:"hop_ns"`
	// Disk is the duration of a small write with its sync: the distribution in nanoseconds, at even steps from the
	// shortest to the longest. DiskShared is the same for three concurrent ones on one disk.
	Disk       []float64 `json:"disk_ns"`
	DiskShared []float64 `json:"disk_shared_ns"`
	// DiskByte is the additional duration of a sync for each byte.
	DiskByte float64 `json:"disk_ns_per_byte"`
}

// validate reports costs that are invalid, or missing for a run.
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

// cpu lists the costs of CPU time, except those of protocols.
func (c *Costs) cpu() []*Cost {
	return []*Cost{&c.Submit, &c.Keyed, &c.Turn, &c.Write, &c.Read, &c.Record, &c.Sync, &c.Command, &c.Settle, &c.Digest, &c.Unpack}
}

// scaled returns the costs multiplied by the factor, with those of the one protocol that runs.
func (c Costs) scaled(of *Config) (Costs, Steps) {
	steps, _ := c.stepsOf(of) // validate has checked them
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

// draw draws from a distribution with even steps.
func draw(rng *rand.Rand, steps []float64) float64 {
	at := rng.Float64() * float64(len(steps)-1)
	i := min(int(at), len(steps)-2)
	return steps[i] + (at-float64(i))*(steps[i+1]-steps[i])
}
