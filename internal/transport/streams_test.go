package transport

import (
	"encoding/binary"
	"testing"
)

// Streams that come and go need no more connections than those in use.
func TestForgottenStreamsFreeTheirPlace(t *testing.T) {
	a, b := pair(t, func(o *Options, _ *testHandler) { o.MaxStreams = 3 })
	for i := range uint32(20) {
		frame := binary.LittleEndian.AppendUint32(nil, i)
		eventually(t, "a frame on a new stream", func() bool {
			a.Send(2, 1<<31+i, [][]byte{frame}) // frames sent before the other side has a free stream are lost
			select {
			case f := <-b.frames:
				return f.stream == 1<<31+i && binary.LittleEndian.Uint32(f.frame) == i
			default:
				return false
			}
		})
		a.Forget(1<<31 + i)
	}
	eventually(t, "only the first stream", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.countInbound(1) == 1 && len(*a.peer(2).senders.Load()) == 1
	})
	eventually(t, "a link that is up", func() bool { return a.Stats().Peers[0].Connected })
}

// A link counts as up again when the only stream that failed is no longer used.
func TestAForgottenStreamDoesNotFail(t *testing.T) {
	a, _ := pair(t, nil)
	state := &a.peer(2).state
	state.lost(ErrCut, false, false) // as a second stream does that cannot connect
	a.expectDown(t, 2)
	state.ended(false, true)
	a.expectUp(t, 2)
}

// Open connects a stream before the first frame.
func TestAnOpenedStreamIsConnected(t *testing.T) {
	a, b := pair(t, nil)
	a.Open(7)
	eventually(t, "a connection of the stream", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.inbound[inKey{1, forFrames, 7}] != nil
	})
}
