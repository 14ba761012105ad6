package protocol

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/protocol/setting"
)

// Placement is where entries' bodies are kept.
type Placement string

const (
	// PlacementCopy gives every member every body whole.
	PlacementCopy Placement = "copy"
	// PlacementCode gives every member a row of a body's Reed–Solomon code, or the whole if too few members take rows
	// (docs/internals/craft.md).
	PlacementCode Placement = "code"
	// PlacementRS always gives every member a row, for comparison. It tolerates fewer crashes than a majority, and its
	// voters never change.
	PlacementRS Placement = "rs"
)

// Settings configure one instance on one member. The zero value of an optional field means its default. A protocol
// does not use all of them. It returns an error for those that it cannot support.
type Settings struct {
	// Self and Instance are required.
	Self     MemberID
	Instance InstanceID
	// Session is that of the member's incarnation. It names the member's lane.
	Session Session

	// Heartbeat is the interval of a leader's heartbeats; > 0.
	Heartbeat time.Duration
	// ElectionTimeout is the least time without a leader after which a member campaigns; the timeout is random between
	// it and twice it. At least 2 Heartbeat.
	ElectionTimeout time.Duration
	// Leaders is the preferred leader of this instance, one of several. When a leader is gone, members campaign one
	// after the other, Stagger apart: long enough for one of them to be elected. Default of Stagger: an eighth of
	// ElectionTimeout.
	Leaders Leaders
	Stagger time.Duration
	// Merged: the instance's log is merged with those of others, in rounds. The order then leaves out skips, and a seal
	// that does not count.
	Merged bool

	// MaxFrameBytes bounds the entries of one message, envelopes included; a message holds
	// at least one entry. Default 1 MiB.
	MaxFrameBytes int
	// MaxFrameEntries bounds their number; 0: no bound, 1: batching off.
	MaxFrameEntries int
	// PipelineDepth is how many frames may be in flight to a follower; 0: adaptive.
	PipelineDepth int
	// MaxInflightBytes bounds the bytes in flight to a follower. Default 32 MiB.
	MaxInflightBytes int
	// MaxUncommittedBytes bounds the uncommitted entries that a leader accepts; beyond it proposals are refused with
	// ReasonOverloaded. Default 256 MiB.
	MaxUncommittedBytes int
	// CacheBytes bounds the entries kept in memory: beyond it, payloads of entries that are durable here are dropped
	// and their envelopes packed to a dozen bytes each, oldest first. Default 64 MiB.
	CacheBytes int

	// NoParallelAppend makes a leader write its log before it sends, for comparison.
	NoParallelAppend bool
	// NoPipeline allows one frame in flight, for comparison.
	NoPipeline bool

	// LeaseReads lets a leader answer reads by its clock instead of a quorum. It must be set on all members or none.
	// MaxClockDrift bounds how much another member's clock gains on this one's in one ElectionTimeout; <
	// ElectionTimeout, default a tenth of it.
	LeaseReads    bool
	MaxClockDrift time.Duration

	// Placement is where bodies are kept. Default PlacementCopy. Members with different ones are compatible, except for
	// PlacementRS.
	Placement Placement
	// MaxK is the maximal number of fragments that make a body whole. PlacementCode: 0 for a default that tolerates a
	// slow member, a majority less one; never more than a majority is used. PlacementRS: always used, required.
	MaxK int
	// ExtraWhole is the number of whole copies that PlacementCode makes beyond the necessary ones, if it makes any.
	ExtraWhole int
	// ReadQuorum and WriteQuorum are the numbers of voters that elect and that commit, if these are not majorities.
	// With PlacementRS: ReadQuorum + WriteQuorum ≥ voters + MaxK and 2·ReadQuorum > voters.
	ReadQuorum, WriteQuorum int

	// Own are the protocol's own settings. Only its core reads them.
	Own setting.Values

	// Mutant breaks a rule on purpose; only for tests.
	Mutant Mutant
}

// StallTimeouts is the number of election timeouts without a completion after which a disk counts as stalled: its
// leader steps down, and its followers do not campaign. Heartbeats of a member with a dead disk would block a cluster
// forever.
const StallTimeouts = 4

// SettingsError indicates what is wrong with Settings. Nothing was started.
type SettingsError struct{ Detail string }

func (e *SettingsError) Error() string { return "protocol: settings: " + e.Detail }

// WithDefaults returns the settings with defaults for unset ones. It returns a [*SettingsError] for values that no
// protocol accepts.
func (s Settings) WithDefaults() (Settings, error) {
	for _, d := range []struct {
		v   *int
		def int
	}{
		{&s.MaxFrameBytes, 1 << 20}, {&s.MaxInflightBytes, 32 << 20},
		{&s.MaxUncommittedBytes, 256 << 20}, {&s.CacheBytes, 64 << 20},
	} {
		if *d.v == 0 {
			*d.v = d.def
		}
		if *d.v < 0 {
			return s, &SettingsError{Detail: "negative limit"}
		}
	}
	if s.NoPipeline {
		s.PipelineDepth = 1
	}
	if s.MaxClockDrift == 0 {
		s.MaxClockDrift = s.ElectionTimeout / 10
	}
	if s.Stagger == 0 {
		s.Stagger = s.ElectionTimeout / 8
	}
	if s.Placement == "" {
		s.Placement = PlacementCopy
	}
	return s, s.check()
}

// Complete checks the protocol's own settings and brings them into normal form. The error is a [*SettingsError].
func (s *Settings) Complete(own setting.Table) error {
	v, err := own.Complete(s.Own)
	if err != nil {
		return &SettingsError{Detail: err.Error()}
	}
	s.Own = v
	return nil
}

func (s *Settings) check() error {
	switch {
	case s.Self == 0:
		return &SettingsError{Detail: "Self is 0"}
	case s.Heartbeat <= 0 || s.ElectionTimeout < 2*s.Heartbeat:
		return &SettingsError{
			Detail: fmt.Sprintf("Heartbeat %s and ElectionTimeout %s: need 0 < 2·Heartbeat ≤ ElectionTimeout", s.Heartbeat,
				s.ElectionTimeout)}
	case s.MaxFrameEntries < 0 || s.PipelineDepth < 0:
		return &SettingsError{Detail: "negative limit"}
	case s.MaxClockDrift < 0 || s.MaxClockDrift >= s.ElectionTimeout:
		return &SettingsError{Detail: fmt.Sprintf("MaxClockDrift %s is not below ElectionTimeout", s.MaxClockDrift)}
	case s.Leaders != LeadersAny && s.Leaders != LeadersTogether && s.Leaders != LeadersSpread &&
		s.Leaders != LeadersBegin && s.Leaders != LeadersAll:
		return &SettingsError{Detail: fmt.Sprintf("unknown leaders %q", s.Leaders)}
	case s.Stagger < 0 || s.Stagger > s.ElectionTimeout:
		return &SettingsError{Detail: fmt.Sprintf("Stagger %s is not in 0…ElectionTimeout", s.Stagger)}
	}
	return s.checkPlacement()
}

func (s *Settings) checkPlacement() error {
	refuse := func(format string, args ...any) error { return &SettingsError{Detail: fmt.Sprintf(format, args...)} }
	switch {
	case s.Placement != PlacementCopy && s.Placement != PlacementCode && s.Placement != PlacementRS:
		return refuse("unknown placement %q", s.Placement)
	case s.MaxK < 0 || s.MaxK > Rows || s.ExtraWhole < 0:
		return refuse("MaxK %d, ExtraWhole %d", s.MaxK, s.ExtraWhole)
	case s.Placement != PlacementCode && s.ExtraWhole > 0, s.Placement == PlacementCopy && s.MaxK > 0:
		return refuse("MaxK %d and ExtraWhole %d mean nothing with placement %s", s.MaxK, s.ExtraWhole, s.Placement)
	}
	return nil
}
