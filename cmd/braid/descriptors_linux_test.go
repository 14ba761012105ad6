package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/braidlog/braid/internal/ports"
	"github.com/braidlog/braid/internal/testsize"
)

// scarce is a cluster of three members whose processes have few descriptors.
type scarce struct {
	tight
	stop  func() // ends the load
	wrote atomic.Int64
	gap   atomic.Int64 // the longest time of a write
}

func scarceCluster(t *testing.T, descriptors int) *scarce {
	free, err := ports.Free("127.0.0.1", 6)
	require.NoError(t, err)
	c := &scarce{tight: tight{t: t, members: make([]*invocation, 3), clients: make([]*clientv3.Client, 3)}}
	var initial []string
	for i := range 3 {
		f := serveFlags{fmt.Sprint("m", i+1), dataDir(t), fmt.Sprintf("127.0.0.1:%d", free[2*i]),
			fmt.Sprintf("127.0.0.1:%d", free[2*i+1])}
		c.flags, initial = append(c.flags, f), append(initial, f.name+"=http://"+f.peer)
	}
	more := append([]string{"--initial-cluster", strings.Join(initial, ",")}, smallLog...)
	for i, f := range c.flags {
		c.members[i], _ = beginWith(t, []string{fmt.Sprint(fewDescriptors, "=", descriptors)}, "",
			f.args(append([]string{"--initial-advertise-peer-urls", "http://" + f.peer, "--advertise-client-urls",
				"http://" + f.client}, more...)...)...)
		c.clients[i], err = clientv3.New(clientv3.Config{Endpoints: []string{f.client}, Logger: zap.NewNop(),
			DialTimeout: testTimeout})
		require.NoError(t, err)
		t.Cleanup(func() { c.clients[i].Close() })
	}
	c.accepts()
	return c
}

// load writes large values through all members until stop is called. Every write is acknowledged.
func (c *scarce) load() {
	ctx, cancel := context.WithCancel(c.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		value := letters(300<<10, 1)
		for n := 0; ctx.Err() == nil; n++ {
			began := time.Now()
			within, done := context.WithTimeout(ctx, time.Minute)
			_, err := c.clients[n%3].Put(within, fmt.Sprint("key", n%20), value)
			done()
			if err == nil {
				c.wrote.Add(1)
				c.gap.Store(max(c.gap.Load(), int64(time.Since(began))))
			}
		}
	}()
	c.stop = func() { cancel(); <-ended }
	c.t.Cleanup(c.stop)
}

// writes waits until this number of further values are written.
func (c *scarce) writes(n int64) {
	c.t.Helper()
	from := c.wrote.Load()
	eventually(c.t, "values are written", func(context.Context) bool {
		c.runs()
		return c.wrote.Load() >= from+n
	})
}

// idle opens HTTP/2 connections to an address, or silent ones, without requests.
func (c *scarce) idle(n int, addr, greeting string) {
	for range n {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			continue // the system's queue is full: harmless
		}
		c.t.Cleanup(func() { conn.Close() })
		_, _ = conn.Write([]byte(greeting))
	}
}

// http2Greeting is the beginning of an HTTP/2 connection, with empty settings.
const http2Greeting = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// TestIdleConnections opens more connections than a member has descriptors, at the addresses for clients and for
// members. Writes continue, and the log gets its files.
func TestIdleConnections(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := scarceCluster(t, 64)
	c.load()
	for _, f := range c.flags {
		c.idle(100, f.client, http2Greeting)
		c.idle(100, f.peer, "")
	}
	c.writes(120) // 36 MB: several segments
	c.stop()
	require.Less(t, time.Duration(c.gap.Load()), 10*time.Second)
	t.Logf("%d values, the slowest took %v", c.wrote.Load(), time.Duration(c.gap.Load()))
}

// TestNoDescriptorsAreLeft takes all descriptors of all members while they write, and releases them: operations that
// need a file wait, no member ends, and writes continue.
func TestNoDescriptorsAreLeft(t *testing.T) {
	t.Parallel()
	c := scarceCluster(t, 512)
	c.load()
	c.writes(5)
	limit := func(n uint64) {
		for _, m := range c.members {
			require.NoError(t, unix.Prlimit(m.cmd.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: 512}, nil))
		}
	}
	limit(1)
	eventually(t, "a log waits", func(context.Context) bool {
		c.runs()
		return strings.Contains(c.members[0].stderr.String()+c.members[1].stderr.String()+c.members[2].stderr.String(),
			"the log waits")
	})
	limit(512)
	c.writes(20)
	c.stop()
	require.Contains(t, c.members[0].stderr.String()+c.members[1].stderr.String()+c.members[2].stderr.String(),
		"event=log-continues")
}
