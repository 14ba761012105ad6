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

func shape(protocol string, settings ...string) Shape {
	return Shape{protocol, setting.MustParse(settings...)}
}

func TestShapeApply(t *testing.T) {
	for _, s := range []Shape{
		shape("raft"), shape("craft", "code-k=3", "placement=code"), shape("rs-raft"), shape("niagara"),
		shape("niagara", "instances=5", "leaders=spread", "placement=code", "code-k=2"),
		shape("multi-paxos", "quorums=4/2"), shape("iss", "relays=02", "no-skip=1", "skip-wait=1s"),
	} {
		var got braid.Options
		if err := s.Apply(&got); err != nil || got.Protocol != braid.Named(s.Protocol, s.Values.Texts()...) {
			t.Errorf("%+v: %+v, %v", s, got.Protocol, err)
		}
	}
	for want, s := range map[string]Shape{
		`"paxos"`: shape("paxos"), "raft has one instance": shape("raft", "instances=3"),
		"raft is measured with placement copy": shape("raft", "placement=code"),
	} {
		if err := s.Apply(&braid.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v", s, err)
		}
	}
}

func TestShapeRefusesEpochs(t *testing.T) {
	for _, s := range []Shape{
		shape("raft", "epochs=x"), shape("raft", "no-skip=true"), shape("raft", "quorums=2/2"), shape("iss", "quorums=2"),
		shape("raft", "skip-wait=1s"),
		shape("iss", "epochs=slots 33-64, shares equal, policy combined, bans 8-256"), shape("iss", "skip-wait=-1s"),
	} {
		if err := s.Apply(&braid.Options{}); err == nil {
			t.Errorf("%+v is taken", s)
		}
	}
}

// A contestant has the settings of the one that it is compared with, if it has them.
func TestShapeOnly(t *testing.T) {
	own := []string{"relays=2", "no-skip=true", "quorums=3/2"}
	all := append([]string{"code-k=2", "instances=4", "leaders=spread", "placement=code"}, own...)
	for _, want := range []Shape{
		shape("raft"), shape("craft", "code-k=2"), shape("iss", own...), shape("etcd-raft"),
		shape("niagara", "code-k=2", "instances=4", "leaders=spread", "placement=code"),
	} {
		if got := shape(want.Protocol, all...).Only(); got != want {
			t.Errorf("%s: %+v", want.Protocol, got)
		} else if err := got.Apply(&braid.Options{}); err != nil && Own(want.Protocol) {
			t.Errorf("%s: %v", want.Protocol, err)
		}
	}
	if got := shape("niagara", "code-k=2", "instances=3").Only(); got != shape("niagara", "instances=3") ||
		!slices.Equal(got.flags(), []string{"--instances=3"}) {
		t.Errorf("%+v, flags %q", got, got.flags())
	}
}

func TestShapeFlagsOfEpochs(t *testing.T) {
	s := shape("iss", "epochs=slots 32-1024, shares equal, policy simple, bans 4-4")
	if want := []string{"--epoch-slots=32-1024", "--epoch-equal-shares=true", "--epoch-policy=simple",
		"--epoch-bans=4"}; !slices.Equal(s.flags(), want) {
		t.Errorf("flags %q", s.flags())
	}
}

func TestLeadersInPlace(t *testing.T) {
	status := func(leaders ...braid.MemberID) *braid.Status {
		s := &braid.Status{Members: []braid.Member{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4, Learner: true}}}
		for i, l := range leaders {
			s.Instances = append(s.Instances, protocol.Status{Instance: braid.InstanceID(i + 1), Leader: l})
		}
		return s
	}
	together, spread := shape("niagara"), shape("niagara", "leaders=spread")
	coded := shape("niagara", "placement=code")
	for _, c := range []struct {
		shape   Shape
		leaders []braid.MemberID
		want    bool
	}{
		{shape("raft"), []braid.MemberID{2}, true},
		{shape("craft"), []braid.MemberID{0}, false},
		{together, []braid.MemberID{2, 2, 2}, true},
		{together, []braid.MemberID{2, 2, 0}, false},
		{together, []braid.MemberID{2, 2, 1}, false},
		{spread, []braid.MemberID{1, 2, 3, 1}, true},
		{spread, []braid.MemberID{1, 2, 1, 1}, false},
		{spread, []braid.MemberID{1, 2}, true},
		{coded, []braid.MemberID{1, 2, 3}, true},
		{coded, []braid.MemberID{1, 1, 1}, false},
	} {
		if got := c.shape.LeadersInPlace(status(c.leaders...)); got != c.want {
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
		{"", 0, ""}, {"", 4, ""}, {"latency=1ms", 1, "latency=1ms"}, {"nics=2", 0, "nics=2"},
		{"bandwidth=250mbit", 4, "bandwidth=250mbit,nics=4"},
		{"latency=1ms;1~2:latency=5ms", 4, "nics=4;latency=1ms;1~2:latency=5ms"},
	} {
		if got, err := CardsNet(c.net, c.cards); err != nil || got != c.want {
			t.Errorf("%q with %d cards: %q, %v", c.net, c.cards, got, err)
		}
	}
}

// Niagara is measured like any other: on several network cards, and by clients of all members if leaders are spread.
func TestRunLogNiagara(t *testing.T) {
	testsize.Long(t)
	for _, s := range []Settings{{Values: setting.MustParse("instances=2"), MaxBatchCommands: 1, Cards: 2,
		Net: "bandwidth=1gbit"}, {Values: setting.MustParse("instances=4", "leaders=spread")}} {
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
