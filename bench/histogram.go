package bench

import (
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// newHistogram returns a histogram of latencies in microseconds, up to ten minutes, with three significant digits.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, 600_000_000, 3) }

// record adds a latency in nanoseconds.
func record(h *hdrhistogram.Histogram, ns int64) {
	us := min(max((ns+500)/1000, 1), h.HighestTrackableValue())
	_ = h.RecordValue(us) // cannot fail within the bounds
}

// shardedHistogram is a histogram that thousands of goroutines may record in. The zero
// value is empty.
type shardedHistogram struct {
	shards [16]struct {
		sync.Mutex
		h *hdrhistogram.Histogram
	}
}

// record adds a latency in nanoseconds for a goroutine with a number.
func (s *shardedHistogram) record(who int, ns int64) {
	shard := &s.shards[who%len(s.shards)]
	shard.Lock()
	defer shard.Unlock()
	if shard.h == nil {
		shard.h = newHistogram()
	}
	record(shard.h, ns)
}

// count returns how many latencies were recorded.
func (s *shardedHistogram) count() (n int64) {
	for i := range s.shards {
		shard := &s.shards[i]
		shard.Lock()
		if shard.h != nil {
			n += shard.h.TotalCount()
		}
		shard.Unlock()
	}
	return n
}

// merged returns the sum of all shards.
func (s *shardedHistogram) merged() *hdrhistogram.Histogram {
	all := newHistogram()
	for i := range s.shards {
		shard := &s.shards[i]
		shard.Lock()
		if shard.h != nil {
			all.Merge(shard.h)
		}
		shard.Unlock()
	}
	return all
}
