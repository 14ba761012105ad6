package braid

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// TestProgramsFollowProfiles: what instances have of their core is that of the profile with which they begin. A member
// that was started with the flags of one protocol has instances of several.
func TestProgramsFollowProfiles(t *testing.T) {
	o := Options{Self: 1, Cluster: 2, Dir: "d", Members: []Member{{ID: 1, PeerURLs: []string{"http://127.0.0.1:1"}}}}
	c, err := o.complete()
	require.NoError(t, err)
	for _, name := range []string{"", "raft", "multi-paxos", "iss", "slotpaxos"} {
		of, p := registry.Find("raft"), protocol.Profile{}
		if name != "" {
			of, p.Core = registry.Find(name), name
		}
		chosen, err := of.Choose(setting.Values{}, 3)
		require.NoError(t, err)
		p.Version, p.Values = 3, chosen.Profile()
		config := protocol.Config{Members: o.Members, Profile: p}

		program, err := c.program(&p)
		require.NoError(t, err, name)
		require.Same(t, of.Core.Codec, program.Codec, name)
		require.Equal(t, of.Core.Proposing.Accepted, program.Proposing.Accepted, name)
		require.Equal(t, of.Core.Cells.Accepted() == nil, program.Accepted == nil, name)
		require.Equal(t, of.Core.Derive == nil, program.Derive == nil, name)
		if program.Derive != nil {
			require.IsType(t, of.Core.Derive(chosen.Own(), config), program.Derive(config), name)
		}
		core, err := program.Core(5, protocol.Session{}, protocol.Recovered{Base: protocol.Base{Config: config}})
		require.NoError(t, err, name)
		s := core.Status()
		require.Equal(t, p, s.Config.Profile, name)
	}
	_, err = c.program(&protocol.Profile{Version: 3, Core: "later"})
	require.ErrorContains(t, err, "profile 3 of the log: protocol later: this program does not know it")
	require.ErrorAs(t, err, new(*protocol.ProfileError))
}
