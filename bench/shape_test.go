package bench

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

func TestShapeApply(t *testing.T) {
	for _, c := range []struct {
		shape Shape
		want  braid.Options
	}{
		{Shape{Protocol: "raft"}, braid.Options{Order: "single", Placement: "copy"}},
		{Shape{Protocol: "craft", CodeK: 3, Placement: "code"}, braid.Options{Order: "single", Placement: "code", CodeK: 3}},
		{Shape{Protocol: "rs-raft"}, braid.Options{Order: "single", Placement: "rs"}},
		{Shape{Protocol: "niagara"}, braid.Options{Order: "niagara", Placement: "copy"}},
		{
			Shape{Protocol: "niagara", Instances: 5, Leaders: "spread", Placement: "code", CodeK: 2},
			braid.Options{Order: "niagara", Instances: 5, Leaders: "spread", Placement: "code", CodeK: 2},
		},
		{Shape{Protocol: "multi-paxos", Own: setting.MustParse("quorums=4/2")}, braid.Options{Order: "single", Placement: "copy", Settings: setting.MustParse("quorums=4/2")}},
		{
			Shape{Protocol: "iss", Own: setting.MustParse("relays=02", "no-skip=1", "skip-wait=1s")},
			braid.Options{Order: "single", Placement: "copy", Settings: setting.MustParse("relays=2", "no-skip=true", "skip-wait=1s")},
		},
	} {
		var got braid.Options
		if err := c.shape.Apply(&got); err != nil {
			t.Errorf("%+v: %v", c.shape, err)
		}
		if got.Order != c.want.Order || got.Placement != c.want.Placement || got.CodeK != c.want.CodeK || got.Instances != c.want.Instances || got.Leaders != c.want.Leaders ||
			got.Settings != c.want.Settings {
			t.Errorf("%+v: %+v", c.shape, got)
		}
	}
	if err := (Shape{Protocol: "paxos"}).Apply(&braid.Options{}); err == nil || !strings.Contains(err.Error(), `"paxos"`) {
		t.Errorf("error %v", err)
	}
}

func TestShapeRefusesEpochs(t *testing.T) {
	for _, s := range []Shape{
		{Protocol: "raft", Own: setting.MustParse("epochs=x")}, {Protocol: "raft", Own: setting.MustParse("no-skip=true")}, {Protocol: "raft", Own: setting.MustParse("quorums=2/2")}, {Protocol: "iss", Own: setting.MustParse("quorums=2")}, {Protocol: "raft", Own: setting.MustParse("skip-wait=1s")},
		{Protocol: "iss", Own: setting.MustParse("epochs=slots 33-64, shares equal, policy combined, bans 8-256")}, {Protocol: "iss", Own: setting.MustParse("skip-wait=-1s")},
	} {
		if err := s.Apply(&braid.Options{}); err == nil {
			t.Errorf("%+v is taken", s)
		}
	}
}

// A contestant is set up like the one that it is compared with, as far as it has what that has.
func TestShapeOnly(t *testing.T) {
	own := setting.MustParse("relays=2", "no-skip=true", "quorums=3/2")
	all := Shape{CodeK: 2, Instances: 4, Leaders: "spread", Placement: "code", Own: own}
	for protocol, want := range map[string]Shape{
		"raft":      {Protocol: "raft"},
		"craft":     {Protocol: "craft", CodeK: 2},
		"iss":       {Protocol: "iss", Own: own},
		"etcd-raft": {Protocol: "etcd-raft"},
		"niagara":   {Protocol: "niagara", CodeK: 2, Instances: 4, Leaders: "spread", Placement: "code"},
	} {
		s := all
		s.Protocol = protocol
		if got := s.Only(); got != want {
			t.Errorf("%s: %+v", protocol, got)
		} else if err := got.Apply(&braid.Options{}); err != nil && Own(protocol) {
			t.Errorf("%s: %v", protocol, err)
		}
	}
	if got := (Shape{Protocol: "niagara", CodeK: 2, Instances: 3}).Only(); got.CodeK != 0 || !slices.Equal(got.flags(), []string{"--instances", "3"}) {
		t.Errorf("%+v, flags %q", got, got.flags())
	}
}

func TestShapeFlagsOfEpochs(t *testing.T) {
	s := Shape{Protocol: "iss", Own: setting.MustParse("epochs=slots 32-1024, shares equal, policy simple, bans 4-4")}
	if want := []string{"--epoch-slots=32-1024", "--epoch-equal-shares=true", "--epoch-policy=simple", "--epoch-bans=4"}; !slices.Equal(s.flags(), want) {
		t.Errorf("flags %q", s.flags())
	}
}

func TestShapeSettled(t *testing.T) {
	status := func(leaders ...braid.MemberID) *braid.Status {
		s := &braid.Status{Members: []braid.Member{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4, Learner: true}}}
		for i, l := range leaders {
			s.Instances = append(s.Instances, protocol.Status{Instance: braid.InstanceID(i + 1), Leader: l})
		}
		return s
	}
	together, spread := Shape{Protocol: "niagara"}, Shape{Protocol: "niagara", Leaders: "spread"}
	coded := Shape{Protocol: "niagara", Placement: "code"}
	for _, c := range []struct {
		shape   Shape
		leaders []braid.MemberID
		want    bool
	}{
		{Shape{Protocol: "raft"}, []braid.MemberID{2}, true},
		{Shape{Protocol: "craft"}, []braid.MemberID{0}, false},
		{together, []braid.MemberID{2, 2, 2}, true},
		{together, []braid.MemberID{2, 2, 0}, false},
		{together, []braid.MemberID{2, 2, 1}, false},
		{spread, []braid.MemberID{1, 2, 3, 1}, true},
		{spread, []braid.MemberID{1, 2, 1, 1}, false},
		{spread, []braid.MemberID{1, 2}, true},
		{coded, []braid.MemberID{1, 2, 3}, true},
		{coded, []braid.MemberID{1, 1, 1}, false},
	} {
		if got := c.shape.Settled(status(c.leaders...)); got != c.want {
			t.Errorf("%+v led by %v: settled %v", c.shape, c.leaders, got)
		}
	}
}

func TestCardsNet(t *testing.T) {
	for _, c := range []struct {
		net   string
		cards int
		want  string
	}{
		{"", 0, ""}, {"", 4, ""}, {"latency=1ms", 1, "latency=1ms"}, {"nics=2", 0, "nics=2"}, {"bandwidth=250mbit", 4, "bandwidth=250mbit,nics=4"},
		{"latency=1ms;1~2:latency=5ms", 4, "nics=4;latency=1ms;1~2:latency=5ms"},
	} {
		if got, err := CardsNet(c.net, c.cards); err != nil || got != c.want {
			t.Errorf("%q with %d cards: %q, %v", c.net, c.cards, got, err)
		}
	}
}

// Niagara is measured as any other: on several network cards, and by clients of all members
// where these share the leaders.
func TestRunLogNiagara(t *testing.T) {
	testsize.Long(t)
	for _, s := range []Settings{{Instances: 2, MaxBatchCommands: 1, Cards: 2, Net: "bandwidth=1gbit"}, {Instances: 4, Leaders: braid.LeadersSpread}} {
		for _, l := range []Load{
			{Payload: 100, Proposers: 7, Warmup: 50 * time.Millisecond, Duration: 400 * time.Millisecond},
			{Payload: 16, Inflight: 500, Warmup: 50 * time.Millisecond, Duration: 400 * time.Millisecond},
		} {
			r, err := RunLog(t.Context(), LogConfig{Protocol: "niagara", Nodes: 3, Load: l, Dir: t.TempDir(), Settings: s})
			if err != nil {
				t.Fatalf("%+v: %v", s, err)
			}
			if !r.Verified || r.ThroughputPS <= 0 || r.Settings != s {
				t.Errorf("%+v: %+v", s, r)
			}
		}
	}
}
