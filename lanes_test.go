package braid_test

import (
	"testing"

	"github.com/braidlog/braid"
)

// byLanes makes members bring blind commands by lanes.
func byLanes(o *braid.Options) { o.Protocol = "lcr" }

// What is proposed blindly is there once on every member, in either mode: after the leader stopped, after
// all were restarted, on a member that got a snapshot, and below changes of the members.
func TestBlindCommandsTakeEffectOnce(t *testing.T) {
	t.Parallel()
	confirmed, accepted := braid.ProposeOptions{Blind: true}, braid.ProposeOptions{Mode: braid.ModeAccepted}
	for name, test := range map[string]struct {
		how braid.ProposeOptions
		run func(*cluster)
	}{
		"a leader stops, confirmed": {confirmed, nothingIsLostWhenTheLeaderStops},
		"a leader stops, accepted":  {accepted, nothingIsLostWhenTheLeaderStops},
		"all restart, accepted":     {accepted, everythingIsThereAfterAFullRestart},
		"members change, accepted":  {accepted, testMembershipChanges},
		"a laggard, confirmed":      {confirmed, aLaggardCatchesUpBySnapshot},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3, func(o *braid.Options) {
				byLanes(o)
				o.SnapshotBytes = 4 << 10
			})
			c.how = test.how
			test.run(c)
		})
	}
}

func TestBodiesBesideLanes(t *testing.T) {
	t.Parallel()
	testBodiesSurviveTheirLeaders(newLibrary(t, 3, func(o *braid.Options) {
		byLanes(o)
		o.Placement, o.CodeK = braid.PlacementCode, 2
	}))
}
