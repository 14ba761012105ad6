package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/control"
	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/transport/netspec"
)

func TestLinksOfMembers(t *testing.T) {
	m := &launch.Manifest{Net: "latency=5ms;m1~m2:loss=1%,latency=7ms # far",
		Members: []launch.Member{{Name: "m1"}, {Name: "m2"}, {Name: "m3"}}}
	link := func(l *links, from, to string) netspec.Link {
		s, err := netspec.Parse(l.spec())
		require.NoError(t, err)
		return s.Link(from, to)
	}
	const ms = time.Millisecond
	before := newLinks(m)
	require.Equal(t, m.Net, before.spec())

	slow := before.with("m1", control.Slow)
	require.Equal(t, netspec.Link{Latency: 107 * ms, Loss: 1}, link(slow, "m1", "m2"))
	require.Equal(t, netspec.Link{Latency: 105 * ms}, link(slow, "m3", "m1"))
	require.Equal(t, netspec.Link{Latency: 5 * ms}, link(slow, "m2", "m3"))

	cut := slow.with("m2", control.Cut)
	for _, way := range [][2]string{{"m1", "m2"}, {"m2", "m1"}, {"m2", "m3"}, {"m3", "m2"}} {
		require.True(t, link(cut, way[0], way[1]).Cut(), way)
	}
	require.Equal(t, 105*ms, link(cut, "m1", "m3").Latency)
	require.Equal(t, []string{"slowed down by 100ms each way", "cut off from the other members", ""},
		[]string{cut.words("m1"), cut.words("m2"), cut.words("m3")})

	// The last action on a member counts.
	require.Equal(t, slow.with("m1", control.Cut).spec(), before.with("m1", control.Cut).spec())
	require.Equal(t, m.Net, cut.with("m1", control.Heal).with("m2", control.Heal).spec())
	require.Equal(t, m.Net, before.spec())
}
