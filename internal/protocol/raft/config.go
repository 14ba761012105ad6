package raft

import (
	"fmt"

	"github.com/braidlog/braid/protocol"
)

// withDefaults completes the settings, and refuses what Raft cannot obey.
func withDefaults(s protocol.Settings) (protocol.Settings, error) {
	s, err := s.WithDefaults()
	switch {
	case err != nil:
		return s, err
	case s.Placement != protocol.PlacementRS && (s.ReadQuorum != 0 || s.WriteQuorum != 0):
		return s, &protocol.SettingsError{Detail: fmt.Sprintf("ReadQuorum and WriteQuorum need placement %s",
			protocol.PlacementRS)}
	case !knownMutant(s.Mutant):
		return s, &protocol.SettingsError{Detail: fmt.Sprintf("unknown mutant %q", s.Mutant)}
	}
	return s, nil
}

// checkVoters: n voters are enough for the quorums that were set, and these meet in MaxK.
func checkVoters(s *protocol.Settings, n int) error {
	if s.Placement != protocol.PlacementRS {
		return nil
	}
	if s.MaxK < 1 || s.ReadQuorum > n || s.WriteQuorum > n || s.ReadQuorum+s.WriteQuorum < n+s.MaxK ||
		2*s.ReadQuorum <= n {
		return &protocol.SettingsError{Detail: fmt.Sprintf("ReadQuorum %d, WriteQuorum %d and MaxK %d with %d voters",
			s.ReadQuorum, s.WriteQuorum, s.MaxK, n)}
	}
	return nil
}
