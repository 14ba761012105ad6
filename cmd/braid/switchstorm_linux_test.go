package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/internal/testsize"
)

var stormFor = flag.Duration("storm.for", 0, "how long each cluster of TestSwitchStorm has faults; 0: as the campaign")

// storm is a cluster that changes its protocol again and again while its members are killed and clients use it.
type storm struct {
	t        *testing.T
	random   *rand.Rand
	flags    []serveFlags
	more     []string
	joined   [][]string // flags of a member that joined; nil: a founder's
	user     []string   // flags of commands
	config   clientv3.Config
	mu       sync.Mutex
	pace     time.Duration // from the begin of a switch to that of the next one
	running  []*invocation // nil: not running
	away     int           // a member that is not started until it is called back; -1: none
	switches int           // that succeeded
	clients  sync.WaitGroup
	acked    []acknowledged
	leases   []*stormLease
}

// acknowledged is a write that a client knows to be done.
type acknowledged struct {
	key, value string
	revision   int64
}

// stormLease is a lease that a client renews all the time.
type stormLease struct {
	key     string
	id      clientv3.LeaseID
	ttl     time.Duration
	renewed []time.Time // answers to keep-alives
	ended   time.Time   // the time when a client learned that its key is deleted; zero: never
}

// newStorm starts a cluster.
func newStorm(t *testing.T, seed uint64, nodes int, auth bool, pace time.Duration, more ...string) *storm {
	t.Helper()
	s := &storm{t: t, random: rand.New(rand.NewPCG(seed, 1)), away: -1, pace: pace}
	s.flags = memberFlags(t, nodes+1) // the last one joins later
	s.running, s.joined = make([]*invocation, len(s.flags)), make([][]string, len(s.flags))
	s.more = append(more, "--initial-cluster", initialCluster(s.flags[:nodes]))
	for i := range nodes {
		s.start(i)
	}
	s.config = clientv3.Config{Endpoints: s.endpoints(), Logger: zap.NewNop(), DialTimeout: 2 * time.Second,
		DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second}
	for _, f := range s.flags[:nodes] {
		eventually(t, "health", func(ctx context.Context) bool { return healthy(ctx, f.client) })
	}
	if auth {
		enableAuth(t, s.flags[0].client)
		s.user = []string{"--user=root:r"}
		s.config.Username, s.config.Password = "root", "r"
	}
	return s
}

// enableAuth turns auth on, with the user root and the password r.
func enableAuth(t *testing.T, endpoint string) {
	t.Helper()
	for _, command := range []string{"user add root:r", "user grant-role root root", "auth enable"} {
		ok(t, append([]string{"ctl", "--endpoints", endpoint}, strings.Fields(command)...)...)
	}
}

// endpoints are those of the members of the beginning.
func (s *storm) endpoints() (all []string) {
	for _, f := range s.flags[:len(s.flags)-1] {
		all = append(all, f.client)
	}
	return all
}

func (s *storm) start(i int, more ...string) {
	if more != nil {
		s.joined[i] = append(slices.Clone(s.more[:len(s.more)-2]), more...)
	}
	args := s.more
	if s.joined[i] != nil {
		args = s.joined[i]
	}
	// Members are added while others are away, too.
	c, lines := begin(s.t, "", s.flags[i].args(append([]string{"--strict-reconfig-check=false"}, args...)...)...)
	go func() {
		for range lines { // ends with the process
		}
	}()
	s.t.Cleanup(func() {
		if s.t.Failed() && s.running[i] == c {
			s.t.Logf("%s said: %s", s.flags[i].name, tail(c.stderr.String()))
		}
	})
	s.mu.Lock()
	s.running[i] = c
	s.mu.Unlock()
}

// crash ends a member at once. It requires that the member has not ended before.
func (s *storm) crash(i int) {
	s.t.Helper()
	c := s.running[i]
	if c == nil {
		return
	}
	select {
	case <-c.ended:
		require.Fail(s.t, "a member ended", "%s: %s", s.flags[i].name, tail(c.stderr.String()))
	default:
	}
	kill(s.t, c.cmd.Process.Pid)
	<-c.ended
	s.running[i] = nil
}

func tail(text string) string { return text[max(0, len(text)-6000):] }

func (s *storm) client(endpoints ...string) *clientv3.Client {
	config := s.config
	if len(endpoints) > 0 {
		config.Endpoints = endpoints
	}
	for {
		client, err := clientv3.New(config) // with auth on it asks for a token, which may fail
		if err == nil {
			s.t.Cleanup(func() { client.Close() })
			return client
		}
		if s.t.Context().Err() != nil {
			return nil
		}
	}
}

func (s *storm) ack(key, value string, revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acked = append(s.acked, acknowledged{key, digest(value), revision})
}

// count increments a number by compare and swap.
func (s *storm) count(ctx context.Context, client *clientv3.Client, key string) {
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, 2*time.Second)
		s.countOnce(limited, client, key)
		cancel()
	}
}

func (s *storm) countOnce(ctx context.Context, client *clientv3.Client, key string) {
	r, err := client.Get(ctx, key)
	if err != nil {
		return
	}
	n, revision := 0, int64(0)
	if len(r.Kvs) > 0 {
		n, _ = strconv.Atoi(string(r.Kvs[0].Value))
		revision = r.Kvs[0].ModRevision
	}
	value := strconv.Itoa(n + 1)
	done, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
		Then(clientv3.OpPut(key, value)).Commit()
	if err == nil && done.Succeeded {
		s.ack(key, value, done.Header.Revision)
	}
}

// write puts values, small and large ones, and reads each back.
func (s *storm) write(ctx context.Context, client *clientv3.Client, key string, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	for n := 0; ctx.Err() == nil; n++ {
		size := 10
		if random.IntN(8) == 0 {
			size = 1 << (12 + random.IntN(8)) // up to 512 KiB
		}
		value := sized(fmt.Sprintf("%s-%d-", key, n), size)
		limited, cancel := context.WithTimeout(ctx, 2*time.Second)
		r, err := client.Put(limited, key, value)
		if err == nil {
			s.ack(key, value, r.Header.Revision)
			got, err := client.Get(limited, key)
			if err == nil && (len(got.Kvs) != 1 || got.Kvs[0].ModRevision < r.Header.Revision) {
				s.t.Errorf("%s is read at revision %d after the put with revision %d", key, got.Header.Revision,
					r.Header.Revision)
			}
		}
		cancel()
	}
}

func sized(head string, size int) string { return head + strings.Repeat(head, size/len(head)) }

// lock increments a number without compare, under a lock.
func (s *storm) lock(ctx context.Context, client *clientv3.Client) {
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		s.lockOnce(limited, client)
		cancel()
	}
}

func (s *storm) lockOnce(ctx context.Context, client *clientv3.Client) {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(5), concurrency.WithContext(ctx))
	if err != nil {
		return
	}
	defer session.Orphan()
	m := concurrency.NewMutex(session, "lock")
	if m.Lock(ctx) != nil {
		return
	}
	for range 5 {
		r, err := client.Get(ctx, "locked")
		if err != nil {
			return
		}
		n := 0
		if len(r.Kvs) > 0 {
			n, _ = strconv.Atoi(string(r.Kvs[0].Value))
		}
		value := strconv.Itoa(n + 1)
		done, err := client.Txn(ctx).If(m.IsOwner()).Then(clientv3.OpPut("locked", value)).Commit()
		if err != nil || !done.Succeeded {
			return // it may be written later: nothing else under this lock
		}
		s.ack("locked", value, done.Header.Revision)
	}
	m.Unlock(ctx)
}

// renew keeps a lease with a key until ctx ends; if it ended, another one.
func (s *storm) renew(ctx context.Context, client *clientv3.Client, n int) {
	for i := 0; ctx.Err() == nil; i++ {
		limited, cancel := context.WithTimeout(ctx, 3*time.Second)
		granted, err := client.Grant(limited, 4)
		cancel()
		if err != nil {
			continue
		}
		l := &stormLease{key: fmt.Sprintf("lease-%d-%d", n, i), id: granted.ID, ttl: 4 * time.Second}
		s.mu.Lock()
		l.renewed = append(l.renewed, time.Now())
		s.leases = append(s.leases, l)
		s.mu.Unlock()
		limited, cancel = context.WithTimeout(ctx, 3*time.Second)
		client.Put(limited, l.key, "x", clientv3.WithLease(l.id))
		cancel()
		s.keepAlive(ctx, client, l)
	}
}

func (s *storm) keepAlive(ctx context.Context, client *clientv3.Client, l *stormLease) {
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, time.Second)
		r, err := client.KeepAliveOnce(limited, l.id)
		switch {
		case err == nil && r.TTL > 0:
			s.mu.Lock()
			l.renewed = append(l.renewed, time.Now())
			s.mu.Unlock()
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			cancel()
			s.mu.Lock()
			l.ended = time.Now()
			s.mu.Unlock()
			return
		}
		select {
		case <-limited.Done():
		case <-time.After(300 * time.Millisecond):
		}
		cancel()
	}
}

// stormWatcher collects all events that a client's watch sees.
type stormWatcher struct {
	mu     sync.Mutex
	events []stormEvent
	failed error
}

// stormEvent is an event without the text of a large value.
type stormEvent struct {
	key, value string // "": deleted
	revision   int64
}

// digest is a value, or a short text in place of a large one.
func digest(value string) string {
	if len(value) < 32 {
		return value
	}
	return fmt.Sprintf("%.16s… of %d bytes, %08x", value, len(value), crc32.ChecksumIEEE([]byte(value)))
}

// watch watches until ctx ends. A client ends a watch without an error if it connects to a member that does not know
// its token, as one that was restored: the watch begins again then, and a read before it brings another token.
func (s *storm) watch(ctx context.Context, w *stormWatcher, endpoints ...string) {
	client := s.client(endpoints...)
	for ctx.Err() == nil && !w.hasFailed() {
		for r := range client.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(w.last()+1)) {
			w.take(&r)
		}
		limited, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, _ = client.Get(limited, "last") // for its token alone
		cancel()
	}
}

// take takes in a response.
func (w *stormWatcher) take(r *clientv3.WatchResponse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := r.Err(); err != nil {
		w.failed = err
	}
	for _, e := range r.Events {
		w.events = append(w.events, stormEvent{string(e.Kv.Key), digest(string(e.Kv.Value)), e.Kv.ModRevision})
	}
}

func (w *stormWatcher) hasFailed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed != nil
}

// compact gives up what all watchers have seen, from time to time.
func (s *storm) compact(ctx context.Context, client *clientv3.Client, watchers []*stormWatcher) {
	every := time.NewTicker(30 * time.Second)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		seen := watchers[0].last()
		for _, w := range watchers {
			seen = min(seen, w.last())
		}
		limited, cancel := context.WithTimeout(ctx, 2*time.Second)
		client.Compact(limited, seen)
		cancel()
	}
}

func (w *stormWatcher) last() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.events) == 0 {
		return 0
	}
	return w.events[len(w.events)-1].revision
}

// pause stops a member for a time. It is not killed.
func (s *storm) pause(i int, d time.Duration) {
	s.t.Helper()
	s.t.Logf("%s is paused for %s", s.flags[i].name, d)
	pid := s.running[i].cmd.Process.Pid
	require.NoError(s.t, syscall.Kill(pid, syscall.SIGSTOP))
	s.wait(nil, d)
	require.NoError(s.t, syscall.Kill(pid, syscall.SIGCONT))
}

// switchTo changes the protocol, with a kill or a pause of a member meanwhile.
func (s *storm) switchTo(protocol string, victim int, after time.Duration) {
	s.t.Helper()
	args := append([]string{"switch", protocol, "--json", "--endpoints", strings.Join(s.endpoints(), ",")}, s.user...)
	c, lines := begin(s.t, "", args...)
	go func() {
		for range lines {
		}
	}()
	began := time.Now()
	if victim >= 0 && victim != s.away {
		s.wait(c.ended, after)
		if s.random.IntN(3) == 0 {
			s.pause(victim, time.Duration(s.random.IntN(4000))*time.Millisecond)
		} else {
			s.t.Logf("kill %s %s after the begin of a switch to %s", s.flags[victim].name, time.Since(began), protocol)
			s.crash(victim)
			s.wait(nil, time.Duration(s.random.IntN(1500))*time.Millisecond)
			s.start(victim)
		}
	}
	s.wait(c.ended, 15*time.Second)
	select {
	case <-c.ended:
	default:
		s.t.Logf("a switch to %s has not ended after %s: %s", protocol, time.Since(began), tail(c.stderr.String()))
		kill(s.t, c.cmd.Process.Pid)
		<-c.ended
		return
	}
	if c.cmd.ProcessState.ExitCode() == 0 {
		s.switches++
		s.t.Logf("switched to %s in %s", protocol, time.Since(began))
	} else {
		s.t.Logf("a switch to %s failed after %s: %s", protocol, time.Since(began), tail(c.stderr.String()))
	}
}

// wait waits until a process ends, but not longer than d.
func (s *storm) wait(ended <-chan struct{}, d time.Duration) {
	select {
	case <-ended:
	case <-time.After(d):
	}
}

// all starts all members that are down and waits until they serve.
func (s *storm) all() {
	s.t.Helper()
	s.away = -1
	for i := range len(s.flags) - 1 {
		if s.running[i] == nil {
			s.start(i)
		}
	}
	for _, f := range s.flags[:len(s.flags)-1] {
		eventually(s.t, f.name+" serves", func(ctx context.Context) bool { return healthy(ctx, f.client) })
	}
}

// check requires that nothing is lost, doubled or different.
func (s *storm) check(watchers []*stormWatcher) {
	t := s.t
	t.Helper()
	client := s.client()
	var last int64
	eventually(t, "a write", func(ctx context.Context) bool {
		r, err := client.Put(ctx, "last", "x")
		if err == nil {
			last = r.Header.Revision
		}
		return err == nil
	})
	for i, w := range watchers {
		eventually(t, fmt.Sprintf("all events at watcher %d", i), func(context.Context) bool {
			return w.last() >= last || w.failed != nil
		})
		w.mu.Lock()
		require.NoError(t, w.failed)
		events := w.events[:upTo(w.events, last)]
		if i == 0 {
			s.checkEvents(events)
		} else {
			first := watchers[0].events
			require.True(t, slices.Equal(first[:upTo(first, last)], events), "watcher %d saw other events", i)
		}
		w.mu.Unlock()
	}
	var present []serveFlags
	for i, f := range s.flags {
		if s.running[i] != nil {
			present = append(present, f)
		}
	}
	sameKeys(t, client, present, last)
	s.checkLeases()
}

// sameKeys requires that members have the same keys, with their history, up to a revision.
func sameKeys(t *testing.T, client *clientv3.Client, members []serveFlags, revision int64) {
	t.Helper()
	hashes := map[uint32][]string{}
	for _, f := range members {
		eventually(t, "the revision on "+f.name, func(ctx context.Context) bool {
			h, err := client.HashKV(ctx, f.client, revision)
			if err == nil {
				hashes[h.Hash] = append(hashes[h.Hash], f.name)
			}
			return err == nil
		})
	}
	require.Len(t, hashes, 1, "%v", hashes)
}

// upTo is the number of events up to a revision.
func upTo(events []stormEvent, revision int64) int {
	n := slices.IndexFunc(events, func(e stormEvent) bool { return e.revision > revision })
	if n < 0 {
		return len(events)
	}
	return n
}

// checkEvents requires the events of all acknowledged writes, without gaps and in order.
func (s *storm) checkEvents(events []stormEvent) {
	t := s.t
	t.Helper()
	type place struct {
		key      string
		revision int64
	}
	written, counts, previous := map[place]string{}, map[string]int{}, int64(0)
	for _, e := range events {
		if previous > 0 && e.revision != previous && e.revision != previous+1 {
			require.Fail(t, "a gap", "revision %d follows %d", e.revision, previous)
		}
		previous = e.revision
		at := place{e.key, e.revision}
		if _, twice := written[at]; twice {
			require.Fail(t, "an event came twice", "%v", at)
		}
		written[at] = e.value
		if e.value != "" && (strings.HasPrefix(e.key, "count") || e.key == "locked") {
			counts[e.key]++
			if strconv.Itoa(counts[e.key]) != e.value {
				require.Fail(t, "a number is wrong", "%d is written as %s in %v", counts[e.key], e.value, at)
			}
		}
	}
	for _, a := range s.acked {
		if value, found := written[place{a.key, a.revision}]; !found || value != a.value {
			require.Fail(t, "an acknowledged write is lost", "%v, there is %q", a, value)
		}
	}
}

// checkLeases requires that no lease ended less than its time to live after an answer to a keep-alive.
func (s *storm) checkLeases() {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := 0
	for _, l := range s.leases {
		if l.ended.IsZero() {
			continue
		}
		ended++
		// Between the last answer and the first without the lease; the answer itself was given a little earlier.
		since := l.ended.Sub(l.renewed[len(l.renewed)-1])
		require.Greater(s.t, since, l.ttl-time.Second, "lease %x of %s ended early", l.id, l.key)
	}
	s.t.Logf("%d leases, of which %d ended after they were not renewed in time", len(s.leases), ended)
}

// joins makes the last member, or one that lost its data, a new member.
func (s *storm) joins(i int, lost uint64) {
	ctl := func(args ...string) string {
		args = append(append([]string{"ctl", "--command-timeout=10s", "--endpoints", strings.Join(s.endpoints(), ",")},
			s.user...), args...)
		var stdout string
		eventually(s.t, strings.Join(args, " "), func(context.Context) bool {
			out, stderr, code := do(s.t, "", args...)
			if code != 0 {
				s.t.Logf("%v: %s", args, tail(stderr))
				if strings.Contains(stderr, "not found") || strings.Contains(stderr, "already exists") ||
					strings.Contains(stderr, "Peer URLs already exists") {
					return true
				}
			}
			stdout = out
			return code == 0
		})
		return stdout
	}
	if lost != 0 {
		ctl("member", "remove", strconv.FormatUint(lost, 16))
	}
	ctl("member", "add", s.flags[i].name, "--peer-urls", "http://"+s.flags[i].peer)
	var peers []string
	for j, f := range s.flags[:len(s.flags)-1] {
		if j != i {
			peers = append(peers, "http://"+f.peer)
		}
	}
	s.start(i, "--initial-cluster-state=existing", "--join", strings.Join(peers, ","))
	s.t.Logf("%s joins", s.flags[i].name)
}

// id is the identifier of a member.
func (s *storm) id(i int) (id uint64) {
	client := s.client()
	eventually(s.t, "the members", func(ctx context.Context) bool {
		r, err := client.MemberList(ctx)
		if err != nil {
			return false
		}
		for _, m := range r.Members {
			if m.Name == s.flags[i].name {
				id = m.ID
			}
		}
		return true
	})
	return id
}

var stormProtocols = []string{"raft", "craft", "niagara", "lcr", "multi-paxos", "iss"}

// rage makes faults for a time.
func (s *storm) rage(d time.Duration) {
	nodes, protocol, left, changes := len(s.flags)-1, "raft", 0, 0
	for round, end := 0, time.Now().Add(d); time.Now().Before(end); round++ {
		next := time.Now().Add(s.pace)
		others := slices.DeleteFunc(slices.Clone(stormProtocols), func(p string) bool { return p == protocol })
		protocol = others[s.random.IntN(len(others))]
		victim := s.random.IntN(nodes)
		if round%4 == 0 {
			victim = -1
		}
		s.switchTo(protocol, victim, time.Duration(s.random.IntN(300))*time.Millisecond)
		switch {
		case s.away < 0 && round%6 == 1:
			s.away, left = s.random.IntN(nodes), s.switches
			s.t.Logf("%s is away", s.flags[s.away].name)
			s.crash(s.away)
		case s.away >= 0 && s.switches >= left+3:
			s.t.Logf("%s comes back", s.flags[s.away].name)
			s.start(s.away)
			s.away = -1
		case s.away < 0 && changes < 2 && round > 2:
			s.change(changes)
			changes++
		}
		s.kills(nodes, next)
		s.wait(nil, time.Until(next))
	}
}

// change makes a member join: first another one, then one of the founders that has lost its data.
func (s *storm) change(n int) {
	last := len(s.flags) - 1
	if n == 0 {
		s.joins(last, 0)
		return
	}
	i := s.random.IntN(last)
	id := s.id(i)
	s.crash(i)
	require.NoError(s.t, os.RemoveAll(s.flags[i].dir))
	s.joins(i, id)
}

// kills kills some members one after the other, and sometimes all. It begins no kill behind a time.
func (s *storm) kills(nodes int, end time.Time) {
	for range s.random.IntN(3) {
		s.wait(nil, time.Duration(300+s.random.IntN(1200))*time.Millisecond)
		if time.Now().After(end) {
			return
		}
		if i := s.random.IntN(nodes); i != s.away {
			s.crash(i)
			s.wait(nil, time.Duration(s.random.IntN(700))*time.Millisecond)
			s.start(i)
		}
	}
	if s.random.IntN(8) == 0 {
		s.awaitJoined()
		s.t.Log("all are killed")
		for i := range s.flags {
			if s.running[i] != nil {
				s.crash(i)
				s.start(i)
			}
		}
	}
}

// awaitJoined waits until members that join serve. One that begins to join when all have just started again may be told
// of members as they were before it was added: it ends then, or stops as the one that it replaces, and an operator has
// to add it again.
func (s *storm) awaitJoined() {
	for i, flags := range s.joined {
		if flags != nil && s.running[i] != nil {
			eventually(s.t, s.flags[i].name+" serves", func(ctx context.Context) bool {
				return healthy(ctx, s.flags[i].client)
			})
		}
	}
}

// run uses the cluster during a storm and checks what clients saw.
func (s *storm) run(d time.Duration) {
	t := s.t
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watchers := []*stormWatcher{{}, {}, {}}
	watching, unwatch := context.WithCancel(t.Context())
	defer unwatch()
	for i, w := range watchers {
		endpoints := s.endpoints()
		if i > 0 {
			endpoints = endpoints[i : i+1]
		}
		go s.watch(watching, w, endpoints...)
	}
	for i := range 4 {
		endpoint := s.endpoints()[i%len(s.endpoints())]
		s.clients.Go(func() { s.count(ctx, s.client(), fmt.Sprintf("count%d", i%2)) })
		s.clients.Go(func() { s.write(ctx, s.client(), fmt.Sprintf("write%d", i), uint64(i)) })
		s.clients.Go(func() { s.renew(ctx, s.client(), i) })
		s.clients.Go(func() { s.count(ctx, s.client(endpoint), "count2") })
	}
	for range 3 {
		s.clients.Go(func() { s.lock(ctx, s.client()) })
	}
	s.clients.Go(func() { s.compact(ctx, s.client(), watchers) })
	var judge func()
	if s.user == nil {
		judge = s.checkedLoad()
	}
	s.rage(d)
	s.all()
	for _, protocol := range []string{"raft", "multi-paxos"} { // refused while a member is about to join
		before := s.switches
		eventually(t, "a calm cluster changes its protocol", func(context.Context) bool {
			s.switchTo(protocol, -1, 0)
			return s.switches > before
		})
	}
	s.wait(nil, 2*time.Second)
	cancel()
	s.clients.Wait()
	if judge != nil {
		judge()
	}
	s.check(watchers)
	t.Logf("%d switches, %d writes", s.switches, len(s.acked))
}

// checkedLoad is a load with a history that is checked.
func (s *storm) checkedLoad() (judge func()) {
	load, lines := begin(s.t, "", "bench", "kv", "--endpoints", strings.Join(s.endpoints(), ","), "--clients=10",
		"--duration=30m", "--warmup=0s", "--throttle=400",
		"--mix=read=40%,update=35%,rmw=20%,scan=5%", "--distribution=conflict:30%,hot=3", "--key-space=200",
		"--val-size=16-256", "--check", "--json")
	client := s.client()
	eventually(s.t, "keys of the checked load", func(ctx context.Context) bool {
		r, err := client.Get(ctx, "check-", clientv3.WithPrefix(), clientv3.WithCountOnly())
		return err == nil && r.Count > 0
	})
	return func() {
		s.t.Helper()
		var r bench.KVResult
		err := load.cmd.Process.Signal(os.Interrupt)
		code, stderr := load.exit()
		require.NoError(s.t, err, "bench kv has ended with %d: %s", code, stderr)
		require.Zero(s.t, code, stderr)
		require.NoError(s.t, json.Unmarshal([]byte(all(lines)), &r))
		s.t.Logf("%s", r.History)
		require.Equal(s.t, bench.Linearizable, r.History.Verdict)
		require.True(s.t, r.Verified)
	}
}

// TestSwitchStorm changes the protocol again and again while members are killed, are away, join, and lose their data.
// Some clusters have five members, auth, or snapshots that are written all the time. A cluster of the campaign has as
// many rounds as one of a minute with the pace of longer storms, which -storm.for brings.
func TestSwitchStorm(t *testing.T) {
	t.Parallel()
	d, pace := testsize.Pick(testsize.Processes, 0, 8*time.Second, 30*time.Second), 2*time.Second
	if *stormFor > 0 {
		d, pace = *stormFor, 5*time.Second
	}
	for seed := range testsize.Pick(testsize.Processes, uint64(1), 1, 4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			nodes := map[bool]int{true: 5, false: 3}[seed == 3]
			var more []string
			if seed%2 == 0 {
				more = []string{"--snapshot-bytes=2000000", "--keep-log-bytes=1000000"}
			}
			newStorm(t, seed, nodes, seed >= 2, pace, more...).run(d)
		})
	}
}
