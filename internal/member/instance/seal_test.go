package instance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// A member that takes part in an instance which a seal has ended is offered a snapshot, unless it knows that all of the
// instance is committed, as a closed leader with its heartbeats does.
func TestWhoKnowsTheSealNeedsNoSnapshot(t *testing.T) {
	h := Hosted{status: &protocol.Status{Commit: 7},
		clock: member.Clock{Read: func() time.Duration { return 0 }}}
	h.seal.closed, h.retired.endsAt = true, 1
	h.noteBehind([]protocol.Input{&protocol.Message{From: 2, Commit: 7}})
	require.Zero(t, h.behind)
	h.noteBehind([]protocol.Input{&protocol.Message{From: 2, Commit: 7}, &protocol.Message{From: 3, Commit: 6}})
	require.Equal(t, protocol.MemberID(3), h.behind)
}

// An instance that is retired keeps all that is written to the log after it. It ends early if that becomes more than is
// kept for members that catch up, once snapshots stand for it.
func TestARetiredInstanceEndsWhenItKeepsMuchLog(t *testing.T) {
	behind := order.Cursor{Points: []order.Point{{Instance: 2}}}
	for _, c := range []struct {
		saved   member.Saved
		applied int64
		ends    bool
	}{
		{member.Saved{Newest: behind, Oldest: behind}, 1100, false},
		{member.Saved{Newest: behind, Oldest: behind}, 1101, true},
		{member.Saved{Newest: behind, Oldest: order.Begin(1, false)}, 5000, false},
	} {
		h := Hosted{cfg: HostedConfig{Instance: 1, KeepLogBytes: 100, Election: time.Second},
			clock: member.Clock{Read: func() time.Duration { return 0 }}, inst: &Instance{}}
		h.happened = &Happened{AppliedBytes: 1000}
		h.Retire()
		h.happened = &Happened{AppliedBytes: c.applied, Saved: &c.saved}
		h.end()
		require.Equal(t, c.ends, h.Ended())
	}
}
