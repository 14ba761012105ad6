package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/protocol"
)

// TestInboxIsOfTheMember fills the event loops of a member that hosts several instances: one busy loop takes the
// whole limit, and the others together only their shares in addition.
func TestInboxIsOfTheMember(t *testing.T) {
	r := &Replica{}
	var all []*eventLoop
	for i := range 4 {
		all = append(all, &eventLoop{r: r, id: protocol.InstanceID(i + 1), wake: make(chan struct{}, 1)})
	}
	r.loops.Store(&eventLoops{all: all})
	const frame = 1 << 20
	message := &protocol.Message{}
	taken, limit := 0, intake.NewInboxLimit(intake.InboxBytes)
	for all[0].input(message, frame) {
		taken += frame
	}
	require.Equal(t, limit.All, taken)
	for _, l := range all[1:] {
		for l.input(message, frame) {
			taken += frame
		}
		require.Positive(t, l.bytes, "another instance is not silent")
	}
	require.LessOrEqual(t, taken, limit.All+limit.Share)
	require.False(t, all[0].input(message, frame))
	require.True(t, all[0].input(protocol.Tick{}, 0), "what is no message has no size")
	all[0].drainInputs(nil)
	require.True(t, all[0].input(message, frame))
}
