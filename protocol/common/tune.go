package common

import (
	"math/bits"
	"time"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// Apply sets the fields of s that have a setting in this package, and the own settings of a protocol with a table, as
// values say. The values must be complete, those of the protocol included.
func Apply(s *protocol.Settings, own setting.Table, v setting.Values) {
	s.Heartbeat, s.ElectionTimeout = Heartbeat.In(v), ElectionTimeout.In(v)
	s.LeaseReads = LeaseReads.In(v)
	s.Leaders, s.Placement = Leaders.In(v), Placement.In(v)
	s.MaxK, s.ExtraWhole = 0, 0
	if s.Placement == "" {
		s.Placement = protocol.PlacementCopy
	}
	if s.Placement != protocol.PlacementCopy {
		s.MaxK, s.ExtraWhole = CodeK.In(v), ExtraWhole.In(v)
	}
	s.Own = own.Only(v)
}

// Tuned returns complete settings under a profile, complete too. One of version 0 changes nothing. Bounds that are
// relative to the election timeout keep their ratio to it. The error is a [*protocol.ProfileError].
func Tuned(s protocol.Settings, own setting.Table, p *protocol.Profile) (protocol.Settings, error) {
	if p.Version == 0 {
		return s, nil
	}
	v, err := setting.Union(Settings, own).Complete(p.Values)
	if err != nil {
		return s, &protocol.ProfileError{Version: p.Version, Err: err}
	}
	before := s.ElectionTimeout
	Apply(&s, own, v)
	s.MaxClockDrift = scale(s.MaxClockDrift, before, s.ElectionTimeout)
	s.Stagger = scale(s.Stagger, before, s.ElectionTimeout)
	if s, err = s.WithDefaults(); err != nil {
		return s, &protocol.ProfileError{Version: p.Version, Err: err}
	}
	return s, nil
}

// scale returns the duration that is to timeout as d is to before. None of them is negative, and d is not above before.
func scale(d, before, timeout time.Duration) time.Duration {
	high, low := bits.Mul64(uint64(d), uint64(timeout))
	quotient, _ := bits.Div64(high, low, uint64(before))
	return time.Duration(quotient)
}
