package transport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
)

func TestFramesArriveWholeAndInOrder(t *testing.T) {
	a, b := pair(t, nil)
	const frames, streams = 3000, 3
	sizes := rand.New(rand.NewPCG(1, 2))
	large := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
	for i := range frames {
		for s := range uint32(streams) {
			head := binary.LittleEndian.AppendUint32(nil, uint32(i))
			parts := [][]byte{head, large[:sizes.IntN(100)], nil, large[:sizes.IntN(4000)]}
			if i%100 == 0 {
				parts = append(parts, large)
			}
			eventually(t, "room in the queue", func() bool { return a.Send(2, s, parts) })
		}
	}
	next := [streams]uint32{}
	for range frames * streams {
		f := get(t, b.frames, "frame")
		if n := binary.LittleEndian.Uint32(f.frame); f.from != 1 || n != next[f.stream] {
			t.Fatalf("stream %d: got frame %d of member %d, want %d of 1", f.stream, n, f.from, next[f.stream])
		}
		next[f.stream]++
		checkPattern(t, f.frame[4:], large)
	}
	if s := a.Stats(); s.Peers[0].FramesOut < frames*streams || s.Peers[0].Drops != 0 || !s.Peers[0].Connected {
		t.Fatalf("stats are %+v", s)
	}
	eventually(t, "an empty queue", func() bool { return a.Stats().Peers[0].QueueBytes == 0 })
	if got, sent := b.Stats().IngressBytes, a.Stats().EgressBytes; got == 0 || got > sent {
		t.Fatalf("%d bytes received, %d sent", got, sent)
	}
}

// checkPattern checks that b consists of prefixes of the pattern.
func checkPattern(t *testing.T, b, pattern []byte) {
	t.Helper()
	for len(b) > 0 {
		n := 0
		for n < len(b) && n < len(pattern) && b[n] == pattern[n] {
			n++
		}
		if n == 0 {
			t.Fatalf("%d bytes left are not what was sent: % x", len(b), b[:min(len(b), 32)])
		}
		b = b[n:]
	}
}

func TestSendNeverBlocks(t *testing.T) {
	release := make(chan struct{})
	a, b := pair(t, func(o *Options, h *testHandler) {
		o.QueueBytes, o.MaxFrameBytes = 1<<20, 4<<20
		h.frame = func(uint64, uint32, []byte) { <-release }
	})
	t.Cleanup(func() { close(release) }) // before the members are closed
	frame := [][]byte{make([]byte, 100<<10)}
	refused := 0
	for range 1000 { // 100 MB: far more than the sockets take
		if !a.Send(2, 1, frame) {
			refused++
		}
	}
	st := a.Stats().Peers[0]
	if refused == 0 || st.Drops < int64(refused) || st.QueueBytes > 1<<20 {
		t.Fatalf("%d refused, stats are %+v", refused, st)
	}
	if a.Send(9, 1, frame) {
		t.Error("sent to nobody")
	}
	if a.Send(2, 2, [][]byte{make([]byte, 4<<20+1)}) {
		t.Error("sent a frame above the limit")
	}
	if !a.Send(2, 3, [][]byte{make([]byte, 2<<20)}) {
		t.Error("an empty queue refused a frame")
	}
	if b.Stats().Peers[0].Drops != 0 {
		t.Error("drops at the receiver")
	}
}

func TestReconnects(t *testing.T) {
	a, b := pair(t, nil)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.expectDown(t, 2); !errors.As(err, new(*LinkError)) && !errors.As(err, new(*HandshakeError)) {
		t.Fatalf("down because of %v", err)
	}
	a.Send(2, 0, [][]byte{[]byte("lost or not")})
	b2 := start(t, 2, calm, b.addr, nil)
	connect(a, b2)
	a.expectUp(t, 2)
	b2.expectUp(t, 1)
	eventually(t, "a frame after the reconnection", func() bool {
		a.Send(2, 0, [][]byte{[]byte("again")})
		select {
		case f := <-b2.frames:
			return string(f.frame) == "again"
		default:
			return false
		}
	})
}
