package fit

import (
	"slices"
	"testing"

	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
	"github.com/stretchr/testify/require"
)

// TestSwitchMakesTheWishedShape: from each profile, the switch that a candidate asks for makes the shape that the
// model compared, and whose key setting fit-avoid notes.
func TestSwitchMakesTheWishedShape(t *testing.T) {
	const members = 5
	began, err := registry.Find(raft).Choose(setting.Values{}, members)
	require.NoError(t, err)
	for _, now := range everyShape(members) {
		p, instances := profileOf(t, &now)
		v := &View{Protocol: now.protocol, Instances: instances, Profile: p, Members: make([]Member, members)}
		require.Equal(t, now, shapeOf(v))
		for _, to := range shapes(v, now)[1:] {
			s, err := began.Switch(&p, instances, to.protocol, to.settings(&now))
			require.NoError(t, err, "%s to %s", now.key(), to.key())
			after := &View{Protocol: s.To.Name, Instances: s.Instances, Profile: protocol.Profile{Values: s.To.Values}}
			made := shapeOf(after)
			require.Equal(t, to.key(), made.key(), "from %s with %v", now.key(), to.settings(&now))
		}
	}
}

// everyShape are shapes of profiles that operators may set.
func everyShape(members int) (all []shape) {
	for _, instances := range []int{1, 4, members} {
		for _, spread := range []bool{false, true} {
			for k := -1; k <= members/2+1; k++ {
				for _, laned := range []bool{false, true} {
					s := shape{protocol: niagara, code: k >= 0, k: max(0, k), lanes: laned, instances: instances,
						spread: spread && instances > 1}
					switch {
					case instances > 1:
					case laned:
						s.protocol = lcr
					case s.code:
						s.protocol = craft
					default:
						s.protocol = raft
					}
					if !slices.Contains(all, s) {
						all = append(all, s)
					}
				}
			}
		}
	}
	return append(all, shape{protocol: multiPaxos, instances: 1}, shape{protocol: iss, instances: 1})
}

// profileOf is a profile with a shape, and its number of instances.
func profileOf(t *testing.T, s *shape) (protocol.Profile, int) {
	to := registry.Find(s.protocol)
	v := common.Placement.Set(setting.Values{}, placement(s.code))
	if s.code && s.k > 0 {
		v = common.CodeK.Set(v, s.k)
	}
	if s.instances > 1 {
		v = common.Instances.Set(v, s.instances)
		v = common.Leaders.Set(v, protocol.LeadersTogether)
		if s.spread {
			v = common.Leaders.Set(v, protocol.LeadersSpread)
		}
	}
	c, err := to.Choose(v, 1)
	require.NoError(t, err, s.key())
	values := c.Profile()
	if s.lanes {
		values = lane.On.Set(values, true) // a log keeps lanes when it gets more instances
	}
	return protocol.Profile{Version: 1, Core: c.Core.Name, Values: values}, s.instances
}
