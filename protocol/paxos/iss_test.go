package paxos_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
	"github.com/braidlog/braid/protocol/paxos"
	"github.com/braidlog/braid/protocol/paxos/epochs"
)

// short are epochs that end soon.
var short = epochs.Settings{MinSlots: 4, MaxSlots: 16, Policy: epochs.Combined, Ban: 2, MaxBan: 8}

func issFactory(change func(*protocol.Settings)) conformance.Factory { return issWith(short, change) }

func issWith(set epochs.Settings, change func(*protocol.Settings)) conformance.Factory {
	return func(self protocol.Session, rec protocol.Recovered) (protocol.Core, error) {
		c := protocol.Settings{
			Self: self.Member, Session: self, Instance: 1,
			Heartbeat: 10 * conformance.Pace, ElectionTimeout: 100 * conformance.Pace,
		}
		if change != nil {
			change(&c)
		}
		return paxos.NewISS(c, set, rec)
	}
}

func deriveShort(c protocol.Config) protocol.Derived { return epochs.New(short, c) }

func TestISSConformance(t *testing.T) {
	for name, change := range settings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.RunWith(t, paxos.ISSCodec, issFactory(change), conformance.Options{Skips: true, Derive: deriveShort})
		})
	}
}

// The net watches over who holds bodies, those of cells too.
func TestISSConformanceWithBodies(t *testing.T) {
	for name, change := range settings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.RunWith(t, paxos.ISSCodec, issFactory(change), conformance.Options{Bodies: 500, OneVoter: true, Skips: true, Derive: deriveShort})
		})
	}
}

// One client writes at one member, so its leader has far more slots than the others. They end while it still has some.
// Nothing that it proposes waits for longer than two heartbeats.
func TestISSServesOneClient(t *testing.T) {
	for busy := range protocol.MemberID(3) {
		t.Run(fmt.Sprint(busy+1), func(t *testing.T) {
			t.Parallel()
			net := conformance.NewNet(t, 3, 1, paxos.ISSCodec, issFactory(nil))
			net.Options = conformance.Options{Skips: true, Derive: deriveShort}
			serves(t, net, busy+1)
		})
	}
}

func serves(t *testing.T, net *conformance.Net, busy protocol.MemberID) {
	net.Committed(busy, 10)
	for range 300 {
		e := net.Propose(busy, 10)
		net.Settle()
		for waited := 0; net.Took(e) == 0 || net.Node(busy).Applied < net.Took(e); waited++ {
			require.Less(t, waited, 20, "%s", net.Node(busy).Core)
			for _, n := range net.Nodes {
				net.Tick(n.ID, conformance.Pace)
			}
			net.Settle()
		}
	}
}

// A member finds out that it forgot what it said from the first message on, also before its first tick: a member without
// a log waits for links first, and messages gather meanwhile.
func TestISSFindsOutAtOnceThatItForgot(t *testing.T) {
	voters := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}}
	for name, config := range map[string]protocol.Config{"voter": voters, "joiner": {}} {
		t.Run(name, func(t *testing.T) {
			core, err := issFactory(nil)(protocol.Session{Member: 1}, protocol.Recovered{Base: protocol.Base{Config: config}})
			require.NoError(t, err)
			beat := &protocol.Message{Type: paxos.MsgISSBeat, Instance: 1, From: 2, To: 1, Term: 1, Part: &paxos.ISSPart{Hint: 4}}
			var out protocol.Effects
			core.Step(0, beat, &out)
			require.Equal(t, &protocol.Forgot{Leader: 2, Term: 1, Acked: 4}, out.Forgot)
		})
	}
}
