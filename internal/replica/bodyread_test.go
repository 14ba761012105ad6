package replica

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/vfs/errorfs"
)

// TestReadersAreBoundedInBytes: the bytes that callers of Body read from the disk at the same time are bounded.
// Callers that want a body that is being read wait for nothing else.
func TestReadersAreBoundedInBytes(t *testing.T) {
	const size, count = 10 << 20, 5
	large := func(o *Options) {
		o.MaxCommandBytes, o.MaxBatchBytes, o.MaxPendingBytes, o.SnapshotBytes = 2*size, 2*size, 4*size, 1<<30
	}
	inBubble(t, setting{size: 1, tune: large}, func(c *testCluster) {
		c.leader()
		r := c.running[1]
		for i := range count {
			_, err := r.Propose(c.t.Context(), []byte("with a body"), fmt.Appendf(make([]byte, size-1), "%d", i))
			require.NoError(t, err)
		}
		refs := c.bodiesOf(1)
		require.Len(t, refs, count)

		busy, open := c.gate()
		reading := atomic.Int64{}
		c.faults[1].set(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileReadAt && strings.Contains(op.Path, "bodies") {
				reading.Add(1)
				<-busy
			}
			return nil
		})
		a := newAnswers()
		ask := func(name string, i int) {
			a.ask(name, func() error {
				body, err := r.Body(c.t.Context(), refs[i])
				if err == nil && len(body) != size {
					err = fmt.Errorf("%d bytes", len(body))
				}
				return err
			})
			synctest.Wait()
		}
		for i := range count {
			ask(fmt.Sprint(i), i)
		}
		ask("another one for the first", 0)
		require.EqualValues(t, bodyReadBytes/size, reading.Load())
		c.faults[1].set(nil)
		open()
		c.until("all are told", a.all)
		for name, err := range a.complete(c.t) {
			require.NoError(t, err, name)
		}
	})
}
