package metrics

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requestTimes is etcd's distribution of how long requests took.
var requestTimes = newFamily(prometheus.CounterValue, "etcd_server_request_duration_seconds",
	"Response latency distribution in seconds for each type.", "type", "success")

// etcdBounds is how many buckets etcd's distribution has. The first is up to a millisecond, each next one up to twice
// as much.
const etcdBounds = 14

// Times have four buckets for each doubling, from timesUnit on: so finely that quantiles of a second can be read.
const (
	timesUnit    = time.Millisecond / 64
	timesOctaves = 6 + etcdBounds - 1 // up to etcd's largest bound
	timesBuckets = 4*(timesOctaves-1) + 1
)

// Times is a distribution of times. It is safe for concurrent use.
type Times struct {
	counts [timesBuckets]atomic.Uint64
	sum    atomic.Int64
}

// Observe counts a time.
func (t *Times) Observe(took time.Duration) {
	t.counts[timesIndex(took)].Add(1)
	t.sum.Add(int64(took))
}

// timesIndex is the bucket of a time: the times up to its bound, and above that of the one before.
func timesIndex(took time.Duration) int {
	n := uint64(max(took-1, 0) / timesUnit)
	if n < 4 {
		return int(n)
	}
	shift := bits.Len64(n) - 3
	return min(4*shift+int(n>>shift), timesBuckets-1)
}

// TimesBound is the upper bound of a bucket; the last has none.
func TimesBound(i int) time.Duration {
	if i < 4 {
		return time.Duration(i+1) * timesUnit
	}
	shift := i/4 - 1
	return time.Duration((i%4+5)<<shift) * timesUnit
}

// add adds the counts to others.
func (t *Times) add(to []uint64) {
	for i := range t.counts {
		to[i] += t.counts[i].Load()
	}
}

// collect emits the distribution with etcd's bounds, unless it is empty.
func (t *Times) collect(ch chan<- prometheus.Metric, labels ...string) {
	counts := make([]uint64, timesBuckets)
	t.add(counts)
	count, buckets, bound := uint64(0), map[float64]uint64{}, time.Millisecond
	for i, n := range counts {
		count += n
		if i < timesBuckets-1 && TimesBound(i) == bound {
			buckets[bound.Seconds()] = count
			bound *= 2
		}
	}
	if count > 0 {
		sum := time.Duration(t.sum.Load()).Seconds()
		ch <- prometheus.MustNewConstHistogram(requestTimes.Desc, count, sum, buckets, labels...)
	}
}

// Requests are the requests of clients that were answered, by how long they took: reads, or writes of keys and leases.
// Failed ones are counted apart.
func (m *Counts) Requests(reads bool) (answered []uint64, failed uint64) {
	answered, failures := make([]uint64, timesBuckets), make([]uint64, timesBuckets)
	for kind, d := range m.observed.requests {
		if isRead := kind == typeRange || kind == typeReadTxn; isRead == reads && (isRead || writeTypes[kind]) {
			d[1].add(answered)
			d[0].add(failures)
		}
	}
	for _, n := range failures {
		failed += n
	}
	return answered, failed
}

// Types of requests that read, and those that write keys and leases.
const typeRange, typeReadTxn = "Range", "ReadonlyTxn"

var writeTypes = map[string]bool{"Put": true, "DeleteRange": true, "Txn": true, "Compaction": true, "LeaseGrant": true,
	"LeaseRevoke": true}
