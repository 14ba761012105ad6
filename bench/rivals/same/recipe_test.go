package same

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/client/v3/leasing"
	"golang.org/x/sync/errgroup"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/client/v3/mirror"
	"go.etcd.io/etcd/client/v3/namespace"
	"go.etcd.io/etcd/client/v3/naming/endpoints"
	"go.etcd.io/etcd/client/v3/ordering"

	"github.com/braidlog/braid/bench"
)

// recipes are what etcd's client package offers above requests. Each gets a client of every member.
var recipes = map[string]func(t *testing.T, clients []*clientv3.Client){
	"mutex": countsUnderMutex, "election": leadsInTurn, "stm": movesMoney,
	"rwmutex": readsWhileNoneWrites, "barrier": waitsAtBarrier, "double barrier": entersAndLeaves,
	"queue": queues, "priority queue": queuesByPriority,
	"leasing": caches, "mirror": follows, "namespace": prefixes, "ordering": readsForward, "naming": names,
	"kubernetes": kubernetesInterface,
}

// TestRecipes uses etcd's client package on etcd and on braid, of three members each.
func TestRecipes(t *testing.T) {
	rivals, own := build(t, "../"), build(t, "../../../cmd/braid")
	t.Run("etcd", func(t *testing.T) {
		runRecipes(t, start(t, rivals, bench.ServerKind{Name: "etcd", Args: []string{"etcd-member"}}, 3))
	})
	for _, protocol := range strings.Split(*protocols, ",") {
		t.Run(protocol, func(t *testing.T) {
			kind := bench.ServerKind{Name: protocol, Args: []string{"serve", "--protocol", protocol}}
			runRecipes(t, start(t, own, kind, 3))
		})
	}
}

func runRecipes(t *testing.T, s *bench.Servers) {
	var clients []*clientv3.Client
	for _, endpoint := range s.Endpoints {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: commandTime, Context: t.Context()})
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		clients = append(clients, c)
	}
	for name, run := range recipes {
		t.Run(name, func(t *testing.T) { run(t, clients) })
	}
}

// together runs a function for each client, and demands that none fails.
func together(t *testing.T, clients []*clientv3.Client, f func(i int, c *clientv3.Client) error) {
	t.Helper()
	var all errgroup.Group
	for i, c := range clients {
		all.Go(func() error { return f(i, c) })
	}
	require.NoError(t, all.Wait())
}

// session is one of a client that ends with the test.
func session(t *testing.T, c *clientv3.Client) *concurrency.Session {
	t.Helper()
	s, err := concurrency.NewSession(c)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func sessions(t *testing.T, clients []*clientv3.Client) (all []*concurrency.Session) {
	for _, c := range clients {
		all = append(all, session(t, c))
	}
	return all
}

// add adds to a number with a read and a write.
func add(ctx context.Context, c *clientv3.Client, key string, n int) error {
	got, err := c.Get(ctx, key)
	if err != nil {
		return err
	}
	was := 0
	if len(got.Kvs) > 0 {
		if was, err = strconv.Atoi(string(got.Kvs[0].Value)); err != nil {
			return err
		}
	}
	_, err = c.Put(ctx, key, strconv.Itoa(was+n))
	return err
}

func valueOf(t *testing.T, c *clientv3.Client, key string) string {
	t.Helper()
	got, err := c.Get(t.Context(), key)
	require.NoError(t, err)
	require.Len(t, got.Kvs, 1)
	return string(got.Kvs[0].Value)
}

func countsUnderMutex(t *testing.T, clients []*clientv3.Client) {
	const rounds = 10
	all := sessions(t, clients)
	together(t, clients, func(i int, c *clientv3.Client) error {
		m := concurrency.NewMutex(all[i], "mutex/")
		for range rounds {
			if err := m.Lock(t.Context()); err != nil {
				return err
			}
			if err := add(t.Context(), c, "mutex-count", 1); err != nil {
				return err
			}
			if err := m.Unlock(t.Context()); err != nil {
				return err
			}
		}
		return nil
	})
	require.Equal(t, strconv.Itoa(rounds*len(clients)), valueOf(t, clients[0], "mutex-count"))
	m := concurrency.NewMutex(all[0], "mutex/")
	require.NoError(t, m.Lock(t.Context()))
	require.ErrorIs(t, concurrency.NewMutex(all[1], "mutex/").TryLock(t.Context()), concurrency.ErrLocked)
}

func leadsInTurn(t *testing.T, clients []*clientv3.Client) {
	all := sessions(t, clients)
	observed := concurrency.NewElection(all[0], "election").Observe(t.Context())
	var leads atomic.Int32
	together(t, clients, func(i int, _ *clientv3.Client) error {
		e := concurrency.NewElection(all[i], "election")
		if err := e.Campaign(t.Context(), fmt.Sprint(i)); err != nil {
			return err
		}
		if n := leads.Add(1); n != 1 {
			return fmt.Errorf("%d lead", n)
		}
		if err := e.Proclaim(t.Context(), fmt.Sprint("again ", i)); err != nil {
			return err
		}
		leads.Add(-1)
		return e.Resign(t.Context())
	})
	select {
	case r := <-observed:
		require.Len(t, r.Kvs, 1)
	case <-time.After(commandTime):
		t.Fatal("no leader was observed")
	}
	_, err := concurrency.NewElection(all[0], "election").Leader(t.Context())
	require.ErrorIs(t, err, concurrency.ErrElectionNoLeader)
}

func movesMoney(t *testing.T, clients []*clientv3.Client) {
	const accounts, each = 4, 100
	account := func(i int) string { return fmt.Sprintf("account/%d", i%accounts) }
	for i := range accounts {
		_, err := clients[0].Put(t.Context(), account(i), strconv.Itoa(each))
		require.NoError(t, err)
	}
	for _, c := range clients { // reads of one revision are by what its member has
		require.Equal(t, strconv.Itoa(each), valueOf(t, c, account(accounts-1)))
	}
	levels := []concurrency.Isolation{
		concurrency.SerializableSnapshot, concurrency.Serializable, concurrency.RepeatableReads,
	}
	together(t, clients, func(i int, c *clientv3.Client) error {
		for n := range 10 {
			_, err := concurrency.NewSTM(c, func(s concurrency.STM) error {
				from, err := strconv.Atoi(s.Get(account(i + n)))
				if err != nil {
					return err
				}
				to, err := strconv.Atoi(s.Get(account(i + n + 1)))
				if err != nil {
					return err
				}
				s.Put(account(i+n), strconv.Itoa(from-n))
				s.Put(account(i+n+1), strconv.Itoa(to+n))
				return nil
			}, concurrency.WithIsolation(levels[i%len(levels)]))
			if err != nil {
				return err
			}
		}
		return nil
	})
	sum := 0
	for i := range accounts {
		n, err := strconv.Atoi(valueOf(t, clients[0], account(i)))
		require.NoError(t, err)
		sum += n
	}
	require.Equal(t, accounts*each, sum)
}

func readsWhileNoneWrites(t *testing.T, clients []*clientv3.Client) {
	all := sessions(t, clients)
	var readers, writers atomic.Int32
	together(t, clients, func(i int, _ *clientv3.Client) error {
		m := recipe.NewRWMutex(all[i], "rwmutex")
		for range 5 {
			if err := m.RLock(); err != nil {
				return err
			}
			readers.Add(1)
			if writers.Load() != 0 {
				return fmt.Errorf("one reads while another writes")
			}
			readers.Add(-1)
			if err := m.RUnlock(); err != nil {
				return err
			}
			if err := m.Lock(); err != nil {
				return err
			}
			if w, r := writers.Add(1), readers.Load(); w != 1 || r != 0 {
				return fmt.Errorf("%d write and %d read", w, r)
			}
			writers.Add(-1)
			if err := m.Unlock(); err != nil {
				return err
			}
		}
		return nil
	})
}

func waitsAtBarrier(t *testing.T, clients []*clientv3.Client) {
	b := recipe.NewBarrier(clients[0], "barrier")
	require.NoError(t, b.Hold())
	require.Error(t, b.Hold(), "it is held")
	passed := make(chan error, len(clients))
	for _, c := range clients {
		go func() { passed <- recipe.NewBarrier(c, "barrier").Wait() }()
	}
	for range 20 {
		_, err := clients[0].Put(t.Context(), "meanwhile", "x")
		require.NoError(t, err)
	}
	require.Empty(t, passed, "the barrier is held")
	require.NoError(t, b.Release())
	for range clients {
		require.NoError(t, <-passed)
	}
}

func entersAndLeaves(t *testing.T, clients []*clientv3.Client) {
	all := sessions(t, clients)
	var entered, left atomic.Int32
	together(t, clients, func(i int, _ *clientv3.Client) error {
		b := recipe.NewDoubleBarrier(all[i], "double", len(clients))
		entered.Add(1)
		if err := b.Enter(); err != nil {
			return err
		}
		if n := int(entered.Load()); n != len(clients) {
			return fmt.Errorf("entered when %d were there", n)
		}
		left.Add(1)
		if err := b.Leave(); err != nil {
			return err
		}
		if n := int(left.Load()); n != len(clients) {
			return fmt.Errorf("left when %d were to leave", n)
		}
		return nil
	})
}

func queues(t *testing.T, clients []*clientv3.Client) {
	const each = 8
	together(t, clients, func(i int, c *clientv3.Client) error {
		q := recipe.NewQueue(c, "queue")
		for n := range each {
			if err := q.Enqueue(fmt.Sprintf("%d-%d", i, n)); err != nil {
				return err
			}
		}
		return nil
	})
	got := make([][]string, len(clients))
	together(t, clients, func(i int, c *clientv3.Client) error {
		q := recipe.NewQueue(c, "queue")
		for range each {
			v, err := q.Dequeue()
			if err != nil {
				return err
			}
			got[i] = append(got[i], v)
		}
		return nil
	})
	all := slices.Concat(got...)
	slices.Sort(all)
	require.Len(t, slices.Compact(all), each*len(clients), "each once")
}

func queuesByPriority(t *testing.T, clients []*clientv3.Client) {
	for i, pr := range []uint16{5, 1, 9, 3} {
		require.NoError(t, recipe.NewPriorityQueue(clients[i%len(clients)], "pqueue").Enqueue(fmt.Sprint(pr), pr))
	}
	for i, want := range []string{"1", "3", "5", "9"} {
		got, err := recipe.NewPriorityQueue(clients[i%len(clients)], "pqueue").Dequeue()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// caches: a client with a leasing key reads it without the cluster, and another one's write takes the key away first.
func caches(t *testing.T, clients []*clientv3.Client) {
	var kvs []clientv3.KV
	for _, c := range clients {
		kv, end, err := leasing.NewKV(c, "leasing/")
		require.NoError(t, err)
		t.Cleanup(end)
		kvs = append(kvs, kv)
	}
	for n := range 5 * len(kvs) {
		_, err := kvs[n%len(kvs)].Put(t.Context(), "leased", fmt.Sprint(n))
		require.NoError(t, err)
		for _, kv := range kvs {
			got, err := kv.Get(t.Context(), "leased")
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(n), string(got.Kvs[0].Value))
		}
	}
	r, err := kvs[0].Txn(t.Context()).If(clientv3.Compare(clientv3.Version("leased"), ">", 0)).
		Then(clientv3.OpDelete("leased")).Commit()
	require.NoError(t, err)
	require.True(t, r.Succeeded)
	got, err := kvs[1].Get(t.Context(), "leased")
	require.NoError(t, err)
	require.Empty(t, got.Kvs)
}

func follows(t *testing.T, clients []*clientv3.Client) {
	const keys = 30
	for i := range keys {
		_, err := clients[0].Put(t.Context(), fmt.Sprintf("mirror/%02d", i), "x")
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), commandTime)
	defer cancel()
	s := mirror.NewSyncer(clients[1], "mirror/", 0)
	base, failed := s.SyncBase(ctx)
	n := 0
	for r := range base {
		n += len(r.Kvs)
	}
	require.NoError(t, <-failed)
	require.Equal(t, keys, n)
	updates := s.SyncUpdates(ctx)
	_, err := clients[2].Put(t.Context(), "mirror/new", "y")
	require.NoError(t, err)
	r := <-updates
	require.NoError(t, r.Err())
	require.Equal(t, "mirror/new", string(r.Events[0].Kv.Key))
}

func prefixes(t *testing.T, clients []*clientv3.Client) {
	kv, w := namespace.NewKV(clients[0], "space/"), namespace.NewWatcher(clients[1], "space/")
	ctx, cancel := context.WithTimeout(t.Context(), commandTime)
	defer cancel()
	put, err := kv.Put(ctx, "key", "value")
	require.NoError(t, err)
	require.Equal(t, "value", valueOf(t, clients[2], "space/key"))
	r := <-w.Watch(ctx, "key", clientv3.WithRev(put.Header.Revision))
	require.NoError(t, r.Err())
	require.Equal(t, "key", string(r.Events[0].Kv.Key))
	lease := namespace.NewLease(clients[0], "space/")
	granted, err := lease.Grant(ctx, 60)
	require.NoError(t, err)
	_, err = kv.Put(ctx, "leased", "x", clientv3.WithLease(granted.ID))
	require.NoError(t, err)
	left, err := lease.TimeToLive(ctx, granted.ID, clientv3.WithAttachedKeys())
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("leased")}, left.Keys)
}

// readsForward: serializable reads of a client that changes members never see an older revision than before.
func readsForward(t *testing.T, clients []*clientv3.Client) {
	all := slices.Concat(clients[0].Endpoints(), clients[1].Endpoints(), clients[2].Endpoints())
	c, err := clientv3.New(clientv3.Config{Endpoints: all, DialTimeout: commandTime, Context: t.Context()})
	require.NoError(t, err)
	defer c.Close()
	kv := ordering.NewKV(c.KV, ordering.NewOrderViolationSwitchEndpointClosure(c))
	last := int64(0)
	for i := range 60 {
		_, err := clients[i%3].Put(t.Context(), "ordered", fmt.Sprint(i))
		require.NoError(t, err)
		c.SetEndpoints(all[i%3])
		got, err := kv.Get(t.Context(), "ordered", clientv3.WithSerializable())
		require.NoError(t, err)
		require.GreaterOrEqual(t, got.Header.Revision, last)
		last = got.Header.Revision
	}
}

func names(t *testing.T, clients []*clientv3.Client) {
	m, err := endpoints.NewManager(clients[0], "service")
	require.NoError(t, err)
	watched, err := m.NewWatchChannel(t.Context())
	require.NoError(t, err)
	require.NoError(t, m.AddEndpoint(t.Context(), "service/a", endpoints.Endpoint{Addr: "127.0.0.1:1"}))
	update := <-watched
	require.Equal(t, "127.0.0.1:1", update[0].Endpoint.Addr)
	other, err := endpoints.NewManager(clients[1], "service")
	require.NoError(t, err)
	// List reads serializably, so that the member of clients[1] may not have applied the addition yet; a linearizable
	// read makes it wait.
	_, err = clients[1].Get(t.Context(), "service/a")
	require.NoError(t, err)
	list, err := other.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NoError(t, other.DeleteEndpoint(t.Context(), "service/a"))
	require.Equal(t, endpoints.Delete, (<-watched)[0].Op)
}

func kubernetesInterface(t *testing.T, clients []*clientv3.Client) {
	k := kubernetes.Client{Client: clients[1]}
	put, err := k.OptimisticPut(t.Context(), "/registry/a", []byte("1"), 0, kubernetes.PutOptions{})
	require.NoError(t, err)
	require.True(t, put.Succeeded)
	again, err := k.OptimisticPut(t.Context(), "/registry/a", []byte("2"), 0, kubernetes.PutOptions{GetOnFailure: true})
	require.NoError(t, err)
	require.False(t, again.Succeeded)
	require.Equal(t, "1", string(again.KV.Value))
	list, err := k.List(t.Context(), "/registry/", kubernetes.ListOptions{Limit: 1})
	require.NoError(t, err)
	require.EqualValues(t, 1, list.Count)
	gone, err := k.OptimisticDelete(t.Context(), "/registry/a", put.Revision, kubernetes.DeleteOptions{})
	require.NoError(t, err)
	require.True(t, gone.Succeeded)
}
