package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid"
)

// book is what a cluster should hold.
type book struct {
	*realCluster
	ctx    context.Context
	values map[string]string
	puts   int
}

// write puts values of many sizes, again and again under few keys.
func (b *book) write(c *clientv3.Client, n int) {
	b.t.Helper()
	for range n {
		b.puts++
		key := fmt.Sprintf("k%02d", b.puts%17)
		value := strings.Repeat(fmt.Sprintf("%d.", b.puts), 1+b.puts*b.puts*97%100_000)
		putUntil(b.t, b.ctx, c, key, value)
		b.values[key] = value
	}
}

// readOn reads everything from one member: what it has not whole it gets from the others.
func (b *book) readOn(id braid.MemberID) {
	b.t.Helper()
	c := b.client(id)
	for key, value := range b.values {
		eventually(b.t, "to read "+key, func() bool {
			ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
			defer cancel()
			got, err := c.Get(ctx, key)
			if err != nil {
				return false
			}
			require.Len(b.t, got.Kvs, 1)
			require.True(b.t, value == string(got.Kvs[0].Value), "value of %s on %s", key, id)
			return true
		})
	}
}

// TestRealLargeValues writes while members come and go, and reads everything everywhere, in
// the end on a new member too.
func TestRealLargeValues(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		members  int
		protocol braid.Protocol
	}{
		"copy3": {3, braid.Raft{}}, "code3": {3, braid.CRaft{}}, "code5": {5, braid.CRaft{}},
		"niagara copy3": {3, braid.Niagara{Instances: 3, Leaders: braid.LeadersSpread}},
		"niagara code5": {5, braid.Niagara{Instances: 3, Coded: &braid.CRaft{}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := startReal(t, want.members, func(c *Config) {
				c.Node.Protocol, c.Node.Limits.SnapshotBytes = want.protocol, 1<<20
				c.Store.LargeValueBytes, c.Store.ReleaseGrace = 4096, 100*time.Millisecond
				c.Store.NoSync = true
			})
			b := &book{realCluster: c, ctx: testContext(t), values: map[string]string{}}
			c.leader()
			all := c.client()
			b.write(all, 40)
			for _, m := range c.members {
				b.readOn(m.ID)
			}
			away := c.follower()
			c.stop(away)
			b.write(c.client(c.leader()), 20)
			compactNow(t, b.ctx, c.client(c.leader()))
			c.start(away)
			b.readOn(away)
			old := c.leader()
			c.stop(old)
			b.write(c.client(c.leader()), 20)
			c.start(old)
			b.write(c.client(), 5)
			for _, m := range c.members {
				b.readOn(m.ID)
			}
			sameHash(t, b.ctx, c)
			b.readOn(b.join())
		})
	}
}

// join adds a member, which gets a snapshot since the log does not begin at its beginning.
func (b *book) join() braid.MemberID {
	b.t.Helper()
	peer := "http://" + freeAddr(b.t)
	m := braid.Member{ID: JoinedMemberID([]string{peer}, testToken), Name: "new", PeerURLs: []string{peer}}
	all := b.client()
	eventually(b.t, "the member to be added", func() bool {
		_, err := all.MemberAddAsLearner(b.ctx, []string{peer})
		return err == nil || errors.Is(err, rpctypes.ErrPeerURLExist)
	})
	b.members = append(b.members, m)
	b.configure(m, true)
	b.start(m.ID)
	eventually(b.t, "the new member to vote", func() bool {
		_, err := all.MemberPromote(b.ctx, uint64(m.ID))
		return err == nil || errors.Is(err, rpctypes.ErrMemberNotLearner)
	})
	return m.ID
}

func compactNow(t testing.TB, ctx context.Context, c *clientv3.Client) {
	t.Helper()
	eventually(t, "compaction", func() bool {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		got, err := c.Get(attempt, "k00", clientv3.WithKeysOnly())
		if err != nil {
			return false
		}
		_, err = c.Compact(attempt, got.Header.Revision)
		return err == nil
	})
}

// sameHash demands that all members agree on the keys and their history.
func sameHash(t testing.TB, ctx context.Context, c *realCluster) {
	t.Helper()
	all := c.client()
	eventually(t, "equal hashes", func() bool {
		hashes := map[uint32]bool{}
		for _, m := range c.members {
			h, err := all.HashKV(ctx, c.addrs[m.ID], 0)
			if err != nil {
				return false
			}
			hashes[h.Hash] = true
		}
		return len(hashes) == 1
	})
}
