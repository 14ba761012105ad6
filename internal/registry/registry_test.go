package registry_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// Every protocol starts a core in each of its placements, with a cluster of five.
func TestEveryProtocolStarts(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range registry.All() {
		require.False(t, seen[p.Name], "two protocols %s", p.Name)
		seen[p.Name] = true
		require.NotEmpty(t, p.Does, p.Name)
		require.NotEmpty(t, p.Orders, p.Name)
		require.Same(t, p, registry.Find(p.Name))
		for _, place := range p.Placements {
			t.Run(fmt.Sprintf("%s %s", p.Name, place), func(t *testing.T) { starts(t, p, place) })
		}
	}
}

func starts(t *testing.T, p *registry.Protocol, place protocol.Placement) {
	var config protocol.Config
	for id := range protocol.MemberID(5) {
		config.Members = append(config.Members, protocol.Member{ID: id + 1, Slot: uint8(id)})
	}
	config.Number()
	s := protocol.Settings{Self: 1, Instance: protocol.FirstInstance, Heartbeat: time.Millisecond,
		ElectionTimeout: 10 * time.Millisecond, Placement: place}
	if p.Quorums != nil {
		q, err := p.Quorums(5, registry.RSFragments)
		require.NoError(t, err)
		s.MaxK, s.ReadQuorum, s.WriteQuorum = registry.RSFragments, q, q
	}
	core, err := p.Core.New(s, protocol.Recovered{Base: protocol.Base{Config: config}})
	require.NoError(t, err)
	require.NoError(t, core.Check())
	require.Equal(t, protocol.MemberID(1), core.Status().Self)
	s.Mutant = "nobody knows it"
	_, err = p.Core.New(s, protocol.Recovered{Base: protocol.Base{Config: config}})
	var wrong *protocol.SettingsError
	require.ErrorAs(t, err, &wrong)
}

// A mutant has one core: its name says where it is looked for.
func TestMutantsHaveOneCore(t *testing.T) {
	of := map[protocol.Mutant]string{}
	for _, c := range registry.Cores() {
		for _, m := range c.Mutants {
			require.Empty(t, of[m.Name], "mutant %s of %s", m.Name, c.Name)
			require.NotEmpty(t, m.Does, m.Name)
			of[m.Name] = c.Name
		}
	}
}

func TestChoices(t *testing.T) {
	raft, rs, niagara := registry.Find("raft"), registry.Find("rs-raft"), registry.Find("niagara")
	kind, err := niagara.Order("")
	require.NoError(t, err)
	require.Equal(t, order.KindNiagara, kind)
	place, err := raft.Placement(protocol.PlacementCode)
	require.NoError(t, err)
	require.Equal(t, protocol.PlacementCode, place)
	_, err = raft.Placement(protocol.PlacementRS)
	var no *registry.ChoiceError
	require.ErrorAs(t, err, &no)
	require.ErrorContains(t, err, `placement "rs" is not for protocol raft; there is: copy, code`)
	_, err = rs.Order(order.KindNiagara)
	require.ErrorAs(t, err, &no)
	require.Nil(t, registry.Find("paxos"))
}

func TestOwnSettings(t *testing.T) {
	iss, raft := registry.Find("iss"), registry.Find("raft")
	complete := func(p *registry.Protocol, text string) error {
		_, err := p.Complete(setting.MustParse(text))
		return err
	}
	require.NoError(t, complete(iss, "relays=64"))
	var wrong *setting.Error
	require.ErrorAs(t, complete(raft, "relays=1"), &wrong)
	require.EqualError(t, wrong, "relays 1: only multi-paxos and iss can have it, and not raft")
	require.EqualError(t, complete(iss, "relays=-1"), "relays -1: not in 0…64")
	require.EqualError(t, complete(iss, "relays=65"), "relays 65: not in 0…64")
	require.EqualError(t, complete(iss, "delays=1"), "delays 1: there is no such setting")
}

// Raft with placement code has a name of its own. So members that were asked for it in either way
// are equal.
func TestCanonicalNames(t *testing.T) {
	raft, niagara, lcr := registry.Find("raft"), registry.Find("niagara"), registry.Find("lcr")
	none, lanes := setting.Values{}, setting.MustParse("lanes=true")
	require.Equal(t, "lcr", raft.Canonical(order.KindSingle, protocol.PlacementCopy, lanes).Name)
	require.Equal(t, "lcr", lcr.Canonical(order.KindSingle, protocol.PlacementCode, lanes).Name)
	require.Equal(t, "craft", raft.Canonical(order.KindSingle, protocol.PlacementCode, none).Name)
	require.Equal(t, "raft", raft.Canonical(order.KindSingle, protocol.PlacementCopy, none).Name)
	require.Equal(t, "niagara", raft.Canonical(order.KindNiagara, protocol.PlacementCopy, none).Name)
	require.Equal(t, "niagara", raft.Canonical(order.KindNiagara, protocol.PlacementCode, none).Name)
	require.Equal(t, "lcr", raft.Canonical(order.KindSingle, protocol.PlacementCode, lanes).Name)
	require.Equal(t, "niagara", niagara.Canonical(order.KindNiagara, protocol.PlacementCode, none).Name)
}

// A log that began as one protocol of a core is chosen so, whatever the flags name: they then tune alike.
func TestTheLogIsChosen(t *testing.T) {
	for _, flags := range []string{"raft", "craft", "lcr", "niagara"} {
		choice, err := registry.Find(flags).Choose(setting.Values{}, 3)
		require.NoError(t, err)
		require.True(t, choice.Grows())
		for _, log := range []struct {
			core      string
			order     order.Kind
			begun     int
			name      string
			instances int
		}{
			{"raft", order.KindSingle, 0, "raft", 1}, {"lcr", order.KindSingle, 0, "lcr", 1},
			{"raft", order.KindNiagara, 3, "niagara", 3}, {"raft", order.KindNiagara, 1, "niagara", 1},
		} {
			c, err := choice.As(log.core, log.order, log.begun)
			require.NoError(t, err)
			name := log.name
			if flags == "craft" && name == "raft" {
				name = flags // placement is no part of how a log begins
			}
			require.Equal(t, name, c.Name, flags)
			require.Equal(t, log.instances, c.Instances(), "%s %v", flags, log)
			require.Equal(t, log.core == "lcr", strings.Contains(c.Values.String(), "lanes=true"), "%s %v", flags, log)
			first := registry.Find(log.name)
			standard, err := first.Choose(setting.Values{}, 3)
			require.NoError(t, err)
			require.Equal(t, standard.Names(), c.Names())
		}
	}
}

// A log behind a seal is chosen as it began, whatever the flags name.
func TestASealedLogIsChosenAsItBegan(t *testing.T) {
	for _, flags := range registry.Serving() {
		choice, err := registry.Find(flags).Choose(setting.MustParse("election-timeout=3s"), 3)
		require.NoError(t, err)
		for _, log := range []struct {
			core  string
			order order.Kind
			begun int
			fixed map[string]string
			name  string
			has   string
		}{
			{"raft", order.KindSingle, 0, map[string]string{"quorums": "majority", "epochs": ""}, "raft", ""},
			{"lcr", order.KindSingle, 0, nil, "lcr", "lanes=true"},
			{"raft", order.KindNiagara, 3, nil, "niagara", "instances=3"},
			{"multi-paxos", order.KindSingle, 0, map[string]string{"quorums": "4/2"}, "multi-paxos", "quorums=4/2"},
			{"iss", order.KindSingle, 0, map[string]string{"quorums": "majority"}, "iss", ""},
		} {
			c, err := choice.Began(log.core, log.order, log.begun, log.fixed)
			require.NoError(t, err, "%s %v", flags, log)
			if flags != "craft" || log.name != "raft" { // placement is no part of how a log begins
				require.Equal(t, log.name, c.Name, "%s %v", flags, log)
			}
			require.Contains(t, c.Values.String(), log.has)
			require.Contains(t, c.Values.String(), "election-timeout=3s")
			require.Equal(t, log.has == "quorums=4/2", strings.Contains(c.Values.String(), "quorums"))
			first, err := registry.Find(log.name).Choose(setting.Values{}, 3)
			require.NoError(t, err)
			require.Equal(t, first.Names(), c.Names())
		}
	}
}

// A majority of crashes stops every protocol; RS-Raft stops earlier, as in the paper.
func TestTolerance(t *testing.T) {
	raft, rs := registry.Find("raft"), registry.Find("rs-raft")
	for voters, want := range map[int]int{1: 0, 2: 0, 3: 1, 4: 1, 5: 2, 7: 3} {
		require.Equal(t, want, raft.Tolerates(voters, 0), "%d voters", voters)
	}
	require.Equal(t, 1, rs.Tolerates(5, registry.RSFragments))
	require.Equal(t, 2, rs.Tolerates(7, registry.RSFragments))
	_, err := rs.Quorums(2, registry.RSFragments)
	require.ErrorContains(t, err, "cannot meet")
	require.False(t, rs.Serves())
	require.NotContains(t, registry.Serving(), "rs-raft")
}
