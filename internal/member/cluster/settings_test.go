package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

func sharing(flags ...string) *Handshakes {
	h := NewHandshakes(NewRegister(OwnIdentity{Member: 1}), Birth{}, &saver{})
	h.Shared = SharedSettings{Fixed: []transport.Setting{{Name: "protocol", Value: "x"}}, Table: common.Settings,
		Flags: setting.MustParse(flags...), InLog: true}
	return &h
}

func config(p protocol.Profile) *protocol.Config {
	return &protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}}, Profile: p}
}

// differ names the settings for which a member refuses another one.
func differ(t *testing.T, here, there *Handshakes) string {
	t.Helper()
	own, told := here.Told(), there.Told()
	text, err := told.Text()
	require.NoError(t, err)
	return own.Differ(text, told.Unknown)
}

// Founders compare the whole first profile; members whose log has one tell that, and not their flags.
func TestMembersCompareProfiles(t *testing.T) {
	a, b := sharing("heartbeat-interval=50ms"), sharing("heartbeat-interval=60ms")
	for _, h := range []*Handshakes{a, b} {
		c := config(h.Shared.First())
		h.learnProfile(c, c)
	}
	require.Equal(t, `heartbeat-interval is "60ms" there, "50ms" here`, differ(t, a, b))
	next := a.profile.Next(setting.MustParse("election-timeout=2s"), 7)
	b.learnProfile(config(next), config(next))
	require.Empty(t, differ(t, a, b), "the one that is behind learns it")
	a.learnProfile(config(next), config(next))
	require.Empty(t, differ(t, a, b))
	b.Shared.Fixed[0].Value = "y"
	require.NotEmpty(t, differ(t, a, b))

	joins := sharing("election-timeout=5s")
	joins.learnProfile(&protocol.Config{}, &protocol.Config{})
	require.Empty(t, differ(t, a, joins))
	require.Empty(t, differ(t, joins, a))
}

// A log of an earlier version gets its first profile from the leader, and is compared as before.
func TestTheFirstProfileOfAnOlderLog(t *testing.T) {
	h := sharing("heartbeat-interval=50ms")
	st := &protocol.Status{Role: protocol.Leader, Config: *config(protocol.Profile{})}
	changes := h.firstProfile(st, 9)
	require.Len(t, changes, 1)
	require.Equal(t, protocol.Profile{Version: 1, Values: h.Shared.Flags, Since: 9}, *changes[0].Profile)
	before := h.Told().All
	c := config(*changes[0].Profile)
	h.learnProfile(c, c)
	require.Equal(t, before, h.Told().All)
	st.Config = *c
	require.Empty(t, h.firstProfile(st, 9), "once")
}
