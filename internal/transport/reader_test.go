package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"
)

// scripted is a connection whose reads return the bytes of a script, in pieces of its sizes.
type scripted struct {
	net.Conn
	data  []byte
	sizes *rand.Rand
}

func (s *scripted) Read(b []byte) (int, error) {
	if len(s.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), 1+s.sizes.IntN(40))], s.data)
	s.data = s.data[n:]
	return n, nil
}

func (s *scripted) SetReadDeadline(time.Time) error { return nil }

// TestReaderAcceptsAnyPieces: frames come out the same however reads cut them, and a stream
// cut anywhere is io.EOF between frames and io.ErrUnexpectedEOF inside of one.
func TestReaderAcceptsAnyPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		var stream []byte
		var bodies [][]byte
		ends := map[int]bool{0: true}
		for range random.IntN(12) {
			if random.IntN(4) == 0 {
				stream = appendHeader(stream, header{kind: kindPing})
				ends[len(stream)] = true
			}
			body := noise(random.IntN(300))
			bodies = append(bodies, body)
			stream = appendHeader(stream, header{kind: kindFrame, stream: 5, length: uint32(len(body))})
			stream = append(stream, body...)
			ends[len(stream)] = true
		}
		cut := random.IntN(len(stream) + 1)
		r := newReader(context.Background(), &scripted{data: stream[:cut], sizes: random}, 300, time.Minute,
			&counters{total: &totals{}})
		for i := 0; ; i++ {
			h, b, err := r.frame()
			if err != nil {
				want := io.ErrUnexpectedEOF
				if ends[cut] {
					want = io.EOF
				}
				if err != want {
					t.Fatalf("cut at %d of %d: %v, want %v", cut, len(stream), err, want)
				}
				break
			}
			if h.stream != 5 || !bytes.Equal(b, bodies[i]) {
				t.Fatalf("frame %d is %+v, %d bytes", i, h, len(b))
			}
		}
	}
}

// FuzzReader: no input makes a reader crash, or allocate more than its limit at once.
func FuzzReader(f *testing.F) {
	f.Add(append(appendHeader(nil, header{kind: kindFrame, stream: 1, length: 3}), "abc"...))
	f.Add(appendHeader(nil, header{kind: kindFrame, stream: 1, length: 1 << 31}))
	f.Add(appendHeader(nil, header{kind: kindPing, stream: 0, length: 1}))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newReader(context.Background(), &scripted{data: data, sizes: rand.New(rand.NewPCG(1, 1))}, 1000, time.Minute,
			&counters{total: &totals{}})
		for total := 0; ; {
			_, b, err := r.frame()
			if err != nil {
				var malformed *FrameError
				if err != io.EOF && err != io.ErrUnexpectedEOF && !errors.As(err, &malformed) {
					t.Fatal(err)
				}
				return
			}
			if total += headerSize + len(b); total > len(data) || len(b) > 1000 {
				t.Fatalf("%d bytes out of %d", total, len(data))
			}
		}
	})
}
