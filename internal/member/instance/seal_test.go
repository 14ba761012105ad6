package instance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
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
