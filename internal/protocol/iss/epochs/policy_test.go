package epochs

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// suspects are records of voters 1, 2, 3 …, each with the epoch in which it was suspected and the rest of its ban.
func suspects(pairs ...[2]int) (voters []record) {
	for i, p := range pairs {
		voters = append(voters,
			record{id: protocol.MemberID(i + 1), suspected: uint64(p[0]), penalty: uint32(p[1]), left: uint32(p[1])})
	}
	return voters
}

func TestElect(t *testing.T) {
	for _, c := range []struct {
		why    string
		policy Policy
		voters []record
		want   string
	}{
		{"everybody", Simple, suspects([2]int{9, 4}, [2]int{9, 4}, [2]int{9, 4}), "[1 2 3]"},
		{"who has no ban", Backoff, suspects([2]int{9, 4}, [2]int{3, 0}, [2]int{0, 0}), "[2 3]"},
		{"all are banned: the shortest ban ends", Backoff, suspects([2]int{9, 4}, [2]int{9, 2}, [2]int{9, 3}), "[2]"},
		{"all are banned for as long", Backoff, suspects([2]int{9, 4}, [2]int{9, 4}), "[1 2]"},
		{"one alone", Backoff, suspects([2]int{9, 4}), "[1]"},
		{"one of three may fail: the last one", Blacklist, suspects([2]int{8, 0}, [2]int{9, 0}, [2]int{7, 0}), "[1 3]"},
		{"of equals the lower id", Blacklist, suspects([2]int{9, 0}, [2]int{9, 0}, [2]int{9, 0}), "[2 3]"},
		{"two of five may fail", Blacklist, suspects([2]int{9, 0}, [2]int{8, 0}, [2]int{9, 0}, [2]int{7, 0}, [2]int{0, 0}),
			"[2 4 5]"},
		{"none of two may fail", Blacklist, suspects([2]int{9, 0}, [2]int{9, 0}), "[1 2]"},
		{"it is as long ago as the longest ban", Blacklist, suspects([2]int{2, 0}, [2]int{0, 0}, [2]int{0, 0}), "[2 3]"},
		{"it is longer ago", Blacklist, suspects([2]int{1, 0}, [2]int{0, 0}, [2]int{0, 0}), "[1 2 3]"},
		{"one is on the list, one has a ban", Combined, suspects([2]int{9, 0}, [2]int{8, 1}, [2]int{0, 0}), "[3]"},
		{"one is on the list, the others are banned", Combined, suspects([2]int{9, 1}, [2]int{8, 3}, [2]int{7, 2}), "[3]"},
	} {
		s := Settings{MinSlots: 4, MaxSlots: 4, Policy: c.policy, Ban: 1, MaxBan: 8}
		require.Equal(t, c.want, fmt.Sprint(elect(c.voters, 10, &s)), "%s: %s", c.policy, c.why)
	}
}

// If no voter could lead, all bans are shortened by the same number, except for those of the blacklist.
func TestBansAreShortened(t *testing.T) {
	s := Settings{MinSlots: 4, MaxSlots: 4, Policy: Combined, Ban: 1, MaxBan: 8}
	voters := suspects([2]int{9, 2}, [2]int{8, 5}, [2]int{7, 3})
	elect(voters, 10, &s)
	require.Equal(t, []uint32{2, 2, 0}, []uint32{voters[0].left, voters[1].left, voters[2].left})
}

// Of more voters than may lead those with the lowest ids lead.
func TestMostLeaders(t *testing.T) {
	voters := suspects(make([][2]int, MaxLeaders+9)...)
	voters[0].left, voters[0].penalty = 1, 1
	s := Default()
	leaders := elect(voters, 10, &s)
	require.Len(t, leaders, MaxLeaders)
	require.Equal(t, []protocol.MemberID{2, MaxLeaders + 1}, []protocol.MemberID{leaders[0], leaders[MaxLeaders-1]})
}

// Bans become twice as long with each suspicion, and half as long with each epoch that the member leads well.
func TestBansGrowAndDecay(t *testing.T) {
	s := Settings{MinSlots: 4, MaxSlots: 4, Policy: Backoff, Ban: 2, MaxBan: 9}
	r := record{id: 1, share: 1}
	var bans []uint32
	for epoch := range uint64(4) {
		r.suspect(epoch+1, &s)
		bans = append(bans, r.left)
		for r.left > 0 {
			r.serve(false, &s)
		}
	}
	require.Equal(t, []uint32{2, 4, 8, 9}, bans)
	require.EqualValues(t, 9, r.penalty, "time alone does not help")
	for _, want := range []uint32{4, 2, 0, 0} {
		r.serve(true, &s)
		require.Equal(t, want, r.penalty)
	}
	require.EqualValues(t, 4, r.suspected)
}

func TestSettings(t *testing.T) {
	good := Default()
	require.NoError(t, good.Validate())
	require.GreaterOrEqual(t, good.MaxSlots/fullShare, 256, "a busy leader with the smallest share")
	require.LessOrEqual(t, good.MaxSlots, 1024)
	for why, change := range map[string]func(*Settings){
		"too few slots":       func(s *Settings) { s.MinSlots = 2 },
		"too many":            func(s *Settings) { s.MaxSlots = 1 << 17 },
		"no power of two":     func(s *Settings) { s.MinSlots = 96 },
		"bounds in disorder":  func(s *Settings) { s.MinSlots = 2048 },
		"unknown policy":      func(s *Settings) { s.Policy = policies },
		"no ban":              func(s *Settings) { s.Ban = 0 },
		"bans in disorder":    func(s *Settings) { s.Ban = s.MaxBan + 1 },
		"a ban without limit": func(s *Settings) { s.MaxBan = 1<<16 + 1 },
	} {
		s := Default()
		change(&s)
		require.Error(t, s.Validate(), why)
	}
	for p := Simple; p < policies; p++ {
		require.NotContains(t, p.String(), "policy")
		named, err := policyOf(p.String())
		require.NoError(t, err)
		require.Equal(t, p, named)
	}
	require.Equal(t, "policy(4)", policies.String())
}

func TestChosenSettings(t *testing.T) {
	none, err := Chosen(protocol.EpochSettings{})
	require.NoError(t, err)
	require.Equal(t, Default(), none, "what is left out is as by default")
	all := protocol.EpochSettings{MinSlots: 32, MaxSlots: 32, EqualShares: true, Policy: "backoff", Ban: 3, MaxBan: 5}
	chosen, err := Chosen(all)
	require.NoError(t, err)
	require.Equal(t, Settings{MinSlots: 32, MaxSlots: 32, EqualShares: true, Policy: Backoff, Ban: 3, MaxBan: 5}, chosen)
	require.Equal(t, all, chosen.Choice())
	for _, c := range []protocol.EpochSettings{{MinSlots: 33}, {MinSlots: 2048}, {MaxSlots: 32}, {MinSlots: -4},
		{Policy: "all"}, {Ban: -1}, {MaxBan: 7}} {
		_, err := Chosen(c)
		var refused *protocol.SettingsError
		require.ErrorAs(t, err, &refused, "%+v", c)
	}
}

// Members compare the text of settings, so it must contain all of them.
func TestSettingsSayAllThatIsSet(t *testing.T) {
	texts := map[string]bool{}
	for _, c := range []protocol.EpochSettings{
		{}, {MinSlots: 32}, {MaxSlots: 2048}, {EqualShares: true}, {Policy: "simple"}, {Policy: "backoff"},
		{Policy: "blacklist"}, {Ban: 4}, {MaxBan: 128},
	} {
		s, err := Chosen(c)
		require.NoError(t, err)
		require.False(t, texts[s.Choice().String()], "%+v", c)
		texts[s.Choice().String()] = true
		other := Default()
		require.Equal(t, s == other, string(s.numbers(nil)) == string(other.numbers(nil)), "a snapshot tells %+v", c)
	}
}
