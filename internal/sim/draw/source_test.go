package draw

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	one   = New("one")
	other = New("other")
)

func TestASourceFollowsFromItsName(t *testing.T) {
	require.Equal(t, number{stream: 0x536592566e7d862d}, numberOf("frost"), "saved seeds know it")
	require.Equal(t, number{stream: first + 5}, numberOf("rot"))
	require.Equal(t, number{stream: first + 30, salt: 0x2545f491}, numberOf("pauses"))
	seen := map[number]string{}
	for name, n := range numbers { // any order: all are compared
		require.Empty(t, seen[n], name)
		seen[n] = name
	}
}

func TestASourceIsDeclaredOnce(t *testing.T) {
	require.Panics(t, func() { New("one") })
	require.Equal(t, []*Source{one, other}, All())
}

func TestSourcesDoNotDisturbEachOther(t *testing.T) {
	alone, both := Begin(7), Begin(7)
	first := alone.From(one).Rand.Uint64()
	both.From(other).Rand.Uint64()
	require.Equal(t, first, both.From(one).Rand.Uint64())
	require.Equal(t, alone.From(one).Rand.Uint64(), both.From(one).Rand.Uint64(), "it goes on where it ended")
	require.NotEqual(t, first, one.Of(8).Rand.Uint64())
}
