package store

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkApplyGrant applies grants of leases in batches of 100, with fsyncs: ids as one member makes them, and as
// three do, each from a beginning of its own.
func BenchmarkApplyGrant(b *testing.B) {
	b.Setenv("ETCD_VERIFY", "")
	for name, members := range map[string]int64{"one member": 1, "three members": 3} {
		b.Run(name, func(b *testing.B) {
			o := testOptions(b.TempDir())
			o.NoSync = false
			n := open(b, o)
			defer n.Close()
			commands := make([]Command, 100)
			b.ReportAllocs()
			b.ResetTimer()
			began := cpuTime(b)
			for done := 0; done < b.N; {
				c := commands[:min(len(commands), b.N-done)]
				for i := range c {
					id := int64(done + i)
					c[i] = Command{Position: n.next, Data: mustEncode(b, grant(1+id%members<<40+id, 600))}
					n.next++
				}
				require.NoError(b, n.Apply(c))
				done += len(c)
			}
			b.ReportMetric((cpuTime(b)-began)/float64(b.N), "µs-CPU/op")
		})
	}
}

// cpuTime is the time of the CPU that this process has used, in µs.
func cpuTime(tb testing.TB) float64 {
	var u syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1000
}
