package intake

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

func TestAReadNeedsThePointsOfAllInstances(t *testing.T) {
	shape := []protocol.InstanceID{1, 2, 5}
	var v ReadVector
	v.Ask(0, shape)
	require.False(t, v.Reached(&ReadState{Added: []protocol.Index{9, 9, 9}}), "no point is known")
	require.False(t, v.Point(2, 4))
	require.False(t, v.Point(2, 8), "the first answer counts")
	require.False(t, v.Point(1, 3))
	require.False(t, v.Point(4, 1), "it was not asked")
	require.NoError(t, v.Check())
	require.True(t, v.Point(5, 0))
	require.NoError(t, v.Check())
	require.False(t, v.Reached(&ReadState{Added: []protocol.Index{9, 3, 9}}), "one lags")
	require.True(t, v.Reached(&ReadState{Added: []protocol.Index{3, 4, 0}}))

	require.False(t, v.Void(shape))
	require.True(t, v.Void([]protocol.InstanceID{1, 2}))
	require.True(t, v.Void([]protocol.InstanceID{1, 2, 6}))
	v.Ask(4, []protocol.InstanceID{1})
	require.True(t, v.Point(1, 7), "asked anew")
	require.True(t, v.Reached(&ReadState{Added: []protocol.Index{7}}))
	require.True(t, v.Ahead(3), "the state has not come to where this is the only one")
	require.False(t, v.Ahead(4))
}
