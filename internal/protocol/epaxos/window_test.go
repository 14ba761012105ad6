package epaxos_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/epaxos"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
)

// A member fails with hundreds of commands in progress, which one other member knows. That one recovers fewer and
// fewer at once while it gets no answers, and all of them soon when it does. It does not wait for each of them
// separately.
func TestFewRecoveriesAtOnce(t *testing.T) {
	const commands = 300
	net := conformance.NewNet(t, 3, 1, epaxos.Codec, factory(nil))
	net.Options.Keyed = 4
	for _, n := range net.Nodes {
		net.Tick(n.ID, conformance.Pace)
	}
	net.Settle()
	for range commands {
		net.Propose(3, 10)
	}
	net.Sync(3)
	net.Cut = func(from, to protocol.MemberID) bool { return to != 1 }
	deliver(net, epaxos.MsgPreAccept)
	net.Queue = nil
	net.Crash(3, 0)

	pass := func(d time.Duration, deaf bool) (most int) {
		for range d / conformance.Pace {
			for id := protocol.MemberID(1); id <= 2; id++ {
				net.Tick(id, conformance.Pace)
				net.Sync(id)
			}
			most = max(most, sent(net, epaxos.MsgRecover))
			if deaf {
				net.Queue = nil
			} else {
				net.Settle()
			}
		}
		return most
	}
	const timeout = 100 * conformance.Pace
	most := pass(4*timeout, true)
	require.LessOrEqual(t, most, 2*32+2, "to two members")
	require.Positive(t, most)
	most = pass(4*timeout, true)
	require.LessOrEqual(t, most, 16, "fewer when nobody answers")
	net.Cut = nil
	pass(6*timeout, false)
	last := net.Propose(1, 10)
	pass(timeout, false)
	require.NotZero(t, net.Took(last), "what was under way is decided")
	for id := protocol.MemberID(1); id <= 2; id++ {
		require.EqualValues(t, commands+1, net.Node(id).Applied)
	}
}
