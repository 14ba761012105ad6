package server

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// BenchmarkRealPut puts values of several sizes on three members in this process, in the
// database and by reference: the least size at which references are not slower is where the
// default of large values comes from.
func BenchmarkRealPut(b *testing.B) {
	for _, clients := range []int{1, 32} {
		for _, size := range []int{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20} {
			for name, change := range map[string]func(*Config){
				"database": func(c *Config) { c.Store.LargeValueBytes = -1 },
				"copy":     func(c *Config) { c.Store.LargeValueBytes = 1 << 10 },
				"code":     func(c *Config) { c.Store.LargeValueBytes, c.Node.Protocol = 1<<10, braid.CRaft{} },
			} {
				b.Run(fmt.Sprintf("clients=%d/size=%dKiB/%s", clients, size>>10, name), func(b *testing.B) {
					benchmarkRealPut(b, clients, size, change)
				})
			}
		}
	}
}

func benchmarkRealPut(b *testing.B, clients, size int, change func(*Config)) {
	c := startReal(b, 3, change, func(c *Config) { c.Store.QuotaBytes = 64 << 30 })
	ctx := b.Context()
	client := c.client(c.leader())
	putUntil(b, ctx, client, "first", "x")
	value := make([]byte, size)
	for i := range value {
		value[i] = byte(rand.Uint32())
	}
	text := string(value)
	b.SetBytes(int64(size))
	b.ResetTimer()
	var next atomic.Int64
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if _, err := client.Put(ctx, fmt.Sprint("k", i%1000), text); err != nil {
					b.Errorf("put %d: %v", i, err)
				}
			}
		})
	}
	group.Wait()
	b.StopTimer()
	require.False(b, b.Failed())
}
