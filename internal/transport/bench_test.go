package transport

import (
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"
)

// benchPair starts two connected members.
func benchPair(b *testing.B, change func(*Options, *testHandler)) (a, to *member) {
	a, to = start(b, 1, defaultTiming, "", change), start(b, 2, defaultTiming, "", change)
	connect(a, to)
	a.expectUp(b, 2)
	return a, to
}

// cpu reports the process's CPU time per operation, which the machine's other work
// disturbs less than the clock.
func cpu(b *testing.B) func() {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	began := used()
	return func() { b.ReportMetric(float64(used()-began)/float64(b.N), "cpu-ns/op") }
}

// BenchmarkFrames sends frames with up to 1 MiB (at least two frames) in progress.
func BenchmarkFrames(b *testing.B) {
	ca := newAuthority(b)
	for _, size := range []int{200, 4 << 10, 64 << 10, 1 << 20} {
		for _, encrypted := range []bool{false, true} {
			b.Run(fmt.Sprintf("size=%d/tls=%v", size, encrypted), func(b *testing.B) {
				batch := max(1, 512<<10/size)
				taken := make(chan struct{}, 2)
				count := 0
				a, _ := benchPair(b, func(o *Options, h *testHandler) {
					if encrypted {
						o.TLS = ca.member(b)
					}
					h.frame = func(uint64, uint32, []byte) {
						if count++; count%batch == 0 {
							taken <- struct{}{}
						}
					}
				})
				parts := [][]byte{make([]byte, 40), make([]byte, size-40)}
				b.SetBytes(int64(size))
				b.ReportAllocs()
				done := cpu(b)
				n := 0
				for b.Loop() {
					if n++; n > 2*batch && n%batch == 1%batch {
						<-taken
					}
					if !a.Send(2, 0, parts) {
						b.Fatal("not sent")
					}
				}
				done()
			})
		}
	}
}

// BenchmarkRoundTrip sends a frame and waits for one back.
func BenchmarkRoundTrip(b *testing.B) {
	back := make(chan struct{}, 1)
	var to *member
	a := start(b, 1, defaultTiming, "", func(_ *Options, h *testHandler) {
		h.frame = func(uint64, uint32, []byte) { back <- struct{}{} }
	})
	to = start(b, 2, defaultTiming, "", func(_ *Options, h *testHandler) {
		h.frame = func(_ uint64, _ uint32, f []byte) { to.Send(1, 0, [][]byte{f}) }
	})
	connect(a, to)
	a.expectUp(b, 2)
	to.expectUp(b, 1)
	parts := [][]byte{make([]byte, 200)}
	b.ReportAllocs()
	for b.Loop() {
		a.Send(2, 0, parts)
		<-back
	}
}

func BenchmarkRequest(b *testing.B) {
	a, _ := benchPair(b, func(_ *Options, h *testHandler) { h.request = echo })
	q := make([]byte, 100)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := a.Request(b.Context(), 2, q); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkSnapshot(b *testing.B) {
	a, _ := benchPair(b, func(_ *Options, h *testHandler) {
		h.snapshot = func(_ uint64, _ []byte, body io.Reader) error {
			_, err := io.Copy(io.Discard, body)
			return err
		}
	})
	body := noise(64 << 20)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if err := a.SendSnapshot(b.Context(), 2, nil, send(body)); err != nil {
			b.Fatal(err)
		}
	}
}
