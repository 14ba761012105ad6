package tracker

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

// TestSmallFramesGather: with two small frames in flight the next one waits until it is large, or an answer comes.
func TestSmallFramesGather(t *testing.T) {
	s := &protocol.Settings{MaxInflightBytes: 1 << 20, MaxFrameBytes: 1 << 18}
	p := &Progress{ID: 2, Phase: Stream, Next: 1}
	for i := range protocol.Index(2) {
		require.Zero(t, p.MustHold(s, 1000, 100, true))
		p.Sent(i+1, 100, true, 0)
	}
	require.Equal(t, uint64(1000+LargeFrame-100), p.MustHold(s, 1000, 100, true))
	require.Zero(t, p.MustHold(s, 1000, LargeFrame, false), "a large frame does not gather")
	p.Hold = 5000
	p.Match = 1
	p.Landed(1)
	require.Zero(t, p.Hold)
	require.Equal(t, 1, p.InFlight())
	require.Zero(t, p.MustHold(s, 1000, 100, true))
	require.NoError(t, p.Check(2, 1<<20))
}

// TestTheWindowIsBounded: by bytes except for a single frame, and by frames where a setting says so.
func TestTheWindowIsBounded(t *testing.T) {
	s := &protocol.Settings{MaxInflightBytes: 1000, MaxFrameBytes: 800, PipelineDepth: 1}
	p := &Progress{ID: 2, Phase: Stream, Next: 1}
	require.Zero(t, p.MustHold(s, 0, 5000, false), "one frame may always be in flight")
	p.Sent(1, 600, true, 0)
	require.Equal(t, uint64(math.MaxUint64), p.MustHold(s, 0, 500, false))
	require.Equal(t, uint64(math.MaxUint64), p.MustHold(s, 0, 100, true))
	require.True(t, p.Extend(s, 2, 200))
	require.Equal(t, protocol.Index(4), p.Next)
	require.False(t, p.Extend(s, 1, 1), "the frame is full")
	require.NoError(t, p.Check(3, 1000))
}

// TestAFrameThatNeverArrivedIsLost: if a question that left a heartbeat later is answered without it.
func TestAFrameThatNeverArrivedIsLost(t *testing.T) {
	p := &Progress{ID: 2, Phase: Stream, Next: 1}
	p.Sent(4, 100, false, time.Second)
	answer := func(hint protocol.Index, asked time.Duration) message.Message {
		return message.With(protocol.Message{Context: message.Stamp(asked)}, message.Part{Hint: hint})
	}
	require.False(t, p.Lost(answer(0, 2*time.Second), time.Second))
	require.True(t, p.Lost(answer(0, 2*time.Second+1), time.Second))
	require.False(t, p.Lost(answer(4, 3*time.Second), time.Second), "it arrived")
}
