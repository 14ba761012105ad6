package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol/setting"
)

func tune(version uint64, text string) []Change {
	return []Change{{Kind: Tune, Profile: &Profile{Version: version, Values: setting.MustParse(text), Since: 5}}}
}

// A change of the profile names the version after the one that it replaces.
func TestTuneReplacesTheProfile(t *testing.T) {
	c := Config{Members: []Member{{ID: 1}}}
	first, reason := c.Changed(tune(1, "code-k=2"))
	require.Equal(t, ReasonNone, reason)
	require.Equal(t, Profile{Version: 1, Values: setting.MustParse("code-k=2"), Since: 5}, first.Profile)
	require.False(t, c.SameMembers(&first))
	require.False(t, c.Equal(&first))

	for version, want := range map[uint64]Reason{0: ReasonProfile, 1: ReasonProfile, 2: ReasonNone, 3: ReasonProfile} {
		_, reason = first.Changed(tune(version, "code-k=3"))
		require.Equal(t, want, reason, "version %d", version)
	}
	_, reason = first.Changed(tune(2, "code-k=2"))
	require.Equal(t, ReasonNoChange, reason)
	_, reason = first.Changed(append(tune(2, "code-k=3"), Change{Kind: RemoveMember, Member: Member{ID: 1}}))
	require.Equal(t, ReasonInvalidChange, reason)
	for _, bad := range []Change{{Kind: Tune}, {Kind: UpdateMember, Member: Member{ID: 1}, Profile: &Profile{}}} {
		_, reason = first.Changed([]Change{bad})
		require.Equal(t, ReasonChangeKind, reason)
	}

	second, _ := first.Changed(tune(2, "code-k=3"))
	require.Equal(t, []Profile{first.Profile}, second.Profile.Earlier)
	read, err := DecodeConfig(EncodeConfig(second))
	require.NoError(t, err)
	require.Equal(t, second, read)
	require.NotContains(t, string(EncodeConfig(c)), "profile", "a log without a profile is as before")
}

func TestProfilesAreForgotten(t *testing.T) {
	c := Config{Members: []Member{{ID: 1}}}
	for v := uint64(1); v <= MaxProfiles+4; v++ {
		next, reason := c.Changed(tune(v, []string{"code-k=2", "code-k=3"}[v%2]))
		require.Equal(t, ReasonNone, reason)
		c = next
	}
	require.Len(t, c.Profile.Earlier, MaxProfiles)
	require.Equal(t, uint64(4), c.Profile.Earlier[0].Version)
}

// Other instances take the profile of the first one, and never an older one.
func TestInstancesFollowTheProfile(t *testing.T) {
	c := Config{Members: []Member{{ID: 1}}}
	c.Number()
	next, _ := c.Changed(tune(1, "code-k=2"))
	followed, ok := c.Follow(&next)
	require.True(t, ok)
	require.True(t, followed.SameMembers(&next))
	require.Equal(t, []Change{{Kind: Tune, Profile: &next.Profile}}, Changes(&c, &next))
	_, ok = next.Follow(&c)
	require.False(t, ok, "the target is older")
}
