package mapkv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/ports"
	"github.com/braidlog/braid/internal/testsize"
)

// testTimeout bounds a test's wait for an event that should be quick.
const testTimeout = 30 * time.Second

// cluster is a set of members in this process.
type cluster struct {
	t       *testing.T
	members []braid.Member
	dirs    []string
	peers   []string // addresses
	clients []string
	running []*Member // nil while stopped
	adjust  func(*braid.Options)
}

func startWith(t *testing.T, n int, adjust func(*braid.Options)) *cluster {
	testsize.Long(t)
	c := &cluster{t: t, running: make([]*Member, n), adjust: adjust}
	// While a member is stopped its ports must not be taken by outgoing connections.
	free, err := ports.Free("127.0.0.1", 2*n)
	require.NoError(t, err)
	for i := range n {
		c.peers = append(c.peers, fmt.Sprintf("127.0.0.1:%d", free[2*i]))
		c.clients = append(c.clients, fmt.Sprintf("127.0.0.1:%d", free[2*i+1]))
		c.dirs = append(c.dirs, t.TempDir())
		c.members = append(c.members, braid.Member{ID: braid.MemberID(i + 1), PeerURLs: []string{"http://" + c.peers[i]}})
	}
	for i := range n {
		c.open(i)
	}
	t.Cleanup(func() {
		for i := range c.running {
			c.stop(i)
		}
	})
	return c
}

// open starts a member, or restarts a stopped one.
func (c *cluster) open(i int) {
	listen := func(address string) (l net.Listener) {
		require.Eventually(c.t, func() (ok bool) {
			var err error
			l, err = net.Listen("tcp", address)
			return err == nil
		}, testTimeout, 10*time.Millisecond)
		return l
	}
	o := braid.Options{
		Self: c.members[i].ID, Cluster: 42, Dir: c.dirs[i], Members: append([]braid.Member(nil), c.members...),
		Listeners: []net.Listener{listen(c.peers[i])},
		Heartbeat: 50 * time.Millisecond, ElectionTimeout: 500 * time.Millisecond,
		Limits: braid.Limits{SnapshotBytes: 64 << 10}, Logger: slog.New(slog.DiscardHandler),
	}
	c.adjust(&o)
	bodies := DefaultBodyBytes
	if o.Protocol == braid.Named("epaxos") {
		bodies = -1 // it has none
	}
	m, err := Open(o, listen(c.clients[i]), bodies)
	require.NoError(c.t, err)
	c.running[i] = m
}

func (c *cluster) stop(i int) {
	if m := c.running[i]; m != nil {
		c.running[i] = nil
		require.NoError(c.t, m.Close())
	}
}

func (c *cluster) url(i int, path string) string { return "http://" + c.clients[i] + path }

// leader waits for a leader that runs.
func (c *cluster) leader() (i int) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		for i = range c.running {
			if m := c.running[i]; m != nil {
				if s := m.Node.Status(); s.IsLeader() {
					return true
				}
			}
		}
		return false
	}, testTimeout, 5*time.Millisecond)
	return i
}

// insist repeats a request until it is answered with a code.
func (c *cluster) insist(code int, method, url, body string) (answer string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		var got int
		got, answer = ask(c.t, method, url, body)
		return got == code
	}, testTimeout, 10*time.Millisecond)
	return answer
}

// over runs a test over raft, and over protocols that order only commands with a common key, in one log or in one for
// each group of keys.
func over(t *testing.T, test func(t *testing.T, c *cluster)) {
	for _, protocol := range []string{"raft", "epaxos", "wpaxos"} {
		t.Run(protocol, func(t *testing.T) {
			test(t, startWith(t, 3, func(o *braid.Options) { o.Protocol = braid.Named(protocol) }))
		})
	}
}

func TestEveryMemberServes(t *testing.T) { over(t, everyMemberServes) }

func everyMemberServes(t *testing.T, c *cluster) {
	for i := range 3 {
		key := fmt.Sprint("/kv/key", i)
		c.insist(204, "PUT", c.url(i, key), "one")
		for j := range 3 {
			require.Equal(t, "one", c.insist(200, "GET", c.url(j, key), ""))
		}
		c.insist(204, "DELETE", c.url(i, key), "")
		for j := range 3 {
			c.insist(404, "GET", c.url(j, key), "")
		}
	}
	first := c.insist(200, "POST", c.url(0, "/append"), "0123456789abcdef")
	second := c.insist(200, "POST", c.url(1, "/append"), "0123456789abcdef")
	var a, b int
	_, err := fmt.Sscan(first+second, &a, &b)
	require.NoError(t, err)
	require.Greater(t, b, a)

	var s Status
	require.NoError(t, json.Unmarshal([]byte(c.insist(200, "GET", c.url(2, "/status"), "")), &s))
	require.Equal(t, "3", s.Member)
	require.NotEmpty(t, s.Leader)
	require.Equal(t, 3, s.Members)
}

// A member that was down while the log was truncated catches up by a snapshot of the map.
func TestSnapshotsOfTheMap(t *testing.T) { over(t, snapshotsOfTheMap) }

func snapshotsOfTheMap(t *testing.T, c *cluster) {
	away := (c.leader() + 1) % 3
	up := (away + 1) % 3
	c.insist(204, "PUT", c.url(up, "/kv/first"), "one")
	c.stop(away)
	large := strings.Repeat("x", 16<<10)
	require.Eventually(t, func() bool {
		c.insist(204, "PUT", c.url(up, "/kv/large"), large)
		return c.running[up].Node.Status().Snapshots > 1 && c.running[3-away-up].Node.Status().Snapshots > 1
	}, testTimeout, time.Millisecond)
	c.insist(204, "PUT", c.url(up, "/kv/last"), "two")

	c.open(away)
	require.Equal(t, "two", c.insist(200, "GET", c.url(away, "/kv/last"), ""))
	require.Equal(t, "one", c.insist(200, "GET", c.url(away, "/kv/first?stale"), ""))
	require.Equal(t, large, c.insist(200, "GET", c.url(away, "/kv/large?stale"), ""))
}

// Large values are kept in fragments: every member serves them, even a new leader, and unneeded ones are removed.
func TestValuesInFragments(t *testing.T) {
	c := startWith(t, 3, func(o *braid.Options) { o.Protocol = braid.CRaft{K: 2} })
	first := c.leader()
	large := func(fill string) string { return strings.Repeat(fill, 100<<10/len(fill)) }
	c.insist(204, "PUT", c.url(first, "/kv/a"), large("one "))
	c.insist(204, "POST", c.url(first, "/kv/a"), large("two "))
	for i := range 3 {
		require.Equal(t, large("one ")+large("two "), c.insist(200, "GET", c.url(i, "/kv/a"), ""))
	}
	require.Equal(t, "code", c.running[first].Node.Status().Placement)
	c.stop(first)
	second := c.leader()
	require.NotEqual(t, first, second)
	require.Equal(t, large("one ")+large("two "), c.insist(200, "GET", c.url(second, "/kv/a"), ""))
	c.open(first)

	for range 60 { // each is a reason for a snapshot
		c.insist(204, "PUT", c.url(second, "/kv/a"), large("three "))
	}
	require.Eventually(t, func() bool {
		c.insist(204, "PUT", c.url(second, "/kv/a"), large("three "))
		for _, m := range c.running {
			if s := m.Node.Status(); s.Bodies.LiveBytes > 20*100<<10 {
				return false
			}
		}
		return true
	}, testTimeout, 100*time.Millisecond)
	require.Equal(t, large("three "), c.insist(200, "GET", c.url(first, "/kv/a"), ""))
}

// The history of clients is linearizable while the leader stops and comes back.
func TestLinearizableWhileTheLeaderStops(t *testing.T) { over(t, linearizableWhileTheLeaderStops) }

func linearizableWhileTheLeaderStops(t *testing.T, c *cluster) {
	first := c.leader()
	var history check.Recorder
	origin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	phase := make(chan struct{}, 1000)
	var clients sync.WaitGroup
	for i := range 6 {
		clients.Go(func() {
			record(ctx, c, i, &history, origin, phase)
		})
	}
	some := func() {
		for range 150 {
			select {
			case <-phase:
			case <-ctx.Done():
				require.Fail(t, "the clients got stuck")
			}
		}
	}
	some()
	c.stop(first)
	some()
	require.NotEqual(t, first, c.leader())
	c.open(first)
	some()
	cancel()
	clients.Wait()
	require.NoError(t, check.Linearizable(history.History(), time.Minute))
}

// record puts and gets the same few keys as others until ctx ends, at the next member when one does not answer. done
// gets a token for each answer, as long as there is space.
func record(ctx context.Context, c *cluster, client int, h *check.Recorder, origin time.Time, done chan<- struct{}) {
	now := func() int64 { return int64(time.Since(origin)) }
	member := client
	for n := 0; ctx.Err() == nil; n++ {
		op := check.Operation{Client: client, Key: fmt.Sprint("key", n%3), Kind: check.Get, Call: now()}
		method := http.MethodGet
		if (n+client)%2 == 0 {
			op.Kind, op.Value, method = check.Put, fmt.Sprintf("%d/%d;", client, n), http.MethodPut
		}
		id := h.Begin(op)
		code, answer, err := request(ctx, method, c.url(member%3, "/kv/"+op.Key), op.Value)
		switch {
		case err != nil:
			member++
			continue
		case code == http.StatusOK || code == http.StatusNoContent:
			h.End(id, now(), answer, true, 0)
		case code == http.StatusNotFound:
			h.End(id, now(), "", false, 0)
		case code == http.StatusServiceUnavailable:
			h.Fail(id)
			continue
		default:
			continue
		}
		select {
		case done <- struct{}{}:
		default:
		}
	}
}

func request(ctx context.Context, method, url, body string) (int, string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), errors.Join(err, resp.Body.Close())
}
