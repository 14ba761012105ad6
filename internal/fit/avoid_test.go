package fit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAvoidIsReadAsWritten(t *testing.T) {
	all := []avoided{{"iss", 1, 1800000600}, {"niagara+code+spread+5", 3, 1800002400}}
	text := formatAvoid(all)
	require.Equal(t, "iss:1@1800000600,niagara+code+spread+5:3@1800002400", text)
	require.Equal(t, all, parseAvoid(text))
	require.Empty(t, parseAvoid(""))
	require.Equal(t, all[:1], parseAvoid("iss:1@1800000600,,x,:1@2,a:0@2,b:9@2,c:1@-2,d:1@x,e@1:2"),
		"what is not understood is left out")
}

func TestAvoidDoubles(t *testing.T) {
	const wall = 1_800_000_000_000
	text, now := "", int64(wall)
	for _, minutes := range []time.Duration{10, 20, 40, 80, 160, 320, 640, 1280, 1280} {
		text = avoidNext(text, "iss", now, avoidFor)
		require.Equal(t, minutes*time.Minute, avoids(text, "iss", now), text)
		require.Zero(t, avoids(text, "raft", now))
		now += (minutes * time.Minute).Milliseconds()
		require.Zero(t, avoids(text, "iss", now))
	}
	require.Equal(t, "iss:1@1800260401", avoidNext("iss:8@1800173400", "iss", 1_800_259_801_000, avoidFor),
		"a day later it is the first time again")
}

func TestAvoidIsBounded(t *testing.T) {
	text := ""
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		text = avoidNext(text, key, 1_800_000_000_000, avoidFor)
	}
	require.Len(t, parseAvoid(text), maxAvoided)
	require.Zero(t, avoids(text, "b", 1_800_000_000_000))
	require.NotZero(t, avoids(text, "c", 1_800_000_000_000))
	require.Zero(t, avoids("a:1@601", "a", 0), "a wall clock that was wrong does not exclude")
	require.Equal(t, avoidFor, avoids("a:1@600", "a", 0))
	require.Equal(t, 2*avoidFor, avoids("a:2@1200", "a", 0))
	require.Equal(t, "a:2@600", avoidNext("a:1@600", "a", 0, time.Second), "not for less than before")
	text = avoidNext("a:1@9,b:1@8,c:1@7,d:1@3,e:1@4,f:1@5,g:1@6,h:1@9", "i", 0, time.Second)
	require.Equal(t, "a:1@9,b:1@8,c:1@7,e:1@4,f:1@5,g:1@6,h:1@9,i:1@1", text, "the one that ends first gives way")
}
