package store

import (
	"context"
	"fmt"
	"testing"

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
