package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/status"
	"github.com/braidlog/braid/internal/testsize"
)

func TestNiagaraAnswersAsRaftDoes(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	steps := writeHistory(20190325, 450)
	raft := upWith(t, calm, dataDir(t))
	onRaft := raft.play(steps)
	raft.stop()
	failures := slices.DeleteFunc(slices.Clone(onRaft.failures), func(f string) bool { return f == "" })
	require.Less(t, 3*len(failures), len(steps))
	require.Greater(t, len(onRaft.events[0]), len(steps)/3)
	for _, args := range [][]string{{"--instances=4"}, {"--instances=3", "--leaders=spread"},
		{"--instances=5", "--leaders=spread", "--placement=code", "--code-k=2"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			c := upWith(t, calm, dataDir(t), append(args, "--protocol=niagara")...)
			woven := c.play(steps)
			onRaft.equal(t, &woven)
			c.stop()
		})
	}
}

// members requests the status of all running members.
func (c *cluster) members() (answers []status.Member) {
	c.t.Helper()
	for _, m := range status.Ask(c.t.Context(), status.Options{Endpoints: c.endpoints, Timeout: 5 * time.Second}) {
		if m.Error == "" {
			answers = append(answers, m)
		}
	}
	return answers
}

// leaders waits until the leaders are as wanted, according to all members: fits gets the leader's name of each
// instance.
func (c *cluster) leaders(what string, fits func(names []string) bool) (found []string) {
	c.t.Helper()
	eventually(c.t, what, func(context.Context) bool {
		answers := c.members()
		names := map[string]string{}
		for _, m := range answers {
			names[m.ID] = m.Name
		}
		found = nil
		for at, m := range answers {
			var here []string
			for _, i := range m.Instances {
				here = append(here, names[i.Leader])
			}
			if at > 0 && !slices.Equal(here, found) {
				return false
			}
			found = here
		}
		return !slices.Contains(found, "") && fits(found)
	})
	return found
}

// spread: every member leads one of three instances.
func spread(names []string) bool {
	sorted := slices.Sorted(slices.Values(names))
	return slices.Equal(sorted, []string{"m1", "m2", "m3"})
}

// together: one member leads all.
func together(names []string) bool { return len(slices.Compact(slices.Clone(names))) == 1 }

// counter adds one to a key, repeatedly, in transactions that fail if another client did.
type counter struct {
	revisions []int64 // of successful transactions, in the order in which this client saw them
	err       error
}

func (n *counter) run(ctx context.Context, client *clientv3.Client, key string, times int) {
	for len(n.revisions) < times {
		r, err := client.Get(ctx, key)
		if err != nil {
			n.err = err
			return
		}
		value, revision := 0, int64(0)
		if len(r.Kvs) > 0 {
			revision = r.Kvs[0].ModRevision
			value, err = strconv.Atoi(string(r.Kvs[0].Value))
		}
		if err != nil {
			n.err = err
			return
		}
		done, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
			Then(clientv3.OpPut(key, strconv.Itoa(value+1))).Commit()
		if err != nil {
			n.err = err
			return
		}
		if done.Succeeded {
			n.revisions = append(n.revisions, done.Header.Revision)
		}
	}
}

// Clients of all members at once: every revision is assigned once, later ones to later requests of a client,
// transactions are exact, and watches on all members have the same events.
func TestNiagaraOrdersConcurrentClients(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := upWith(t, calm, dataDir(t), "--protocol=niagara", "--instances=3", "--leaders=spread")
	c.leaders("spread leaders", spread)
	const clients, times, keys = 12, 60, 4
	var watchers []*watcher
	for _, conn := range c.connect() {
		watchers = append(watchers, watchAll(t, conn, 1))
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	counters := make([]counter, clients)
	var all sync.WaitGroup
	for i := range counters {
		client := c.client(c.endpoints[i%len(c.endpoints)])
		all.Go(func() { counters[i].run(ctx, client, fmt.Sprintf("n%d", i%keys), times) })
	}
	all.Wait()

	var revisions []int64
	for i := range counters {
		require.NoError(t, counters[i].err)
		require.True(t, slices.IsSorted(counters[i].revisions))
		revisions = append(revisions, counters[i].revisions...)
	}
	slices.Sort(revisions)
	require.Len(t, slices.Compact(revisions), clients*times)
	last := revisions[len(revisions)-1]
	require.EqualValues(t, clients*times+1, last, "nothing else was written")
	for _, w := range watchers {
		w.upTo(last)
		require.Len(t, w.events, clients*times)
		sameEvents(t, watchers[0].events, w.events)
		count := map[string]int{}
		for _, e := range w.events {
			count[string(e.Kv.Key)]++
			require.Equal(t, strconv.Itoa(count[string(e.Kv.Key)]), string(e.Kv.Value))
		}
		for key, n := range count {
			require.Equal(t, clients/keys*times, n, key)
		}
	}
	c.sameHashes(last)
	c.metricsOfInstances(3)
}

// sameHashes requires that all members have the same data at a revision.
func (c *cluster) sameHashes(revision int64) {
	c.t.Helper()
	hashes := map[uint32]bool{}
	for _, conn := range c.connect() {
		eventually(c.t, "the revision on every member", func(ctx context.Context) bool {
			h, err := pb.NewMaintenanceClient(conn).HashKV(ctx, &pb.HashKVRequest{Revision: revision})
			if err != nil {
				return false
			}
			hashes[h.Hash] = true
			return true
		})
	}
	require.Len(c.t, hashes, 1)
}

// metricsOfInstances requires the metrics of each instance, on every member, and their lines in the status command.
func (c *cluster) metricsOfInstances(n int) {
	c.t.Helper()
	for _, endpoint := range c.endpoints {
		metrics := fetch(c.t, endpoint, "/metrics")
		for i := range n {
			for _, name := range []string{"braid_term", "braid_instance_commit_index", "braid_rounds_applied",
				"braid_rounds_committed", "braid_rounds_appended"} {
				require.Regexp(c.t, fmt.Sprintf(`(?m)^%s\{instance="%d"\} [1-9]`, name, i+1), metrics)
			}
		}
		require.Regexp(c.t, `(?m)^braid_skips_total\{instance="1"\} `, metrics)
		require.Regexp(c.t, `(?m)^braid_applied_position [1-9]`, metrics)
		require.Regexp(c.t, `(?m)^etcd_server_has_leader 1$`, metrics)
	}
	text := ok(c.t, "status", "--endpoints", c.endpoints[0])
	require.Regexp(c.t, `m2 +[1-9][0-9]* +round [1-9][0-9]* of [1-9]`, text)
	fields := ok(c.t, "ctl", "--endpoints", strings.Join(c.endpoints, ","), "endpoint", "status", "-w", "json")
	var told []struct {
		Status struct{ RaftIndex, RaftTerm, RaftAppliedIndex, Leader uint64 }
	}
	require.NoError(c.t, json.Unmarshal([]byte(fields), &told))
	for _, m := range told {
		require.Equal(c.t, told[0].Status.Leader, m.Status.Leader)
		require.Equal(c.t, told[0].Status.RaftTerm, m.Status.RaftTerm)
		require.GreaterOrEqual(c.t, m.Status.RaftIndex, m.Status.RaftAppliedIndex)
		require.Positive(c.t, m.Status.RaftAppliedIndex)
	}
}

// fault kills a member of a merged cluster while writers use others, requires that nothing is lost and that the
// member returns to the same state, and returns the longest time without an acknowledgement.
func fault(t *testing.T, leaders string, fits func([]string) bool, victimOf func(names []string) string) time.Duration {
	t.Helper()
	c := up(t, dataDir(t), "--protocol=niagara", "--instances=3", "--leaders="+leaders, "--restart")
	defer c.stop()
	names := c.leaders("leaders "+leaders, fits)
	victim := victimOf(names)
	var others []string
	for _, endpoint := range c.alive(victim) {
		others = append(others, endpoint)
	}
	w := write(t, c, others...)
	eventually(t, "writes", func(context.Context) bool { return w.total() > 500 })
	kill(t, c.pids[victim])
	c.next(launch.Died)
	before := w.total()
	eventually(t, "writes after the crash", func(context.Context) bool { return w.total() > before+500 })
	longest := w.longestPause()
	t.Logf("leaders %v, killed %s: longest time without an acknowledgement %s", names, victim, longest)

	c.next(launch.Serving)
	before = w.total()
	eventually(t, "writes with all members", func(context.Context) bool { return w.total() > before+500 })
	w.end()
	client := c.client(others...)
	w.check(t, client)
	last, err := client.Get(t.Context(), "w0")
	require.NoError(t, err)
	c.sameHashes(last.Header.Revision)
	return longest
}

// within requires that a measured time is below a bound; on a busy machine not at the first attempt.
func within(t *testing.T, bound time.Duration, measure func() time.Duration) {
	t.Helper()
	longest := measure()
	for range 3 {
		if longest < bound {
			return
		}
		longest = measure()
	}
	require.Less(t, longest, bound)
}

// Only the leader of one instance is killed: all wait for that one until another is elected, as with Raft.
func TestNiagaraLosesALeader(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	for name, instance := range map[string]int{"of the first instance": 1, "of the last instance": 3} {
		t.Run(name, func(t *testing.T) {
			within(t, 2*electionTimeout, func() time.Duration {
				return fault(t, "spread", spread, func(names []string) string { return names[instance-1] })
			})
		})
	}
}

// If one member leads all instances, all are led again as soon as one would be; and the crash of any other member has
// no effect.
func TestNiagaraLosesTheLeaderOfAll(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	within(t, 2*electionTimeout, func() time.Duration {
		return fault(t, "together", together, func(names []string) string { return names[0] })
	})
}

func TestNiagaraLosesAFollower(t *testing.T) {
	within(t, electionTimeout/2, func() time.Duration {
		return fault(t, "together", together, func(names []string) string {
			return map[bool]string{true: "m2", false: "m3"}[names[0] != "m2"]
		})
	})
}

// The history of clients is linearizable while the leaders are killed one after the other.
func TestNiagaraIsLinearizable(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := up(t, dataDir(t), "--protocol=niagara", "--instances=3", "--leaders=spread", "--restart")
	client := c.client()
	judge := c.checkedLoad()
	before := awaitRevision(t, client, 1000)
	for _, name := range []string{"m2", "m1", "m3"} {
		kill(t, c.pids[name])
		require.Equal(t, name, c.next(launch.Serving).Member)
		before = awaitRevision(t, client, before+500)
	}
	r := judge()
	require.Positive(t, r.Conflicts)
	requireNoCheckKeys(t, client)
}

// All members are killed at once, and the cluster is resumed with its settings.
func TestNiagaraResumes(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	dir := dataDir(t)
	c := up(t, dir, "--protocol=niagara", "--instances=2", "--cards=2", "--net=nics=2")
	w := write(t, c)
	eventually(t, "writes", func(context.Context) bool { return w.total() > 1000 })
	for name := range c.pids {
		ports := c.dialled(name)
		require.Len(t, ports, 2, "other members reach %s at both its addresses", name)
	}
	for _, pid := range c.pids {
		kill(t, pid)
	}
	code, _ := c.exit()
	require.Equal(t, exitFailed, code)
	w.end()

	for flags, want := range map[string]string{
		"--instances=4":     "began with instances 2, not 4: leave the flag out to resume it with those that it has now",
		"--protocol=raft":   "protocol niagara, not raft",
		"--placement=code":  "placement copy, not code",
		"--cards=1":         "cards 2, not 1",
		"--protocol=craft":  "protocol niagara, not craft",
		"--leaders=nowhere": "it is together or spread",
	} {
		_, stderr, code := do(t, "", "up", "--data", dir, flags)
		require.Equal(t, exitUsage, code, stderr)
		require.Contains(t, stderr, want)
	}
	again := up(t, dir, "--leaders=spread") // the log has together
	w.check(t, again.client())
	again.leaders("leaders together still", together)
	again.tune("leaders=spread")
	names := again.leaders("spread leaders", func(names []string) bool { return !together(names) })
	require.Len(t, names, 2)
	again.stop()
	last := up(t, dir)
	w.check(t, last.client())
	last.leaders("leaders that are spread still", func(names []string) bool { return !together(names) })
	last.tune("leaders=together")
	last.leaders("leaders together again", together)
}

// dialled returns the ports of a member for other members that have connections.
func (c *cluster) dialled(name string) (ports []int) {
	c.t.Helper()
	m, err := launch.ReadManifest(c.dir)
	require.NoError(c.t, err)
	at := slices.IndexFunc(m.Members, func(m launch.Member) bool { return m.Name == name })
	mine := append([]int{m.Members[at].PeerPort}, m.Members[at].MorePeerPorts...)
	f, err := os.Open("/proc/net/tcp")
	require.NoError(c.t, err)
	defer f.Close()
	for scan := bufio.NewScanner(f); scan.Scan(); {
		fields := strings.Fields(scan.Text())
		if len(fields) < 4 || fields[3] != "01" { // established
			continue
		}
		_, port, _ := strings.Cut(fields[1], ":")
		n, err := strconv.ParseInt(port, 16, 32)
		require.NoError(c.t, err)
		if slices.Contains(mine, int(n)) && !slices.Contains(ports, int(n)) {
			ports = append(ports, int(n))
		}
	}
	return ports
}

// The number of instances changes during writes, and the cluster records it.
func TestNiagaraReshapes(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	dir := dataDir(t)
	c := up(t, dir, "--protocol=niagara", "--instances=2", "--leaders=spread", "--restart")
	w := write(t, c)
	watching := watchAll(t, c.connect()[0], 1)
	for i, n := range []int{5, 1, 3} {
		before := w.total()
		endpoint := c.endpoints[i%len(c.endpoints)]
		require.Equal(t, fmt.Sprintf("the log is merged from %d instances", n),
			ok(t, "reshape", "--endpoints", endpoint, "--instances", strconv.Itoa(n)))
		eventually(t, "writes after the change", func(context.Context) bool { return w.total() > before+200 })
		c.leaders("leaders of all instances", func(names []string) bool { return len(names) == n })
	}
	before := w.total()
	kill(t, c.pids["m2"])
	c.next(launch.Serving)
	eventually(t, "writes after a crash", func(context.Context) bool { return w.total() > before+200 })
	w.end()
	w.check(t, c.client())
	last, err := c.client().Get(t.Context(), "w0")
	require.NoError(t, err)
	watching.upTo(last.Header.Revision)
	c.sameHashes(last.Header.Revision)

	f := newServeFlags(t)
	f.name, f.dir = "m4", filepath.Join(c.dir, "m4")
	ok(t, "ctl", "--endpoints", c.endpoints[0], "--command-timeout=20s", "member", "add", "m4", "--peer-urls",
		"http://"+f.peer)
	more := []string{"--initial-cluster-state=existing", "--join", "http://" + c.endpoints[0], "--protocol=niagara",
		"--leaders=spread"}
	m4 := serving(t, f, more...)
	eventually(t, "its name", func(ctx context.Context) bool {
		list, err := c.client().MemberList(ctx)
		return err == nil && slices.ContainsFunc(list.Members, func(m *pb.Member) bool { return m.Name == "m4" })
	})
	w.check(t, c.client(f.client))
	stopped(t, m4)
	m4 = serving(t, f, append(more, "--instances=7")...) // which only new clusters use
	w.check(t, c.client(f.client))
	stopped(t, m4)
	c.stop()

	again := up(t, dir)
	again.leaders("the instances of before", func(names []string) bool { return len(names) == 3 })
	w.check(t, again.client())
	ok(t, "reshape", "--endpoints", up(t, dataDir(t), "--nodes=1").endpoints[0], "--instances=2")
}

// A member joins all instances, as a learner and then as a voter, and one leaves them.
func TestNiagaraMembership(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := up(t, dataDir(t), "--protocol=niagara", "--instances=3", "--leaders=spread")
	w := write(t, c)
	f := newServeFlags(t)
	f.name, f.dir = "m4", filepath.Join(c.dir, "m4")
	ok(t, "ctl", "--endpoints", c.endpoints[0], "--command-timeout=20s", "member", "add", "m4", "--learner", "--peer-urls",
		"http://"+f.peer)
	serving4, _ := begin(t, "", f.args("--initial-cluster-state=existing", "--join", "http://"+c.endpoints[0],
		"--protocol=niagara", "--leaders=spread")...)
	c.clients["m4"] = "http://" + f.client
	ids := func() map[string]uint64 {
		out := map[string]uint64{}
		if list, err := c.client().MemberList(t.Context()); err == nil {
			for _, m := range list.Members {
				out[m.Name] = m.ID
			}
		}
		return out
	}
	eventually(t, "the learner's name", func(context.Context) bool { return ids()["m4"] != 0 })
	eventually(t, "promotion", func(ctx context.Context) bool {
		_, err := c.client().MemberPromote(ctx, ids()["m4"])
		return err == nil
	})
	eventually(t, "the voter's health", func(ctx context.Context) bool { return healthy(ctx, f.client) })
	eventually(t, "the removal of m1", func(ctx context.Context) bool {
		_, err := c.client(c.alive()["m2"]).MemberRemove(ctx, ids()["m1"])
		return err == nil || ids()["m1"] == 0
	})
	kill(t, c.pids["m1"])
	rest := c.alive("m1")
	c.endpoints = []string{rest["m2"], rest["m3"], rest["m4"]}
	before := w.total()
	eventually(t, "writes without m1", func(context.Context) bool { return w.total() > before+300 })
	c.leaders("leaders among those that stay", func(names []string) bool {
		return len(names) == 3 && !slices.Contains(names, "m1")
	})
	w.end()
	for _, endpoint := range c.endpoints {
		w.check(t, c.client(endpoint))
	}
	last, err := c.client().Get(t.Context(), "w0")
	require.NoError(t, err)
	c.sameHashes(last.Header.Revision)
	stopped(t, serving4)
}

// Braided coding: instances are merged, and each of them keeps fragments of large values.
func TestNiagaraOverFragments(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	dir := dataDir(t)
	c := up(t, dir, "--nodes=5", "--protocol=niagara", "--placement=code")
	w := c.writeLarge()
	eventually(t, "writes", func(context.Context) bool { return w.total() > 40 })
	names := c.leaders("leaders on several members", func(names []string) bool {
		return len(names) == 4 && !together(names)
	})
	kill(t, c.pids[names[1]])
	c.next(launch.Died)
	before := w.total()
	eventually(t, "writes after the crash", func(context.Context) bool { return w.total() > before+40 })
	w.end()
	c.reads(c.alive(names[1]), w.acked)
	held := 0
	for _, m := range c.members() {
		require.Equal(t, "code", m.Placement)
		held += int(m.Bodies.LiveBytes)
	}
	require.Less(t, held, 4*len(w.acked)*(100<<10), "four members hold less than four copies")
	c.stop()

	again := up(t, dir)
	again.reads(again.alive(), w.acked)
}

// One member keeps the leases' time, wherever the leaders of other instances are.
func TestNiagaraLeases(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := up(t, dataDir(t), "--protocol=niagara", "--instances=3", "--leaders=spread")
	names := c.leaders("spread leaders", spread)
	survivors := c.alive(names[0])
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	client := c.client(survivors[names[1]], survivors[names[2]])
	short, err := client.Grant(ctx, 3)
	require.NoError(t, err)
	kept, err := client.Grant(ctx, 5)
	require.NoError(t, err)
	_, err = client.Put(ctx, "short", "x", clientv3.WithLease(short.ID))
	require.NoError(t, err)
	_, err = client.Put(ctx, "kept", "x", clientv3.WithLease(kept.ID))
	require.NoError(t, err)
	alive, err := client.KeepAlive(ctx, kept.ID)
	require.NoError(t, err)
	go func() {
		for range alive {
		}
	}()
	watch := client.Watch(ctx, "short")
	kill(t, c.pids[names[0]]) // the one that keeps the time
	select {
	case r := <-watch:
		require.Len(t, r.Events, 1)
		require.Equal(t, clientv3.EventTypeDelete, r.Events[0].Type)
	case <-ctx.Done():
		require.Fail(t, "the lease does not end")
	}
	got, err := client.Get(ctx, "kept")
	require.NoError(t, err)
	require.Len(t, got.Kvs, 1, "it was kept alive over the change")
	left, err := client.TimeToLive(ctx, kept.ID)
	require.NoError(t, err)
	require.Positive(t, left.TTL)
	require.False(t, errors.Is(ctx.Err(), context.DeadlineExceeded))
}

// etcd's move-leader moves the first instance's leader. With leaders together the other instances follow.
func TestNiagaraMovesItsLeaders(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := up(t, dataDir(t), "--protocol=niagara", "--instances=4")
	names := c.leaders("leaders together", together)
	target := map[bool]string{true: "m2", false: "m3"}[names[0] != "m2"]
	id := ""
	for _, m := range c.members() {
		if m.Name == target {
			id = m.ID
		}
	}
	ok(t, "ctl", "--endpoints", c.alive()[names[0]], "--command-timeout=20s", "move-leader", id)
	c.leaders("all leaders at the target", func(names []string) bool { return together(names) && names[0] == target })
}

func TestNiagaraAuth(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := up(t, dataDir(t), "--protocol=niagara", "--instances=3", "--leaders=spread")
	first := c.endpoints[0]
	ok(t, "ctl", "--endpoints", first, "user", "add", "root:pw")
	ok(t, "ctl", "--endpoints", first, "user", "grant-role", "root", "root")
	ok(t, "ctl", "--endpoints", first, "auth", "enable")
	for i, endpoint := range c.endpoints {
		key := "k" + strconv.Itoa(i)
		_, stderr, code := do(t, "", "ctl", "--endpoints", endpoint, "put", key, "v")
		require.NotZero(t, code)
		require.Contains(t, stderr, "user name is empty")
		ok(t, "ctl", "--endpoints", endpoint, "--user=root:pw", "put", key, "v")
		ok(t, "ctl", "--endpoints", strings.Join(c.endpoints, ","), "--user=root:pw", "get", "--prefix", "k")
	}
	// One token, on all members in turn: each knows it at its first request.
	client, err := clientv3.New(clientv3.Config{Endpoints: c.endpoints, Username: "root", Password: "pw",
		DialTimeout: testTimeout})
	require.NoError(t, err)
	defer client.Close()
	for range 30 {
		_, err := client.Get(t.Context(), "k0")
		require.NoError(t, err)
	}
	ok(t, "ctl", "--endpoints", first, "--user=root:pw", "auth", "disable")
}
