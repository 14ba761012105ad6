package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// BenchmarkApplyPut applies puts of 16 bytes in batches, with fsyncs.
func BenchmarkApplyPut(b *testing.B) {
	b.Setenv("ETCD_VERIFY", "")
	for _, batch := range []int{1, 100, 1000} {
		for _, limit := range []int{1000, 10000} {
			b.Run(fmt.Sprintf("batch=%d/limit=%d", batch, limit), func(b *testing.B) {
				o := testOptions(b.TempDir())
				o.NoSync = false
				o.BackendBatchLimit = limit
				benchmarkPut(b, o, batch, false)
			})
		}
	}
}

// BenchmarkApplyPutRead reads once after each batch, which copies the read buffer: the
// smaller the batch limit, the less there is to copy, and the more fsyncs.
func BenchmarkApplyPutRead(b *testing.B) {
	b.Setenv("ETCD_VERIFY", "")
	for _, batch := range []int{1, 10, 100} {
		for _, limit := range []int{500, 1000, 2000, 10000} {
			b.Run(fmt.Sprintf("batch=%d/limit=%d", batch, limit), func(b *testing.B) {
				o := testOptions(b.TempDir())
				o.NoSync = false
				o.BackendBatchLimit = limit
				benchmarkPut(b, o, batch, true)
			})
		}
	}
}

func benchmarkPut(b *testing.B, o Options, batch int, read bool) {
	n := open(b, o)
	defer n.Close()
	data := make([][]byte, 10000)
	for i := range data {
		data[i] = n.encode(put(fmt.Sprintf("key-%08d", i), "0123456789abcdef"))
	}
	commands := make([]Command, batch)
	r := &pb.RangeRequest{Key: []byte("key-00000001")}
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; {
		c := commands[:min(batch, b.N-done)]
		for i := range c {
			c[i] = Command{Position: n.next, Data: data[n.next%uint64(len(data))]}
			n.next++
		}
		require.NoError(b, n.Apply(c))
		done += len(c)
		if read {
			if _, err := n.Range(context.Background(), r); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "puts/s")
}

// BenchmarkCountOfKeys sets a quota of a prefix with a million keys of 10 bytes and counts them in steps. ms/step is
// the mean time of a step, in which nothing else is applied, worst-ms that of the longest one.
func BenchmarkCountOfKeys(b *testing.B) {
	b.Setenv("ETCD_VERIFY", "")
	n := open(b, testOptions(b.TempDir()))
	defer n.Close()
	for i := range 10_000 {
		var ops []*pb.RequestOp
		for j := range 100 {
			ops = append(ops, putOp(fmt.Sprintf("q/%07d", 100*i+j), "v"))
		}
		n.must(&pb.InternalRaftRequest{Txn: &pb.TxnRequest{Success: ops}})
	}
	if err := n.Sync(); err != nil {
		b.Fatal(err)
	}
	steps, all, worst := 0, time.Duration(0), time.Duration(0)
	for b.Loop() {
		n.raw(quotaOf("q/", 0, 1)) // the first step
		for n.PrefixQuotas()[0].Counting {
			began := time.Now()
			n.raw(countCommand("q/"))
			took := time.Since(began)
			steps, all, worst = steps+1, all+took, max(worst, took)
		}
		n.raw(quotaOf("q/", 0, 0))
	}
	b.ReportMetric(float64(all.Microseconds())/1000/float64(steps), "ms/step")
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
}
