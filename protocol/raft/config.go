package raft

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/protocol"
)

// Placement says where entries' payloads are kept; see placement.go.
type Placement string

// PlacementCopy gives every member every payload whole: Raft.
const PlacementCopy Placement = "copy"

// Config sets up one instance on one member. The zero value of an optional field means
// its default.
type Config struct {
	// Self and Instance are required.
	Self     protocol.MemberID
	Instance protocol.InstanceID

	// Heartbeat is how often a leader makes itself heard; > 0.
	Heartbeat time.Duration
	// ElectionTimeout is how long a member does without a leader before it stands for
	// election; the timeout is drawn between it and twice it. At least 2 Heartbeat.
	ElectionTimeout time.Duration

	// MaxFrameBytes bounds the entries of one Append, envelopes included; a frame holds
	// at least one entry. Default 1 MiB.
	MaxFrameBytes int
	// MaxFrameEntries bounds their number; 0: no bound, 1: batching off.
	MaxFrameEntries int
	// PipelineDepth is how many frames may be in flight to a follower; 0: adaptive.
	PipelineDepth int
	// MaxInflightBytes bounds the bytes in flight to a follower. Default 32 MiB.
	MaxInflightBytes int
	// MaxUncommittedBytes bounds what a leader accepts ahead of commitment; beyond it
	// proposals are refused with ReasonOverloaded. Default 256 MiB.
	MaxUncommittedBytes int
	// CacheBytes bounds the entries kept in memory: beyond it, payloads of entries that are
	// durable here are dropped and their envelopes packed to a dozen bytes each, oldest
	// first. Default 64 MiB.
	CacheBytes int

	// NoParallelAppend makes a leader write its log before it sends, for comparison.
	NoParallelAppend bool
	// NoPipeline allows one frame in flight, for comparison.
	NoPipeline bool

	// LeaseReads lets a leader answer reads by its clock instead of asking a quorum. It
	// must be set on all members or none. MaxClockDrift is how much another member's clock
	// may gain on ours in one ElectionTimeout; < ElectionTimeout, default a tenth of it.
	LeaseReads    bool
	MaxClockDrift time.Duration

	// Placement is where payloads are kept. Default PlacementCopy.
	Placement Placement

	// Mutant breaks a rule on purpose; only for tests.
	Mutant Mutant
}

// ConfigError says what is wrong with a Config.
type ConfigError struct{ Detail string }

func (e *ConfigError) Error() string { return "raft: config: " + e.Detail }

func (c Config) withDefaults() (Config, error) {
	for _, d := range []struct {
		v   *int
		def int
	}{
		{&c.MaxFrameBytes, 1 << 20}, {&c.MaxInflightBytes, 32 << 20},
		{&c.MaxUncommittedBytes, 256 << 20}, {&c.CacheBytes, 64 << 20},
	} {
		if *d.v == 0 {
			*d.v = d.def
		}
		if *d.v < 0 {
			return c, &ConfigError{Detail: "negative limit"}
		}
	}
	if c.NoPipeline {
		c.PipelineDepth = 1
	}
	if c.MaxClockDrift == 0 {
		c.MaxClockDrift = c.ElectionTimeout / 10
	}
	if c.Placement == "" {
		c.Placement = PlacementCopy
	}
	switch {
	case c.Self == 0:
		return c, &ConfigError{Detail: "Self is 0"}
	case c.Heartbeat <= 0 || c.ElectionTimeout < 2*c.Heartbeat:
		return c, &ConfigError{Detail: fmt.Sprintf("Heartbeat %s and ElectionTimeout %s: need 0 < 2·Heartbeat ≤ ElectionTimeout", c.Heartbeat, c.ElectionTimeout)}
	case c.MaxFrameEntries < 0 || c.PipelineDepth < 0:
		return c, &ConfigError{Detail: "negative limit"}
	case c.MaxClockDrift < 0 || c.MaxClockDrift >= c.ElectionTimeout:
		return c, &ConfigError{Detail: fmt.Sprintf("MaxClockDrift %s is not below ElectionTimeout", c.MaxClockDrift)}
	case c.Placement != PlacementCopy:
		return c, &ConfigError{Detail: fmt.Sprintf("unknown placement %q", c.Placement)}
	case !knownMutant(c.Mutant):
		return c, &ConfigError{Detail: fmt.Sprintf("unknown mutant %q", c.Mutant)}
	}
	return c, nil
}
