package wal

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/braidlog/braid/internal/vfs"
)

// BenchmarkSync is the synchronous core on real files: one batch, one sync.
func BenchmarkSync(b *testing.B) {
	for _, size := range []int{64, 1 << 10, 4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			l, err := Open(Options{Dir: b.TempDir() + "/log", Identity: []byte("bench")})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			records := []Record{{Instance: 1, Kind: KindEntry, Parts: [2][]byte{make([]byte, 48), make([]byte, size)}}}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				records[0].Index++
				if err := l.Append(records); err != nil {
					b.Fatal(err)
				}
				if err := l.Sync(); err != nil {
					b.Fatal(err)
				}
				if records[0].Index%1024 == 0 {
					if err := l.Compact(1, records[0].Index-100); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "syncs/s")
		})
	}
}

// BenchmarkOpen opens a log and the bodies next to it. Both have little content.
func BenchmarkOpen(b *testing.B) {
	dir, owner := b.TempDir(), []byte("bench")
	open := func() (*Log, *Bodies) {
		l, err := Open(Options{Dir: dir + "/log", Identity: owner})
		if err != nil {
			b.Fatal(err)
		}
		bodies, err := OpenBodies(BodiesOptions{Dir: dir + "/bodies", Identity: owner})
		if err != nil {
			b.Fatal(err)
		}
		return l, bodies
	}
	b.ReportAllocs()
	for i := uint64(1); b.Loop(); i++ {
		l, bodies := open()
		record := Record{Instance: 1, Kind: KindEntry, Index: i, Parts: [2][]byte{make([]byte, 100)}}
		err := bodies.Append(Body{Instance: 1, Index: i, Term: 1, Form: 1, Bytes: make([]byte, 1000)})
		if err := errors.Join(err, bodies.Close(), l.Append([]Record{record}), l.Close()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWriter is group commit with many submissions in progress.
func BenchmarkWriter(b *testing.B) {
	for _, c := range []struct{ inflight, size int }{{1, 64}, {16, 64}, {256, 64}, {16, 4 << 10}, {64, 64 << 10},
		{16, 1 << 20}} {
		b.Run(fmt.Sprintf("%dx%d", c.inflight, c.size), func(b *testing.B) {
			benchWriter(b, c.inflight, c.size)
		})
	}
}

func benchWriter(b *testing.B, inflight, size int) {
	l, err := Open(Options{Dir: b.TempDir() + "/log", Identity: []byte("bench")})
	if err != nil {
		b.Fatal(err)
	}
	w := NewWriter(l, nil)
	tokens := make(chan []Record, inflight)
	for i := 0; i < inflight; i++ {
		tokens <- []Record{{Instance: 1, Kind: KindEntry, Parts: [2][]byte{make([]byte, 48), make([]byte, size)}}}
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	index := uint64(0)
	for b.Loop() {
		r := <-tokens
		index++
		r[0].Index = index
		w.Submit(r, func(err error) {
			if err != nil {
				panic(err)
			}
			tokens <- r
		})
		if index%1024 == 0 {
			w.Compact(1, index-500)
		}
	}
	for i := 0; i < inflight; i++ {
		<-tokens
	}
	s := w.Metrics()
	b.ReportMetric(float64(s.Syncs)/b.Elapsed().Seconds(), "syncs/s")
	b.ReportMetric(float64(s.SyncMax)/float64(time.Millisecond), "max-ms")
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkAppend is the work per record without a disk.
func BenchmarkAppend(b *testing.B) {
	l, err := Open(Options{FS: vfs.NewMem(), Dir: "/log", SegmentBytes: 1 << 20})
	if err != nil {
		b.Fatal(err)
	}
	records := make([]Record, 100)
	for i := range records {
		records[i] = Record{Instance: uint32(i % 4), Kind: KindEntry, Parts: [2][]byte{make([]byte, 48), make([]byte, 64)}}
	}
	next := [4]uint64{}
	b.ReportAllocs()
	for b.Loop() {
		for i := range records {
			next[i%4]++
			records[i].Index = next[i%4]
		}
		if err := l.Append(records); err != nil {
			b.Fatal(err)
		}
		if next[0]%25000 == 0 {
			for i := uint32(0); i < 4; i++ {
				if err := l.Compact(i, next[i]-1); err != nil {
					b.Fatal(err)
				}
			}
		}
		if err := l.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(records)), "ns/record")
}

// BenchmarkBodies writes bodies and syncs each, on real files: into files never written before, and into files that
// are reused.
func BenchmarkBodies(b *testing.B) {
	for _, size := range []int{16 << 10, 1 << 20} {
		for _, again := range []bool{false, true} {
			name := map[bool]string{false: "new", true: "recycled"}[again]
			b.Run(fmt.Sprintf("%d/%s", size, name), func(b *testing.B) { benchBodies(b, size, again) })
		}
	}
}

func benchBodies(b *testing.B, size int, again bool) {
	s, err := OpenBodies(BodiesOptions{Dir: b.TempDir() + "/bodies", Identity: []byte("bench")})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	body := Body{Instance: 1, Term: 1, Bytes: make([]byte, size)}
	write := func() {
		body.Index++
		if err := s.Append(body); err != nil {
			b.Fatal(err)
		}
		if err := s.Sync(); err != nil {
			b.Fatal(err)
		}
		if again && body.Index > 64 {
			s.Release(1, body.Index-64)
		}
	}
	for again && s.lastSeq < 5 || again && len(s.free) == 0 {
		write()
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		write()
	}
}
