package wpaxos_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/multipaxos"
	"github.com/braidlog/braid/internal/protocol/wpaxos"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/setting"
)

func factory(change func(*protocol.Settings)) conformance.Factory {
	return func(self protocol.Session, rec protocol.Recovered) (protocol.Core, error) {
		c := protocol.Settings{
			Self: self.Member, Session: self, Instance: 1,
			Heartbeat: 10 * conformance.Pace, ElectionTimeout: 100 * conformance.Pace,
			Own: setting.MustParse("stealing=majority:5"),
		}
		if change != nil {
			change(&c)
		}
		return wpaxos.New(c, rec)
	}
}

// settings are the policies of stealing, with the usual limits, and with small ones that keep queues full and memory
// short.
var settings = map[string]func(*protocol.Settings){
	"majority":    nil,
	"consecutive": func(c *protocol.Settings) { c.Own = setting.MustParse("stealing=consecutive:3") },
	"average":     func(c *protocol.Settings) { c.Own = setting.MustParse("stealing=average:8") },
	"tiny": func(c *protocol.Settings) {
		c.MaxFrameBytes, c.MaxUncommittedBytes, c.CacheBytes, c.MaxInflightBytes = 300, 3000, 500, 1000
	},
}

func TestConformance(t *testing.T) {
	for name, change := range settings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conformance.Run(t, multipaxos.Codec, factory(change),
				conformance.Options{Fixed: true, Seeds: testsize.Pick[uint64](testsize.Seeds, 2, 5, 20)})
		})
	}
}

// Random clusters under faults, with voters in zones.
func TestZones(t *testing.T) {
	for text, members := range map[string]int{"zones:3/1/0": 3, "zones:2/0/1": 5, "zones:3/0/1": 6} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			zones, err := quorum.Parse(text)
			require.NoError(t, err)
			zoned := func(c *protocol.Settings) { c.Own = quorum.Setting.Set(c.Own, zones) }
			o := conformance.Options{Fixed: true, Members: members}
			for seed := range uint64(12) {
				if what := conformance.HuntWith(multipaxos.Codec, factory(zoned), o, seed, nil); what != "" {
					t.Errorf("seed %d: %s", seed, what)
				}
			}
		})
	}
}

// The membership is fixed, and every change is answered.
func TestChangesAreRefused(t *testing.T) {
	net := conformance.NewNet(t, 1, 1, multipaxos.Codec, factory(nil))
	var out protocol.Effects
	net.Nodes[0].Core.Step(0, protocol.ProposeChange{Context: 7}, &out)
	require.Equal(t, []protocol.Rejection{{Context: 7, Reason: protocol.ReasonFixed}}, out.Reject)
}

func TestUnknownMutant(t *testing.T) {
	_, err := factory(func(c *protocol.Settings) { c.Mutant = "paxos-read-alone" })(protocol.Session{Member: 1},
		protocol.Recovered{})
	var wrong *protocol.SettingsError
	require.ErrorAs(t, err, &wrong)
}
