package registry_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

// TestBegins: instances begin with the core and the values of their profile, whatever the log began with.
func TestBegins(t *testing.T) {
	choices := map[string]registry.Choice{}
	for _, name := range []string{"raft", "lcr", "niagara", "multi-paxos", "iss"} {
		c, err := registry.Find(name).Choose(setting.Values{}, 3)
		require.NoError(t, err)
		choices[name] = c
	}
	for began, c := range choices {
		same, err := c.Begins(&protocol.Profile{})
		require.NoError(t, err)
		require.Equal(t, c, same)
		own, err := c.Begins(&protocol.Profile{Version: 1, Values: c.Profile()})
		require.NoError(t, err)
		require.Equal(t, c.Name, own.Name)
		require.Equal(t, c.Profile(), own.Values)
		for name, to := range choices {
			p := protocol.Profile{Version: 2, Core: to.Core.Name,
				Values: common.Heartbeat.Set(to.Profile(), 2*common.Heartbeat.In(to.Values))}
			now, err := c.Begins(&p)
			require.NoError(t, err, "%s → %s", began, name)
			require.Same(t, to.Core, now.Core)
			require.Equal(t, to.Order, now.Order)
			require.Equal(t, to.Own(), now.Own())
			require.Equal(t, p.Values, now.Values)
		}
	}
}

// TestAProfileOfAnotherProgram: a core that is not known, or a setting, or an order in which the core does not run.
func TestAProfileOfAnotherProgram(t *testing.T) {
	c, err := registry.Find("raft").Choose(setting.Values{}, 3)
	require.NoError(t, err)
	for i, p := range []protocol.Profile{
		{Core: "later", Values: c.Profile()},
		{Values: setting.MustParse("later=1").Over(c.Profile())},
		{Core: "iss", Values: setting.MustParse("lanes=true").Over(c.Profile())},
		{Core: "multi-paxos", Values: common.Order.Set(c.Profile(), "niagara")},
		{Core: "raft", Values: common.Order.Set(c.Profile(), "keyed")},
	} {
		p.Version = 7
		_, err := c.Begins(&p)
		var wrong *protocol.ProfileError
		require.ErrorAs(t, err, &wrong, fmt.Sprint(i))
		require.EqualValues(t, 7, wrong.Version)
	}
}
