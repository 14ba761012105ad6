package transport

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/braidlog/braid/internal/testsize"
)

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(b)
	return b
}

func send(b []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
}

func TestSnapshots(t *testing.T) {
	type got struct {
		meta string
		body []byte
		err  error
	}
	taken := make(chan got, 1)
	a, b := pair(t, func(_ *Options, h *testHandler) {
		h.snapshot = func(_ uint64, meta []byte, body io.Reader) error {
			all, err := io.ReadAll(body)
			taken <- got{string(meta), all, err}
			return err
		}
	})
	for _, size := range []int{0, 1, snapshotChunk, snapshotChunk + 1, 5<<20 + 7} {
		body := noise(size)
		if err := a.SendSnapshot(t.Context(), 2, []byte("about"), send(body)); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if g := get(t, taken, "snapshot"); g.meta != "about" || g.err != nil || !bytes.Equal(g.body, body) {
			t.Fatalf("%d bytes: got %q, %d bytes, %v", size, g.meta, len(g.body), g.err)
		}
	}
	// A sender that stops is an error at both ends.
	broken := errors.New("the file is broken")
	err := a.SendSnapshot(t.Context(), 2, nil, func(w io.Writer) error {
		if _, err := w.Write(noise(3 * snapshotChunk)); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if g := get(t, taken, "snapshot"); g.err == nil {
		t.Errorf("a snapshot cut off was taken for whole: %d bytes", len(g.body))
	}
	if err := a.SendSnapshot(t.Context(), 9, nil, send(nil)); !errors.Is(err, ErrUnknownPeer) {
		t.Errorf("got %v", err)
	}
	if err := a.SendSnapshot(t.Context(), 2, make([]byte, maxSnapMeta+1), send(nil)); !errors.As(err, new(*SizeError)) {
		t.Errorf("got %v", err)
	}
	if s := b.Stats().Peers[0]; s.BytesIn < 5<<20 {
		t.Errorf("stats are %+v", s)
	}
}

func TestSnapshotVerdictComesEarly(t *testing.T) {
	refuse := true
	a, _ := pair(t, func(_ *Options, h *testHandler) {
		h.snapshot = func(_ uint64, _ []byte, body io.Reader) error {
			if refuse {
				return errors.New("not wanted")
			}
			return nil
		}
	})
	endless := func(w io.Writer) error {
		for b := noise(snapshotChunk); ; {
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
	}
	var remote *RemoteError
	if err := a.SendSnapshot(t.Context(), 2, nil, endless); !errors.As(err, &remote) || remote.Text != "not wanted" {
		t.Errorf("got %v", err)
	}
	refuse = false
	if err := a.SendSnapshot(t.Context(), 2, nil, endless); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestSnapshotWaitsForSlowEnds(t *testing.T) {
	testsize.Long(t)
	const slow = "slow to store"
	tm := quick
	tm.idle = 2 * time.Second // a busy machine may well be late with a ping
	wait := tm.idle * 3 / 2
	a, _ := pairOf(t, tm, func(_ *Options, h *testHandler) {
		h.snapshot = func(_ uint64, meta []byte, body io.Reader) error {
			if _, err := io.Copy(io.Discard, body); err != nil {
				return err
			}
			if string(meta) == slow {
				<-time.After(wait)
			}
			return nil
		}
	})
	var both sync.WaitGroup
	both.Go(func() {
		if err := a.SendSnapshot(t.Context(), 2, []byte(slow), send(noise(100))); err != nil {
			t.Errorf("slow to store: %v", err)
		}
	})
	both.Go(func() {
		err := a.SendSnapshot(t.Context(), 2, nil, func(w io.Writer) error {
			<-time.After(wait)
			_, err := w.Write(noise(100))
			return err
		})
		if err != nil {
			t.Errorf("slow to write: %v", err)
		}
	})
	both.Wait()
}

// TestSnapshotVerdictStays: a verdict that comes long after the last byte waits for the sender to
// take it. Pings that no one read would make closing the connection take it back.
func TestSnapshotVerdictStays(t *testing.T) {
	noLeaks(t)
	tm := quick
	tm.idle, tm.linger = 100*time.Millisecond, testTimeout
	a := start(t, 1, tm, "", func(_ *Options, h *testHandler) {
		h.snapshot = func(_ uint64, _ []byte, body io.Reader) error {
			_, err := io.Copy(io.Discard, body)
			<-time.After(3 * tm.idle)
			return err
		}
	})
	a.SetPeers([]Peer{{ID: 2}})
	conn := stranger(t, a.addr, nil)
	say := greeting(forSnapshot, 0)
	say = append(appendHeader(say, header{kind: kindSnapMeta, length: 1}), 'm')
	say = append(appendHeader(say, header{kind: kindSnapEnd, length: 12}), make([]byte, 12)...)
	if _, err := conn.Write(appendHeader(say, header{kind: kindPing})); err != nil {
		t.Fatal(err)
	}
	r := newReader(context.Background(), conn, maxErrorText, testTimeout, &counters{total: &totals{}})
	if err := r.body(make([]byte, replySize)); err != nil {
		t.Fatal(err)
	}
	if h, _, err := r.frame(); err != nil || h.kind != kindSnapDone {
		t.Fatalf("got %+v, %v", h, err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(3 * tm.idle)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !isTimeout(err) {
		t.Errorf("the connection did not stay: %v", err)
	}
}

func TestSnapshotIsCancelled(t *testing.T) {
	begun, ended := make(chan struct{}, 1), make(chan error, 1)
	a, b := pair(t, func(_ *Options, h *testHandler) {
		h.snapshot = func(_ uint64, _ []byte, body io.Reader) error {
			// What the sender wrote may be lost with its connection, also the beginning.
			// With a byte of the body here, the handler has certainly begun.
			if _, err := io.ReadFull(body, make([]byte, 1)); err != nil {
				t.Error(err)
			}
			begun <- struct{}{}
			_, err := io.Copy(io.Discard, body)
			ended <- err
			return err
		}
	})
	endless := func(w io.Writer) error {
		for b := noise(snapshotChunk); ; {
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan error, 1)
	go func() { sent <- a.SendSnapshot(ctx, 2, nil, endless) }()
	get(t, begun, "beginning")
	cancel()
	if err := get(t, sent, "end"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := get(t, ended, "end of the handler"); err == nil {
		t.Error("the receiver saw no error")
	}
	go func() { sent <- a.SendSnapshot(t.Context(), 2, nil, endless) }()
	get(t, begun, "beginning")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	select { // Close waits for handlers
	case err := <-ended:
		if err == nil {
			t.Error("the receiver saw no error")
		}
	default:
		t.Error("the handler outlived Close")
	}
	if err := get(t, sent, "end"); !errors.As(err, new(*LinkError)) && !errors.As(err, new(*RemoteError)) {
		t.Errorf("got %v", err)
	}
}

func TestSnapshotRate(t *testing.T) {
	a, _ := pair(t, func(o *Options, h *testHandler) {
		o.SnapshotBytesPerSecond = 10 << 20
		h.snapshot = func(_ uint64, _ []byte, body io.Reader) error {
			_, err := io.Copy(io.Discard, body)
			return err
		}
	})
	began := time.Now()
	if err := a.SendSnapshot(t.Context(), 2, nil, send(noise(3<<20))); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(began); d < 250*time.Millisecond || d > 5*time.Second {
		t.Errorf("3 MiB at 10 MiB/s took %v", d)
	}
}

// TestSnapshotDamage writes damaged streams by hand: none is taken for whole.
func TestSnapshotDamage(t *testing.T) {
	data := []byte("some data")
	sum := crc32.Checksum(data, castagnoli)
	frame := func(kind frameKind, parts ...[]byte) []byte {
		body := bytes.Join(parts, nil)
		return append(appendHeader(nil, header{kind: kind, length: uint32(len(body))}), body...)
	}
	u32 := func(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
	u64 := func(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }
	meta, ping := frame(kindSnapMeta, []byte("m")), frame(kindPing)
	chunk := frame(kindSnapChunk, u32(sum), data)
	end := frame(kindSnapEnd, u64(uint64(len(data))), u32(sum))
	for _, c := range []struct {
		name string
		say  []byte
		ok   bool
	}{
		{"whole", bytes.Join([][]byte{meta, ping, chunk, ping, end}, nil), true},
		{"no end", bytes.Join([][]byte{meta, chunk}, nil), false},
		{"half a chunk", bytes.Join([][]byte{meta, chunk[:len(chunk)-3]}, nil), false},
		{"flipped", bytes.Join([][]byte{meta, frame(kindSnapChunk, u32(sum^1), data), end}, nil), false},
		{"a chunk less", bytes.Join([][]byte{meta, end}, nil), false},
		{"a chunk twice", bytes.Join([][]byte{meta, chunk, chunk, end}, nil), false},
		{"another frame", bytes.Join([][]byte{meta, frame(kindFrame), chunk, end}, nil), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			noLeaks(t)
			taken := make(chan error, 1)
			a := start(t, 1, calm, "", func(_ *Options, h *testHandler) {
				h.snapshot = func(_ uint64, _ []byte, body io.Reader) error {
					_, err := io.ReadAll(body)
					taken <- err
					return err
				}
			})
			a.SetPeers([]Peer{{ID: 2}})
			conn := stranger(t, a.addr, nil)
			if _, err := conn.Write(append(greeting(forSnapshot, 0), c.say...)); err != nil {
				t.Fatal(err)
			}
			if !c.ok {
				conn.(interface{ CloseWrite() error }).CloseWrite()
			}
			if err := get(t, taken, "snapshot"); (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
			b := expectClosed(t, conn)
			if said := bytes.Contains(b, appendHeader(nil, header{kind: kindSnapDone})); said != c.ok {
				t.Errorf("the verdict was %q", b)
			}
		})
	}
}
