package paxos_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/iss"
	"github.com/braidlog/braid/internal/protocol/iss/epochs"
	"github.com/braidlog/braid/internal/protocol/multipaxos"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/conformance"
	"github.com/braidlog/braid/protocol/quorum"
)

// cores are the protocols whose acceptors and proposers are of this package.
var cores = map[string]struct {
	codec   *protocol.Codec
	options conformance.Options
	start   func(protocol.Settings, protocol.Recovered) (protocol.Core, error)
}{
	"multi-paxos": {
		codec: multipaxos.Codec,
		start: func(c protocol.Settings, rec protocol.Recovered) (protocol.Core, error) {
			return multipaxos.New(c, rec)
		},
	},
	"iss": {
		codec: iss.Codec,
		options: conformance.Options{Skips: true,
			Derive: func(c protocol.Config) protocol.Derived { return epochs.New(short, c) }},
		start: func(c protocol.Settings, rec protocol.Recovered) (protocol.Core, error) {
			return iss.New(c, short, rec)
		},
	},
}

// short are epochs that end soon.
var short = epochs.Settings{MinSlots: 4, MaxSlots: 16, Policy: epochs.Combined, Ban: 2, MaxBan: 8}

// factory starts members of a protocol with certain quorums.
func factory(name string, quorums quorum.System) conformance.Factory {
	return func(self protocol.Session, rec protocol.Recovered) (protocol.Core, error) {
		c := protocol.Settings{
			Self: self.Member, Session: self, Instance: 1,
			Heartbeat: 10 * conformance.Pace, ElectionTimeout: 100 * conformance.Pace,
		}
		c.Own = quorum.Setting.Set(c.Own, quorums)
		return cores[name].start(c, rec)
	}
}

// flexible are quorums that are no majorities, with the size of a cluster.
var flexible = []struct {
	quorums quorum.System
	members int
}{
	{quorum.Sizes(4, 2), 5}, {quorum.Sizes(2, 4), 5}, {quorum.Sizes(3, 1), 3}, {quorum.Sizes(1, 3), 3},
	{quorum.InGrid(2), 4}, {quorum.InGrid(2), 6}, {quorum.InGrid(3), 6},
	{quorum.InZones(quorum.Zones{Count: 3, Lost: 1}), 5}, {quorum.InZones(quorum.Zones{Count: 2, Down: 1}), 5},
}

// Random clusters under faults, with quorums that are no majorities. Members come and go as far as the quorums allow.
func TestFlexibleQuorums(t *testing.T) {
	for _, f := range flexible {
		for name, core := range cores {
			t.Run(fmt.Sprintf("%s/%s of %d", name, f.quorums, f.members), func(t *testing.T) {
				t.Parallel()
				elect, decide, _, _ := f.quorums.Parts()
				o := core.options
				o.Members, o.ReadQuorum, o.WriteQuorum = f.members, elect, decide
				if elect == 0 {
					o.Grid = f.quorums
				}
				for seed := range testsize.Pick[uint64](testsize.Seeds, 1, 2, 6) {
					o.Bodies = int(seed % 2 * 500)
					o.OneVoter = name == "iss" && o.Bodies > 0
					if what := conformance.HuntWith(core.codec, factory(name, f.quorums), o, seed, nil); what != "" {
						t.Errorf("seed %d: %s", seed, what)
					}
				}
			})
		}
	}
}

// Quorums that do not intersect, or that the voters cannot form, are refused when a member starts. A member that does
// not know the members yet cannot check them.
func TestQuorumsThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		quorums quorum.System
		members int
		says    string
	}{
		{quorum.Sizes(3, 2), 5, "sum has to be more than 5"},
		{quorum.Sizes(4, 2), 3, "there are 3 voters"},
		{quorum.InGrid(4), 3, "3 voters are no column of 4"},
		{quorum.Sizes(4, 2), 0, ""},
		{quorum.Sizes(4, 2), 5, ""},
	} {
		var rec protocol.Recovered
		for i := range c.members {
			rec.Base.Config.Members = append(rec.Base.Config.Members, protocol.Member{ID: protocol.MemberID(i + 1)})
		}
		for name := range cores {
			_, err := factory(name, c.quorums)(protocol.Session{Member: 1, Incarnation: 1}, rec)
			if c.says == "" {
				require.NoError(t, err)
				continue
			}
			var wrong *protocol.SettingsError
			require.ErrorAs(t, err, &wrong)
			require.ErrorContains(t, err, c.says)
		}
	}
}

// A change after which the quorums do not intersect is refused permanently. A change after which they are only larger
// than needed is accepted.
func TestAChangeThatQuorumsDoNotFit(t *testing.T) {
	for name, core := range cores {
		t.Run(name, func(t *testing.T) {
			net := conformance.NewNet(t, 5, 1, core.codec, factory(name, quorum.Sizes(4, 2)))
			net.Options = core.options
			net.Committed(1, 10)
			refused := func(reason protocol.Reason, kind protocol.ChangeKind, ids ...protocol.MemberID) {
				var changes []protocol.Change
				for _, id := range ids {
					changes = append(changes, protocol.Change{Kind: kind, Member: protocol.Member{ID: id}})
				}
				context := uint64(0)
				net.Until("an answer", func() bool {
					if l := net.Leader(); l != nil && (context == 0 || net.Refused(context).Retryable()) {
						context = net.Change(l.ID, changes...)
						net.Settle()
					}
					return context > 0 && net.Refused(context) == reason
				})
			}
			refused(protocol.ReasonQuorums, protocol.AddVoter, 6)
			refused(protocol.ReasonQuorums, protocol.AddJoining, 6)
			refused(protocol.ReasonQuorums, protocol.RemoveMember, 4, 5)
			require.False(t, protocol.ReasonQuorums.Retryable())
		})
	}
}
