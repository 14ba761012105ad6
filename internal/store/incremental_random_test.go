package store

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/braidlog/braid/internal/store/sums"
)

// replicas are members that apply the same commands, and remove old history at different speeds.
type replicas struct {
	t       *testing.T
	r       *rand.Rand
	members []*node
	options []Options
}

// openReplicas opens a quick member, one that needs long for each compaction, and one that completes none.
func openReplicas(t *testing.T, r *rand.Rand) *replicas {
	c := &replicas{t: t, r: r}
	for _, interval := range []time.Duration{time.Microsecond, 2 * time.Millisecond, time.Hour} {
		o := testOptions(t.TempDir())
		if o.CompactionSleepInterval = interval; interval > time.Microsecond {
			o.CompactionBatchLimit = 2
		}
		c.options, c.members = append(c.options, o), append(c.members, open(t, o))
	}
	t.Cleanup(func() {
		for _, n := range c.members {
			require.NoError(t, n.Close())
		}
	})
	return c
}

// apply applies commands on all members. The quick one completes its compactions.
func (c *replicas) apply(log [][]byte) {
	for i, n := range c.members {
		results := n.raw(log...)
		for k := range results {
			if i == 0 {
				require.NoError(c.t, n.FinishCompaction(c.t.Context(), results[k]))
			}
		}
	}
}

func (c *replicas) any() int { return c.r.IntN(len(c.members)) }

// disturb restarts a member, defragments it, or gives it the snapshot of another.
func (c *replicas) disturb() {
	i := c.any()
	switch n := c.members[i]; c.r.IntN(4) {
	case 0:
		require.NoError(c.t, n.Close())
		c.members[i] = open(c.t, c.options[i])
	case 1:
		require.NoError(c.t, n.Defragment(c.t.Context()))
	case 2:
		require.NoError(c.t, n.Restore(bytes.NewReader(c.members[c.any()].snapshot())))
	}
}

// requireRestored compares the database restored from the chain with that of a whole backup of a member, when both have
// completed their compactions.
func (c *replicas) requireRestored(chain *chain, of *node) {
	c.t.Helper()
	whole, more := wholeBackup(c.t, of).restored(), chain.restored()
	want, got := open(c.t, testOptions(whole)), open(c.t, testOptions(more))
	require.Equal(c.t, want.Revision(), got.Revision())
	require.Equal(c.t, want.CompactRevision(), got.CompactRevision())
	require.Equal(c.t, sortedLeases(want), sortedLeases(got))
	require.Equal(c.t, want.PrefixQuotas(), got.PrefixQuotas())
	for revision := max(0, want.CompactRevision()) + 1; revision < want.Revision(); revision++ {
		a, err := want.HashKV(context.Background(), revision)
		require.NoError(c.t, err)
		b, err := got.HashKV(context.Background(), revision)
		require.NoError(c.t, err)
		require.Equal(c.t, a, b, "revision %d", revision)
	}
	settle(c.t, want)
	settle(c.t, got)
	require.Equal(c.t, want.dump(), got.dump())
	require.NoError(c.t, want.Close())
	require.NoError(c.t, got.Close())
	record := fmt.Sprintf("%s %x", schema.Meta.Name(), sums.RecordKey)
	a, b := contents(c.t, whole), contents(c.t, more)
	delete(a, record) // it covers the name of the state that was restored
	delete(b, record)
	require.Equal(c.t, a, b)
}

// TestIncrementsOfAnyMember: the chain restores the members' state. Each increment is of a random member, and members
// are disturbed between increments.
func TestIncrementsOfAnyMember(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 11))
			c := openReplicas(t, r)
			c.apply(randomLog(c.members[0], 1000+100*seed, 100))
			chain := wholeBackup(t, c.members[c.any()])
			for step := range uint64(15) {
				for k := r.IntN(3); k > 0; k-- {
					c.apply(randomLog(c.members[0], 1000+100*seed+step+1, r.IntN(80)))
					c.disturb()
				}
				of := c.members[c.any()]
				if newest := of.Revision(); r.IntN(3) == 0 && newest > max(of.CompactRevision(), 1) {
					c.apply([][]byte{of.encode(compact(newest))})
				}
				c.disturb()
				of = c.members[c.any()]
				chain.add(of)
				if r.IntN(3) == 0 {
					c.requireRestored(chain, of)
				}
			}
			c.requireRestored(chain, c.members[0])
		})
	}
}
