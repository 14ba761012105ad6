package braid_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// byLanes makes members bring blind commands by lanes.
func byLanes(o *braid.Options) { o.Protocol = braid.LCR{} }

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
				o.Limits.SnapshotBytes = 4 << 10
			})
			c.how = test.how
			test.run(c)
		})
	}
}

// Bodies of blind commands take lanes, over either placement.
func TestBodiesInLanes(t *testing.T) {
	for name, how := range map[string]braid.ProposeOptions{"confirmed": {Blind: true}, "accepted": {Mode: braid.ModeAccepted}} {
		for placement, protocol := range map[string]braid.LCR{"copy": {}, "code": {Coded: &braid.CRaft{K: 2}}} {
			t.Run(name+", "+placement, func(t *testing.T) {
				l := newLibrary(t, 3, func(o *braid.Options) { o.Protocol = protocol })
				l.how = how
				testBodiesSurviveTheirLeaders(l)
				carried := uint64(0)
				for _, n := range l.nodes {
					carried += n.Status().Instances[0].Lanes.Counts.SentBytes
				}
				require.NotZero(t, carried)
			})
		}
	}
}

func TestBodiesBesideLanes(t *testing.T) {
	t.Parallel()
	testBodiesSurviveTheirLeaders(newLibrary(t, 3, func(o *braid.Options) {
		o.Protocol = braid.LCR{Coded: &braid.CRaft{K: 2}}
	}))
}
