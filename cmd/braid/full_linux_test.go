package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/braidlog/braid/internal/ports"
	"github.com/braidlog/braid/internal/testsize"
)

// diskBytes is the size of the file systems of these tests, and smallLog configures members so that it is not full
// from the start.
const diskBytes = 160 << 20

var smallLog = []string{"--snapshot-bytes", "16777216", "--max-request-bytes", "1572864"}

// smallDisk mounts a separate file system. Only root may; for others the tests of package wal with a file system that
// counts its bytes cover most of this.
func smallDisk(t *testing.T) (dir string, ok bool) {
	dir = t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", diskBytes)); err != nil {
		t.Logf("no file system can be mounted here (%v), nothing is tested", err)
		return "", false
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir, true
}

// grow makes a file system of these tests larger.
func grow(t *testing.T, dir string, bytes int) {
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, fmt.Sprintf("size=%d", bytes)))
}

// fill takes all free space in a directory.
func fill(t *testing.T, dir string) (free func()) {
	name := filepath.Join(dir, "filler")
	f, err := os.Create(name)
	require.NoError(t, err)
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			require.ErrorIs(t, err, unix.ENOSPC)
			block = block[:len(block)/2]
		}
	}
	return func() { require.NoError(t, os.Remove(name)) }
}

// tight is a cluster of members that each have a small disk.
type tight struct {
	t       *testing.T
	disks   []string
	flags   []serveFlags
	more    []string
	members []*invocation
	clients []*clientv3.Client
}

func tightCluster(t *testing.T) (*tight, bool) {
	free, err := ports.Free("127.0.0.1", 6)
	require.NoError(t, err)
	c := &tight{t: t}
	var initial []string
	for i := range 3 {
		disk, ok := smallDisk(t)
		if !ok {
			return nil, false
		}
		c.disks = append(c.disks, disk)
		f := serveFlags{fmt.Sprint("m", i+1), filepath.Join(disk, "data"), fmt.Sprintf("127.0.0.1:%d", free[2*i]),
			fmt.Sprintf("127.0.0.1:%d", free[2*i+1])}
		c.flags = append(c.flags, f)
		initial = append(initial, f.name+"=http://"+f.peer)
	}
	c.more = append([]string{"--initial-cluster", strings.Join(initial, ",")}, smallLog...)
	c.members, c.clients = make([]*invocation, 3), make([]*clientv3.Client, 3)
	for i, f := range c.flags {
		c.start(i)
		c.clients[i], err = clientv3.New(clientv3.Config{Endpoints: []string{f.client}, Logger: zap.NewNop(),
			DialTimeout: testTimeout})
		require.NoError(t, err)
		t.Cleanup(func() { c.clients[i].Close() })
	}
	return c, true
}

func (c *tight) start(i int) {
	f := c.flags[i]
	c.members[i], _ = begin(c.t, "",
		f.args(append([]string{"--initial-advertise-peer-urls", "http://" + f.peer, "--advertise-client-urls",
			"http://" + f.client}, c.more...)...)...)
}

func (c *tight) put(i int, key, value string) (err error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
	defer cancel()
	_, err = c.clients[i].Put(ctx, key, value)
	return err
}

// reads requires that a member serves a key, linearizably.
func (c *tight) reads(i int, key, value string) {
	c.t.Helper()
	eventually(c.t, c.flags[i].name+" serves reads", func(ctx context.Context) bool {
		resp, err := c.clients[i].Get(ctx, key)
		c.runs()
		return err == nil && len(resp.Kvs) == 1 && string(resp.Kvs[0].Value) == value
	})
}

// runs requires that no member ended.
func (c *tight) runs() {
	c.t.Helper()
	for _, m := range c.members {
		select {
		case <-m.ended:
			require.Fail(c.t, "a member ended", m.stderr.String())
		default:
		}
	}
}

// refuses waits until writes through any member are refused because the disk is full.
func (c *tight) refuses() {
	c.t.Helper()
	for i := range c.members {
		eventually(c.t, "writes are refused", func(context.Context) bool {
			c.runs()
			return errors.Is(c.put(i, "refused", "x"), rpctypes.ErrNoSpace)
		})
	}
}

// accepts waits until writes through any member are accepted.
func (c *tight) accepts() {
	c.t.Helper()
	for i := range c.members {
		eventually(c.t, "writes are accepted", func(context.Context) bool {
			c.runs()
			return c.put(i, "accepted", "x") == nil
		})
	}
}

// TestFullDisks writes until all disks are full: writes are refused, no member ends, reads are served, and with more
// space everything continues by itself.
func TestFullDisks(t *testing.T) {
	t.Parallel()
	c, ok := tightCluster(t)
	if !ok {
		return
	}
	c.accepts()
	value := letters(100<<10, 1)
	var wrote atomic.Int64
	full := make(chan error, 4)
	for w := range 4 {
		go func() {
			for n := 0; ; n++ {
				if err := c.put(w%3, fmt.Sprintf("w%d/%d", w, n), value); errors.Is(err, rpctypes.ErrNoSpace) || n > 5000 {
					full <- err
					return
				} else if err == nil {
					wrote.Add(1)
				}
			}
		}()
	}
	for range 4 {
		select {
		case err := <-full:
			require.ErrorIs(t, err, rpctypes.ErrNoSpace)
		case <-time.After(testTimeout):
			c.runs()
			t.Fatal("the disks do not get full")
		}
	}
	t.Logf("%d values of 100 KB", wrote.Load())
	c.refuses()
	for i := range c.members {
		c.reads(i, "w0/0", value)
	}
	_, err := c.clients[0].Delete(t.Context(), "w1/", clientv3.WithPrefix())
	require.NoError(t, err, "deleting needs no room")
	for _, disk := range c.disks {
		grow(t, disk, 4*diskBytes)
	}
	c.accepts()
	alarms, err := c.clients[0].AlarmList(t.Context())
	require.NoError(t, err)
	require.Empty(t, alarms.Alarms)
	c.runs()
}

// TestFullDiskOfAFollower fills the disk of one member to the last byte: it raises the alarm, stays, serves, can be
// killed and restarted, and recovers.
func TestFullDiskOfAFollower(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c, ok := tightCluster(t)
	if !ok {
		return
	}
	c.accepts()
	require.NoError(t, c.put(0, "key", "value"))
	status, err := c.clients[0].Status(t.Context(), c.flags[0].client)
	require.NoError(t, err)
	follower := 0
	for i := range c.members {
		st, err := c.clients[i].Status(t.Context(), c.flags[i].client)
		require.NoError(t, err)
		if st.Header.MemberId != status.Leader {
			follower = i
		}
	}
	c.reads(follower, "key", "value")
	free := fill(t, c.disks[follower])
	c.refuses()
	alarms, err := c.clients[follower].AlarmList(t.Context())
	require.NoError(t, err)
	require.Len(t, alarms.Alarms, 1, "one disk is full")
	require.Equal(t, pb.AlarmType_NOSPACE, alarms.Alarms[0].Alarm)

	for range 2 {
		kill(t, c.members[follower].cmd.Process.Pid)
		<-c.members[follower].ended
		c.start(follower)
		c.reads(follower, "key", "value")
		c.refuses()
	}
	free()
	c.accepts()
	require.NoError(t, c.members[follower].cmd.Process.Signal(os.Interrupt))
	c.members[follower].exit()
}
