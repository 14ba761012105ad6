package braid_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// BenchmarkIdle is the share of a core, in percent, that three members in one process use while nothing is proposed.
// An iteration lasts a second: -benchtime 20x.
func BenchmarkIdle(b *testing.B) {
	for name, protocol := range map[string]braid.Protocol{"raft": braid.Raft{}, "multi-paxos": braid.MultiPaxos{}} {
		b.Run(name, func(b *testing.B) {
			c := newCluster(b, 3, func(o *braid.Options) {
				o.Protocol, o.Heartbeat, o.ElectionTimeout = protocol, 100*time.Millisecond, time.Second
			})
			c.leader()
			c.fill("a", 10)
			pass(2) // members expect more for a while
			began, used := time.Now(), cpuTime(b)
			b.ResetTimer()
			pass(b.N)
			b.StopTimer()
			b.ReportMetric(100*float64(cpuTime(b)-used)/float64(time.Since(began)), "%core")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// pass waits some seconds.
func pass(seconds int) { <-time.After(time.Duration(seconds) * time.Second) }

// cpuTime is the time of the CPU that this process has used.
func cpuTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
