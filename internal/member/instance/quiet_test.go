package instance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/protocol"
)

// An instance is quiet after some ticks without a change, whatever messages come, and is not in the turn in which
// something happens.
func TestAnInstanceIsQuietWhenNothingHappens(t *testing.T) {
	a := &alone{}
	c, h := a.host()
	turn := func(in Happened) { a.turns(h, &in, func(*Turn) {}) }
	rest := func() {
		t.Helper()
		for range quietTicks + 1 {
			require.False(t, h.isQuiet())
			turn(Happened{Tick: true, Inputs: []protocol.Input{&protocol.Message{Type: membertest.MsgLog}}})
		}
	}
	c.status.Leader = 1
	rest()
	require.True(t, h.isQuiet())

	c.then(func(out *protocol.Effects) {
		out.Seq, out.Persist = 1, append(out.Persist, protocol.Record{Kind: protocol.RecordState})
	})
	turn(Happened{Inputs: []protocol.Input{&protocol.Message{Type: membertest.MsgLog}}})
	require.False(t, h.isQuiet(), "something is written")
	rest()
	require.True(t, h.isQuiet())

	a.now += 3 * h.cfg.Heartbeat
	turn(Happened{})
	require.False(t, h.isQuiet(), "the leader is silent")
	turn(Happened{Inputs: []protocol.Input{&protocol.Message{Type: membertest.MsgLog}}})
	require.True(t, h.isQuiet())

	c.status.Leader = 0
	turn(Happened{Tick: true})
	require.False(t, h.isQuiet(), "no leader is known")
	for range 2 * quietTicks {
		turn(Happened{Tick: true})
	}
	require.False(t, h.isQuiet())
}
