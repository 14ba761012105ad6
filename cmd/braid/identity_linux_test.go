package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/braidlog/braid"
)

// trio is three members, each a separately started process.
type trio struct {
	t       *testing.T
	flags   [4]serveFlags  // by number, from 1
	running [4]*invocation // nil: not running
	initial string
	more    []string // flags of all members
	env     []string // variables of all members
}

func newTrio(t *testing.T) *trio {
	t.Helper()
	c := unstarted(t)
	c.start(1, 2, 3)
	for i := 1; i <= 3; i++ {
		c.healthy(i)
	}
	return c
}

// unstarted is three members that have not been started.
func unstarted(t *testing.T) *trio {
	t.Helper()
	c := &trio{t: t}
	all := memberFlags(t, 3)
	copy(c.flags[1:], all)
	c.initial = initialCluster(all)
	return c
}

// start starts members with their unchanged command.
func (c *trio) start(members ...int) {
	c.t.Helper()
	for _, i := range members {
		c.running[i], _ = beginWith(c.t, c.env, "",
			c.flags[i].args(append([]string{"--initial-cluster", c.initial, "--initial-advertise-peer-urls",
				"http://" + c.flags[i].peer,
				"--advertise-client-urls", "http://" + c.flags[i].client}, c.more...)...)...)
	}
}

// join starts a member that was added to the cluster.
func (c *trio) join(i, through int) {
	c.t.Helper()
	c.running[i], _ = begin(c.t, "", c.flags[i].args("--initial-cluster-state", "existing", "--join",
		"http://"+c.flags[through].client,
		"--initial-advertise-peer-urls", "http://"+c.flags[i].peer, "--advertise-client-urls",
		"http://"+c.flags[i].client)...)
}

func (c *trio) kill(members ...int) {
	c.t.Helper()
	for _, i := range members {
		kill(c.t, c.running[i].cmd.Process.Pid)
		<-c.running[i].ended
	}
}

func (c *trio) wipe(i int) {
	c.t.Helper()
	require.NoError(c.t, os.RemoveAll(c.flags[i].dir))
}

func (c *trio) healthy(i int) {
	c.t.Helper()
	eventually(c.t, "health of "+c.flags[i].name, func(ctx context.Context) bool {
		select {
		case <-c.running[i].ended:
			require.Fail(c.t, "the member ended", c.running[i].stderr.String())
		default:
		}
		return healthy(ctx, c.flags[i].client)
	})
}

func (c *trio) client(i int) *clientv3.Client {
	c.t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{c.flags[i].client}, Logger: zap.NewNop(),
		DialTimeout: testTimeout})
	require.NoError(c.t, err)
	c.t.Cleanup(func() { client.Close() })
	return client
}

func (c *trio) put(i int, key, value string) {
	c.t.Helper()
	client := c.client(i)
	eventually(c.t, "a put", func(ctx context.Context) bool {
		_, err := client.Put(ctx, key, value)
		return err == nil
	})
}

// has requires that a linearizable read finds a value.
func (c *trio) has(i int, key, value string) {
	c.t.Helper()
	client := c.client(i)
	eventually(c.t, "a read", func(ctx context.Context) bool {
		r, err := client.Get(ctx, key)
		if err != nil {
			return false
		}
		require.Len(c.t, r.Kvs, 1, "%s is lost", key)
		require.Equal(c.t, value, string(r.Kvs[0].Value))
		return true
	})
}

// refused requires that a member ends by itself and prints the remedy.
func (c *trio) refused(i int, why string) {
	c.t.Helper()
	code, stderr := c.running[i].exit()
	require.Equal(c.t, exitExpelled, code, stderr)
	require.Contains(c.t, stderr, "has already been bootstrapped")
	require.Contains(c.t, stderr, why)
	require.Contains(c.t, stderr, "braid ctl member remove "+c.id(i))
}

// id is a member's id by its name.
func (c *trio) id(i int) string {
	return braid.MemberIDOf(c.flags[i].name, "etcd-cluster").String()
}

// replace removes a member and adds it again as a new one, under its old peer URL.
func (c *trio) replace(i, through int) {
	c.t.Helper()
	endpoint, client := c.flags[through].client, c.client(through)
	eventually(c.t, "the removal", func(ctx context.Context) bool {
		list, err := client.MemberList(ctx)
		if err != nil {
			return false
		}
		for _, m := range list.Members {
			if slices.Contains(m.PeerURLs, "http://"+c.flags[i].peer) {
				_, err = client.MemberRemove(ctx, m.ID)
				return err == nil
			}
		}
		return true
	})
	ok(c.t, "ctl", "--endpoints", endpoint, "member", "add", c.flags[i].name, "--peer-urls", "http://"+c.flags[i].peer)
	c.wipe(i)
	c.join(i, through)
	c.healthy(i)
	eventually(c.t, "it votes", func(ctx context.Context) bool { return votersAt(ctx, c.t, endpoint, 3) })
}

// A member that lost its disk does not help to elect one without acknowledged entries: with its unchanged command,
// and as a joining one.
func TestAWipedMemberDoesNotVote(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"new", "existing"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			aWipedMemberDoesNotVote(t, how == "existing")
		})
	}
}

func aWipedMemberDoesNotVote(t *testing.T, joins bool) {
	c := newTrio(t)
	c.put(1, "a", "before")
	c.kill(3)
	c.put(1, "x", "acknowledged")
	c.kill(1, 2)
	c.wipe(2)
	c.start(3)
	if joins {
		c.join(2, 3)
	} else {
		c.start(2)
	}
	c.refused(2, "the one that is known was lost")
	c.start(1)
	c.healthy(1)
	for _, i := range []int{1, 3} {
		c.has(i, "x", "acknowledged")
	}
	c.replace(2, 1)
	c.has(2, "x", "acknowledged")
	c.kill(3) // the new one counts
	c.put(2, "y", "later")
	c.has(1, "y", "later")
	c.start(3)
	c.healthy(3)
}

// The same under a live leader, with the unchanged command and as a joining one.
func TestAWipedMemberUnderALivingLeader(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"new", "existing"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := newTrio(t)
			const puts = 30 // the log has that number of proposals of 2
			for n := range puts {
				c.put(2, "k", fmt.Sprint(n))
			}
			c.kill(2)
			c.wipe(2)
			if how == "new" {
				c.start(2)
			} else {
				c.join(2, 1)
			}
			c.refused(2, "the one that is known was lost")
			c.put(3, "k", "without")
			c.replace(2, 1)
			c.kill(1)
			for n := range puts + 5 {
				value := fmt.Sprintf("again %d", n)
				c.put(2, "k", value)
				c.has(3, "k", value)
			}
			c.start(1)
			c.has(1, "k", fmt.Sprintf("again %d", puts+4))
		})
	}
}

// An old copy of a directory is refused, however often it is started.
func TestAnOldCopyOfADirectoryIsRefused(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	require.NoError(t, c.running[2].cmd.Process.Signal(syscall.SIGTERM))
	code, stderr := c.running[2].exit()
	require.Zero(t, code, stderr)
	copied := c.flags[2].dir + ".copy"
	require.NoError(t, os.CopyFS(copied, os.DirFS(c.flags[2].dir)))
	c.start(2)
	c.healthy(2)
	c.put(2, "x", "acknowledged")
	c.kill(2)
	c.wipe(2)
	require.NoError(t, os.Rename(copied, c.flags[2].dir))
	for range 3 {
		c.start(2)
		c.refused(2, "an old copy")
	}
	for range 2 { // also a member that joined has a successor under its peer URLs
		c.replace(2, 3)
		c.has(2, "x", "acknowledged")
		c.kill(2)
	}
}
