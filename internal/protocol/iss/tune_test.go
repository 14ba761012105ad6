package iss

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// A member that restarts has the settings of the log, not those of its flags.
func TestARestartHasTheProfile(t *testing.T) {
	open := func(m protocol.Mutant, settings ...string) (*ISS, error) {
		c := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}},
			Profile: protocol.Profile{Version: 3, Values: setting.MustParse(settings...)}}
		core, err := Info.New(protocol.Settings{Self: 1, Instance: 1, Heartbeat: time.Second,
			ElectionTimeout: 10 * time.Second, Mutant: m}, protocol.Recovered{Base: protocol.Base{Config: c}})
		s, _ := core.(*ISS)
		return s, err
	}
	s, err := open("", "relays=2", "election-timeout=7s")
	require.NoError(t, err)
	require.NoError(t, s.Check())
	require.Equal(t, 7*time.Second, s.cfg.ElectionTimeout)
	require.Equal(t, 2, relay.Groups.In(s.cfg.Own))

	s, err = open(MutantProfileForgotten, "relays=2")
	require.NoError(t, err)
	require.ErrorContains(t, s.Check(), "profile 0, but 3 is active")

	_, err = open("", "unknown=2")
	var unusable *protocol.ProfileError
	require.ErrorAs(t, err, &unusable)
}
