package slotpaxos_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/slotpaxos"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
)

// panics is a testing.TB that panics instead of failing.
type panics struct{ testing.TB }

func (panics) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

// TestTheChainGoesOnAfterASnapshot: a member that was sent a snapshot, and one that starts from its own, have the
// leader's chain. With another section in the snapshot they have not. They detect it at the next heartbeat, and stop.
func TestTheChainGoesOnAfterASnapshot(t *testing.T) {
	for _, spoiled := range []bool{false, true} {
		net := conformance.NewNet(panics{t}, 3, 1, slotpaxos.Codec, factory(nil))
		net.Options = options
		net.Until("a leader", func() bool { return net.Leader() != nil })
		lead := net.Leader().ID
		late := lead%3 + 1
		net.Crash(late, 0)
		for range 5 {
			net.Propose(lead, 8)
			net.Settle()
		}
		net.Compact(lead, 0)
		if s := &net.Node(lead).Snap.Section; spoiled {
			s.Data = make([]byte, 8)
		}
		net.Restart(late)
		caughtUp := func() {
			net.Until("the member is caught up and hears heartbeats", func() bool {
				st := net.Node(late).Core.Status()
				return st.Leader == lead && st.Last == net.Node(lead).Core.Status().Last && net.Node(late).Snap.Index > 0
			})
			for range 20 {
				net.Tick(lead, conformance.Pace)
				net.Settle()
			}
		}
		if spoiled {
			require.PanicsWithValue(t,
				fmt.Sprintf("member %s stops: %s", late,
					&protocol.DivergedError{Instance: 1, From: lead, Index: net.Node(lead).Core.Status().Last}), caughtUp)
			continue
		}
		require.NotPanics(t, caughtUp)
		net.Compact(late, 0)
		net.Propose(lead, 8)
		net.Settle()
		net.Crash(late, 0)
		net.Restart(late)
		require.NotPanics(t, caughtUp)
	}
}

// Invalid sections are refused, and valid ones survive a round trip.
func FuzzChain(f *testing.F) {
	s := slotpaxos.Derive(protocol.Config{}).Section()
	f.Add(s.Name, s.Version, s.Data)
	f.Add("", uint32(0), []byte(nil))
	f.Add("chain", uint32(1), []byte("short"))
	f.Fuzz(func(t *testing.T, name string, version uint32, data []byte) {
		in, c := protocol.Section{Name: name, Version: version, Data: data}, slotpaxos.Derive(protocol.Config{})
		if err := c.Restore(in); err == nil {
			require.Equal(t, in, c.Section())
		} else {
			require.False(t, name == s.Name && version == s.Version && len(data) == len(s.Data), err)
		}
	})
}
