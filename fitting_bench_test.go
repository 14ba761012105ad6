package braid_test

import (
	"testing"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/sys"
	"github.com/braidlog/braid/internal/vfs"
)

// BenchmarkPropose proposes many commands at a time at one of three members. Measuring for the fitter costs no
// throughput. cpu-ns/op is the processors' time, of all members together.
func BenchmarkPropose(b *testing.B) {
	for _, mode := range []braid.FitMode{braid.FitOff, braid.FitAdvise} {
		b.Run("fit="+string(mode), func(b *testing.B) {
			c := newCluster(b, 3, func(o *braid.Options) { o.Fit, o.FS = mode, vfs.NewMem() })
			c.leader()
			command := make([]byte, 100)
			b.SetParallelism(128)
			b.ReportAllocs()
			b.ResetTimer()
			began := sys.CPUTime()
			b.RunParallel(func(pb *testing.PB) {
				n := c.any()
				for pb.Next() {
					if _, err := n.Propose(b.Context(), command); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(sys.CPUTime()-began)/float64(b.N), "cpu-ns/op")
		})
	}
}
