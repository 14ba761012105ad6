package raft

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/protocol"
)

// Placement says where entries' bodies are kept; see placement.go.
type Placement string

const (
	// PlacementCopy gives every member every body whole: Raft.
	PlacementCopy Placement = "copy"
	// PlacementCode gives every member a row of a body's Reed–Solomon code, or the whole
	// where too few members take rows: CRaft.
	PlacementCode Placement = "code"
	// PlacementRS gives every member a row, always: RS-Raft, for comparison. It survives
	// fewer crashes than a majority, and its voters never change.
	PlacementRS Placement = "rs"
)

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
	// Leaders says who should lead this instance, one of several. Members then stand one after
	// the other, Stagger apart, when a leader is gone: long enough for one of them to be elected.
	// Default of Stagger: an eighth of ElectionTimeout.
	Leaders protocol.Leaders
	Stagger time.Duration

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

	// Placement is where bodies are kept. Default PlacementCopy. Members with different ones
	// understand each other, but for PlacementRS.
	Placement Placement
	// MaxK is the most fragments that make a body whole. PlacementCode: 0 for one that leaves
	// room for a member to be slow, a majority less one; never more than a majority is
	// used. PlacementRS: always used, required.
	MaxK int
	// ExtraWhole is how many whole copies PlacementCode makes beyond those that are needed,
	// where it makes any.
	ExtraWhole int
	// ReadQuorum and WriteQuorum are how many voters elect and how many commit, only with
	// PlacementRS: ReadQuorum + WriteQuorum ≥ voters + MaxK, 2·ReadQuorum > voters.
	ReadQuorum, WriteQuorum int

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
	if c.Stagger == 0 {
		c.Stagger = c.ElectionTimeout / 8
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
	case c.Leaders != protocol.LeadersAny && c.Leaders != protocol.LeadersTogether && c.Leaders != protocol.LeadersSpread:
		return c, &ConfigError{Detail: fmt.Sprintf("unknown leaders %q", c.Leaders)}
	case c.Stagger < 0 || c.Stagger > c.ElectionTimeout:
		return c, &ConfigError{Detail: fmt.Sprintf("Stagger %s is not in 0…ElectionTimeout", c.Stagger)}
	case !knownMutant(c.Mutant):
		return c, &ConfigError{Detail: fmt.Sprintf("unknown mutant %q", c.Mutant)}
	}
	if err := c.checkPlacement(); err != nil {
		return c, err
	}
	return c, nil
}

func (c *Config) checkPlacement() error {
	refuse := func(format string, args ...any) error { return &ConfigError{Detail: fmt.Sprintf(format, args...)} }
	switch {
	case c.Placement != PlacementCopy && c.Placement != PlacementCode && c.Placement != PlacementRS:
		return refuse("unknown placement %q", c.Placement)
	case c.MaxK < 0 || c.MaxK > protocol.Rows || c.ExtraWhole < 0:
		return refuse("MaxK %d, ExtraWhole %d", c.MaxK, c.ExtraWhole)
	case c.Placement != PlacementCode && c.ExtraWhole > 0, c.Placement == PlacementCopy && c.MaxK > 0:
		return refuse("MaxK %d and ExtraWhole %d mean nothing with placement %s", c.MaxK, c.ExtraWhole, c.Placement)
	case c.Placement != PlacementRS && (c.ReadQuorum != 0 || c.WriteQuorum != 0):
		return refuse("ReadQuorum and WriteQuorum need placement %s", PlacementRS)
	}
	return nil
}

// checkVoters: n voters are enough for the quorums that were set, and these meet in MaxK.
func (c *Config) checkVoters(n int) error {
	if c.Placement != PlacementRS {
		return nil
	}
	if c.MaxK < 1 || c.ReadQuorum > n || c.WriteQuorum > n || c.ReadQuorum+c.WriteQuorum < n+c.MaxK || 2*c.ReadQuorum <= n {
		return &ConfigError{Detail: fmt.Sprintf("ReadQuorum %d, WriteQuorum %d and MaxK %d with %d voters", c.ReadQuorum, c.WriteQuorum, c.MaxK, n)}
	}
	return nil
}
