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
	return own.Differ(text, told.Unknown, true)
}

// Founders compare the whole first profile; members whose log has one tell that, and not their flags.
func TestMembersCompareProfiles(t *testing.T) {
	a, b := sharing("heartbeat-interval=50ms"), sharing("heartbeat-interval=60ms")
	for _, h := range []*Handshakes{a, b} {
		c := config(h.Shared.First())
		h.learnProfile(c, c, false)
	}
	require.Equal(t, `heartbeat-interval is "60ms" there, "50ms" here`, differ(t, a, b))
	next := a.profile.Next(setting.MustParse("election-timeout=2s"), 7)
	b.learnProfile(config(next), config(next), false)
	require.Empty(t, differ(t, a, b), "the one that is behind learns it")
	a.learnProfile(config(next), config(next), false)
	require.Empty(t, differ(t, a, b))
	b.Shared.Fixed[0].Value = "y"
	require.NotEmpty(t, differ(t, a, b))

	joins := sharing("election-timeout=5s")
	joins.learnProfile(&protocol.Config{}, &protocol.Config{}, false)
	require.Empty(t, differ(t, a, joins))
	require.Empty(t, differ(t, joins, a))
}

// sealedProfile follows a profile behind a seal.
func sealedProfile(p protocol.Profile, core string, flags ...string) *protocol.Config {
	s := protocol.Seal{Profile: protocol.Profile{Version: p.Version + 1, Core: core,
		Values: setting.MustParse(flags...)}}
	c := s.Begin(config(p))
	return &c
}

// Behind a seal nothing that members compare follows from flags, or from how the log began. A member that is not behind
// it yet is linked with one that is, and so is one that joins with any flags.
func TestMembersCompareProfilesBehindASeal(t *testing.T) {
	a, b := sharing("heartbeat-interval=50ms"), sharing("heartbeat-interval=50ms")
	first := a.Shared.First()
	sealed := sealedProfile(first, "y", "quorums=4/2")
	b.learnProfile(config(first), config(first), false)
	a.learnProfile(sealed, sealed, false)
	require.Empty(t, differ(t, a, b), "the one that is not behind it learns it")
	require.Empty(t, differ(t, b, a))

	later := *config(sealed.Profile.Next(setting.MustParse("quorums=4/2", "relays=1"), 7))
	b.Shared = SharedSettings{Flags: setting.MustParse("lanes=true"), Table: common.Settings}.Of("z")
	b.Shared.Fixed = append(b.Shared.Fixed, transport.Setting{Name: "instances", Value: "4"})
	b.learnProfile(sealed, sealed, true)
	require.Empty(t, differ(t, a, b), "flags do not count")
	b.learnProfile(&later, &later, true)
	require.Empty(t, differ(t, a, b))
	b.learnProfile(&protocol.Config{}, &protocol.Config{}, false)
	require.Empty(t, differ(t, a, b), "it joins")
	require.Empty(t, differ(t, b, a))

	other := sealedProfile(first, "z", "quorums=4/2")
	b.learnProfile(other, other, false)
	require.Equal(t, `protocol is "braid/1 z" there, "braid/1 y" here`, differ(t, a, b))
	other = sealedProfile(first, "y", "quorums=3/3")
	b.learnProfile(other, other, false)
	require.Equal(t, `quorums is "3/3" there, "4/2" here`, differ(t, a, b))
	tuned := config(first.Next(first.Values, 7))
	b.learnProfile(tuned, tuned, false)
	require.Contains(t, differ(t, a, b), `sealed is not known there, "true" here`, "two logs")
}

// Behind a seal the flags of any protocol are compared with what the log has, once.
func TestFlagsOfAnotherProtocolAreOverruled(t *testing.T) {
	mode := setting.Setting[string]{Name: "mode", Default: "plain", Change: setting.Sealed}
	s := SharedSettings{Name: "old", Table: common.Settings, Flags: setting.MustParse("heartbeat-interval=50ms"),
		Given: setting.MustParse("heartbeat-interval=50ms", "mode=fast", "lanes=true", "order=niagara"),
		Began: []Overruled{{"protocol", "flags", "as it began"}}}
	s.Behind = func(p *protocol.Profile) (string, setting.Table) {
		return "new", setting.Union(common.Settings, setting.Table{Rows: []setting.Any{&mode}})
	}
	p := s.First()
	p.Version = 1
	require.Equal(t, s.Began, s.Overruled(&p)[:1])
	next := sealedProfile(p, "new", "heartbeat-interval=60ms").Profile
	require.ElementsMatch(t, []Overruled{{"protocol", "old", "new"}, {"heartbeat-interval", "50ms", "60ms"},
		{"mode", "fast", "plain"}}, s.Overruled(&next))
	s.Name = "new"
	s.Given = setting.MustParse("mode=plain")
	require.Empty(t, s.Overruled(&next))
}

// A log of an earlier version gets its first profile from the leader, and is compared as before.
func TestTheFirstProfileOfAnOlderLog(t *testing.T) {
	h := sharing("heartbeat-interval=50ms")
	st := &protocol.Status{Role: protocol.Leader, Config: *config(protocol.Profile{})}
	old := VersionUnknown
	versions := func(protocol.MemberID) Version { return old }
	require.Empty(t, h.firstProfile(st, 9, versions), "member 2 may come back with an earlier version")
	old = VersionEarlier
	require.Empty(t, h.firstProfile(st, 9, versions))
	old = VersionTunes
	changes := h.firstProfile(st, 9, versions)
	require.Len(t, changes, 1)
	require.Equal(t, protocol.Profile{Version: 1, Values: h.Shared.Flags, Since: 9}, *changes[0].Profile)
	before := h.Told().All
	c := config(*changes[0].Profile)
	h.learnProfile(c, c, false)
	require.Equal(t, before, h.Told().All)
	st.Config = *c
	require.Empty(t, h.firstProfile(st, 9, versions), "once")
}

// Members of an earlier version ignore that a log grows, and are told a setting that they do not have. Those that know
// profiles and have not applied the growth yet are not refused.
func TestAnEarlierVersionIsRefusedOnceTheLogHasGrown(t *testing.T) {
	here, there := sharing(), sharing()
	c := config(here.Shared.First())
	c.Profile.Since = 9
	for _, h := range []*Handshakes{here, there} {
		h.learnProfile(c, c, false)
	}
	told := func() string {
		own := here.Told()
		text, err := own.Text()
		require.NoError(t, err)
		return text
	}
	require.NotContains(t, told(), "profile")
	here.learnProfile(c, c, true)
	require.Contains(t, told(), "profile=1\n", "an earlier version compares it as a setting, and has none")
	require.Empty(t, differ(t, here, there))
	require.Empty(t, differ(t, there, here))
}
