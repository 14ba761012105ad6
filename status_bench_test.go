package braid_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// BenchmarkStatus is the cost of a status after a number of changes of the settings.
func BenchmarkStatus(b *testing.B) {
	for _, changes := range []int{0, 8} {
		b.Run(fmt.Sprint("changes=", changes), func(b *testing.B) {
			n := sole(b, []braid.Member{{ID: 1}})
			for i := range changes {
				_, err := n.Tune(b.Context(), braid.Tuning{Set: map[string]string{"lease-reads": fmt.Sprint(i%2 == 0)}})
				require.NoError(b, err)
			}
			require.Len(b, n.Status().Profile.Earlier, changes)
			b.ReportAllocs()
			for b.Loop() {
				n.Status()
			}
		})
	}
}
