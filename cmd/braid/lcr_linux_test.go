package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/testsize"
)

// sensors put measurements in ModeAccepted, each under a separate key and once, whatever the outcome. Occasionally a
// client reads acknowledged ones.
type sensors struct {
	t       *testing.T
	stop    context.CancelFunc
	all     sync.WaitGroup
	writers [6]sensor
	// padding is the number of bytes of a put's value besides the key.
	padding int
	// accepted counts puts with a token, confirmed those that were answered when they were applied. found counts those
	// that were found by their tokens, barriers the reads that saw all acknowledged ones.
	accepted, confirmed, found, barriers atomic.Int64
}

// sensor is one client, of one member.
type sensor struct {
	mu    sync.Mutex
	acked []int
	tried int
}

func (s *sensor) last() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.acked) == 0 {
		return 0
	}
	return s.acked[len(s.acked)-1]
}

func (s *sensor) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.acked)
}

func measurement(writer, n int) string { return fmt.Sprintf("sensor/%d/%08d", writer, n) }

func (s *sensors) value(key string) string { return key + strings.Repeat(".", s.padding) }

// sense starts sensors. They put on some members, and read on all.
func (c *cluster) sense(on ...*grpc.ClientConn) *sensors { return c.senseLarge(0, on...) }

// senseLarge is sense with longer values.
func (c *cluster) senseLarge(padding int, on ...*grpc.ClientConn) *sensors {
	ctx, cancel := context.WithCancel(c.t.Context())
	s := &sensors{t: c.t, stop: cancel, padding: padding}
	everywhere := c.connect()
	if len(on) == 0 {
		on = everywhere
	}
	for i := range s.writers {
		s.all.Go(func() { s.run(ctx, i, on[i%len(on)], everywhere) })
	}
	c.t.Cleanup(s.end)
	return s
}

func (s *sensors) end() {
	s.stop()
	s.all.Wait()
}

func (s *sensors) total() (n int) {
	for i := range s.writers {
		n += s.writers[i].count()
	}
	return n
}

// more waits for this number of further acknowledgements.
func (s *sensors) more(n int) {
	s.t.Helper()
	before := s.total()
	eventually(s.t, "accepted puts", func(context.Context) bool { return s.total() >= before+n })
}

func (s *sensors) run(ctx context.Context, i int, conn *grpc.ClientConn, everywhere []*grpc.ClientConn) {
	me := &s.writers[i]
	for n := 1; ctx.Err() == nil; n++ {
		me.mu.Lock()
		me.tried = n
		me.mu.Unlock()
		token, ok := s.put(ctx, conn, measurement(i, n))
		if !ok {
			continue
		}
		me.mu.Lock()
		me.acked = append(me.acked, n)
		me.mu.Unlock()
		other := everywhere[rand.IntN(len(everywhere))]
		switch {
		case n%8 == 0 && token != "":
			s.look(ctx, other, measurement(i, n), token)
		case n%32 == 1:
			s.barrier(ctx, other)
		}
	}
}

// put reports whether a put was acknowledged, and its token if that was before it was applied.
func (s *sensors) put(ctx context.Context, conn *grpc.ClientConn, key string) (token string, ok bool) {
	attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var header metadata.MD
	_, err := pb.NewKVClient(conn).Put(metadata.AppendToOutgoingContext(attempt, "braid-mode", "accepted"),
		&pb.PutRequest{Key: []byte(key), Value: []byte(s.value(key))}, grpc.Header(&header), grpc.WaitForReady(true))
	if err != nil {
		return "", false
	}
	if header.Get("braid-mode")[0] == "confirmed" {
		s.confirmed.Add(1)
		return "", true
	}
	s.accepted.Add(1)
	return header.Get("braid-token")[0], true
}

// look reads a put by its token, and has a transaction depend on it. Members that cannot answer return an error; an
// answer is right.
func (s *sensors) look(ctx context.Context, conn *grpc.ClientConn, key, token string) {
	attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	attempt = metadata.AppendToOutgoingContext(attempt, "braid-token", token)
	kv := pb.NewKVClient(conn)
	if r, err := kv.Range(attempt, &pb.RangeRequest{Key: []byte(key), Serializable: true},
		grpc.WaitForReady(true)); err == nil {
		if len(r.Kvs) != 1 || string(r.Kvs[0].Value) != s.value(key) {
			s.t.Errorf("a read with token %s does not see %s", token, key)
		}
		s.found.Add(1)
	}
	txn := &pb.TxnRequest{
		Compare: []*pb.Compare{{Key: []byte(key), Target: pb.Compare_VERSION, TargetUnion: &pb.Compare_Version{Version: 1}}}}
	if r, err := kv.Txn(attempt, txn, grpc.WaitForReady(true)); err == nil && !r.Succeeded {
		s.t.Errorf("a transaction with token %s does not find %s", token, key)
	}
}

// barrier reads the last acknowledged put of every sensor.
func (s *sensors) barrier(ctx context.Context, conn *grpc.ClientConn) {
	attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	attempt = metadata.AppendToOutgoingContext(attempt, "braid-read", "barrier")
	txn := &pb.TxnRequest{}
	for i := range s.writers {
		if n := s.writers[i].last(); n > 0 {
			txn.Success = append(txn.Success,
				&pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte(measurement(i, n))}}})
		}
	}
	r, err := pb.NewKVClient(conn).Txn(attempt, txn, grpc.WaitForReady(true))
	if err != nil {
		return
	}
	for i := range r.Responses {
		if len(r.Responses[i].GetResponseRange().Kvs) != 1 {
			s.t.Errorf("a barrier read does not see %s", txn.Success[i].GetRequestRange().Key)
		}
	}
	s.barriers.Add(1)
}

// check requires of each member that all acknowledged puts are there, and each once.
func (s *sensors) check(endpoints []string, c *cluster) {
	s.t.Helper()
	for _, endpoint := range endpoints {
		client := c.client(endpoint)
		for i := range s.writers {
			s.checkOne(client, i)
		}
	}
	s.t.Logf("%d puts accepted, %d confirmed, %d not acknowledged; %d found by tokens, %d barrier reads",
		s.accepted.Load(), s.confirmed.Load(), s.tried()-s.total(), s.found.Load(), s.barriers.Load())
	require.Positive(s.t, s.accepted.Load())
	require.Positive(s.t, s.found.Load())
	require.Positive(s.t, s.barriers.Load())
}

func (s *sensors) tried() (n int) {
	for i := range s.writers {
		n += s.writers[i].tried
	}
	return n
}

func (s *sensors) checkOne(client *clientv3.Client, i int) {
	s.t.Helper()
	there := map[string]bool{}
	eventually(s.t, "a barrier read", func(ctx context.Context) bool {
		ctx = metadata.AppendToOutgoingContext(ctx, "braid-read", "barrier")
		r, err := client.Get(ctx, fmt.Sprintf("sensor/%d/", i), clientv3.WithPrefix(), clientv3.WithSerializable())
		if err != nil {
			return false
		}
		for _, kv := range r.Kvs {
			require.EqualValues(s.t, 1, kv.Version, "%s was put once", kv.Key)
			require.Equal(s.t, kv.CreateRevision, kv.ModRevision)
			require.Equal(s.t, s.value(string(kv.Key)), string(kv.Value))
			there[string(kv.Key)] = true
		}
		return true
	})
	for _, n := range s.writers[i].acked {
		require.True(s.t, there[measurement(i, n)], "%s was acknowledged", measurement(i, n))
	}
}

// accounts are balances between which clients transfer, by transactions. Their sum is constant.
type accounts struct {
	t         *testing.T
	stop      context.CancelFunc
	all       sync.WaitGroup
	transfers atomic.Int64
}

const (
	accountNumber  = 5
	accountBalance = 1000
)

func account(i int) string { return fmt.Sprintf("account/%d", i) }

func (c *cluster) transfer() *accounts {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	a := &accounts{t: c.t, stop: cancel}
	client := c.client()
	var open []clientv3.Op
	for i := range accountNumber {
		open = append(open, clientv3.OpPut(account(i), strconv.Itoa(accountBalance)))
	}
	eventually(c.t, "accounts", func(ctx context.Context) bool {
		_, err := client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(account(0)), "=", 0)).Then(open...).Commit()
		return err == nil
	})
	for range 4 {
		client := c.client()
		a.all.Go(func() {
			for ctx.Err() == nil {
				a.one(ctx, client)
			}
		})
	}
	c.t.Cleanup(a.end)
	return a
}

func (a *accounts) end() {
	a.stop()
	a.all.Wait()
}

// one transfer: it may fail, or be made without an answer.
func (a *accounts) one(ctx context.Context, client *clientv3.Client) {
	attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	balances, revisions, ok := a.balances(attempt, client)
	if !ok {
		return
	}
	from, to, amount := rand.IntN(accountNumber), rand.IntN(accountNumber), 1+rand.IntN(10)
	if from == to || balances[from] < amount {
		return
	}
	r, err := client.Txn(attempt).
		If(clientv3.Compare(clientv3.ModRevision(account(from)), "=", revisions[from]),
			clientv3.Compare(clientv3.ModRevision(account(to)), "=", revisions[to])).
		Then(clientv3.OpPut(account(from), strconv.Itoa(balances[from]-amount)),
			clientv3.OpPut(account(to), strconv.Itoa(balances[to]+amount))).
		Commit()
	if err == nil && r.Succeeded {
		a.transfers.Add(1)
	}
}

// balances reads all accounts at one revision, and checks their sum.
func (a *accounts) balances(ctx context.Context,
	client *clientv3.Client) (balances [accountNumber]int, revisions [accountNumber]int64, ok bool) {
	r, err := client.Get(ctx, "account/", clientv3.WithPrefix())
	if err != nil {
		return balances, revisions, false
	}
	sum := 0
	for _, kv := range r.Kvs {
		i, err := strconv.Atoi(strings.TrimPrefix(string(kv.Key), "account/"))
		if err == nil {
			balances[i], err = strconv.Atoi(string(kv.Value))
		}
		if err != nil {
			a.t.Errorf("%s: %v", kv.Key, err)
			return balances, revisions, false
		}
		revisions[i] = kv.ModRevision
		sum += balances[i]
	}
	if sum != accountNumber*accountBalance {
		a.t.Errorf("the accounts have %d in all, not %d", sum, accountNumber*accountBalance)
	}
	return balances, revisions, true
}

// more waits for this number of further transfers.
func (a *accounts) more(n int64) {
	a.t.Helper()
	before := a.transfers.Load()
	eventually(a.t, "transfers", func(context.Context) bool { return a.transfers.Load() >= before+n })
}

func (a *accounts) check(client *clientv3.Client) {
	a.t.Helper()
	eventually(a.t, "the balances", func(ctx context.Context) bool {
		_, _, ok := a.balances(ctx, client)
		return ok
	})
	a.t.Logf("%d transfers", a.transfers.Load())
}

// judge ends sensors and accounts, and checks their writes and that all members have the same data.
func (c *cluster) judge(s *sensors, a *accounts) {
	c.t.Helper()
	s.end()
	a.end()
	s.check(c.endpoints, c)
	a.check(c.client())
	last, err := c.client().Get(c.t.Context(), account(0))
	require.NoError(c.t, err)
	c.sameHashes(last.Header.Revision)
}

// Members are killed one after the other and then all at once, while clients put blindly in both modes, read, and
// change values that they read. The history is linearizable. Accepted commands take effect once, and are seen with
// their tokens and by barrier reads. Sums are conserved.
func TestLCRUnderKills(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := up(t, dataDir(t), "--protocol=lcr", "--restart", "--lane-prefix=check-=confirmed")
	judge := c.checkedLoad()
	s, a := c.sense(), c.transfer()
	goesOn := func() {
		s.more(200)
		a.more(30)
	}
	goesOn()
	for _, name := range []string{c.leader(), "m2"} {
		kill(t, c.pids[name])
		require.Equal(t, name, c.next(launch.Serving).Member)
		goesOn()
	}
	for _, pid := range c.pids {
		kill(t, pid)
	}
	for range c.pids {
		c.next(launch.Serving)
	}
	goesOn()
	judge()
	c.judge(s, a)
}

// The leader crashes together with the member that accepts, the only one that sends its accepted commands to others:
// whole, or as rows, two of them enough to decode the whole.
func TestLCRLosesLeaderAndDataLeaderTogether(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	t.Run("copies", func(t *testing.T) { testLeaderAndDataLeaderDie(t, 0) })
	t.Run("rows", func(t *testing.T) {
		testLeaderAndDataLeaderDie(t, 2000, "--placement=code", "--large-value-bytes=1024")
	})
}

func testLeaderAndDataLeaderDie(t *testing.T, padding int, more ...string) {
	c := up(t, dataDir(t), append(more, "--protocol=lcr", "--nodes=5", "--net=latency=5ms")...)
	a := c.transfer()
	leader := c.leader()
	accepts := map[bool]string{true: "m1", false: "m2"}[leader != "m1"]
	s := c.senseLarge(padding, connectTo(t, c.alive()[accepts]))
	s.more(400)
	a.more(10)
	before := s.accepted.Load()
	eventually(t, "accepted puts", func(context.Context) bool { return s.accepted.Load() > before })
	kill(t, c.pids[accepts])
	kill(t, c.pids[leader])
	c.next(launch.Died)
	c.next(launch.Died)
	s.end()
	a.more(10)
	a.end()
	rest := slices.Collect(maps.Values(c.alive(leader, accepts)))
	s.check(rest, c)
	a.check(c.client(rest...))
}

// replace gives a member an empty disk: it is killed, removed, and comes back as a new member under its name and
// addresses, which votes.
func (c *cluster) replace(name string, more ...string) {
	c.t.Helper()
	rest := slices.Collect(maps.Values(c.alive(name)))
	client := c.client(rest...)
	at := slices.IndexFunc(manifest(c.t, c.dir).Members, func(m launch.Member) bool { return m.Name == name })
	member := manifest(c.t, c.dir).Members[at]
	kill(c.t, c.pids[name])
	eventually(c.t, "the removal of "+name, func(ctx context.Context) bool {
		list, err := client.MemberList(ctx)
		if err != nil {
			return false
		}
		for _, m := range list.Members {
			if m.Name == name {
				_, _ = client.MemberRemove(ctx, m.ID) // the list shows whether it is gone
				return false
			}
		}
		return true
	})
	eventually(c.t, "the addition of "+name, func(ctx context.Context) bool {
		_, err := client.MemberAdd(ctx, member.PeerURLs())
		return err == nil
	})
	f := serveFlags{name, dataDir(c.t), member.ClientAddr(), member.PeerAddrs()[0]}
	begin(c.t, "", f.args(append(more, "--initial-cluster-state=existing", "--join=http://"+rest[0],
		"--initial-advertise-peer-urls=http://"+f.peer, "--advertise-client-urls=http://"+f.client)...)...)
	eventually(c.t, name+" votes", func(ctx context.Context) bool { return votersAt(ctx, c.t, rest[0], len(c.clients)) })
}

// The disk of a follower and then the leader's are replaced while clients put blindly in both modes. Commands that
// only the lost disk, its lane and a quorum had are not lost.
func TestLCRReplacesDisks(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	lanes := []string{"--protocol=lcr", "--lane-prefix=check-=confirmed"}
	c := up(t, dataDir(t), lanes...)
	judge := c.checkedLoad()
	s, a := c.sense(), c.transfer()
	s.more(200)
	leader := c.leader()
	for _, name := range []string{map[bool]string{true: "m2", false: "m1"}[leader == "m1"], leader} {
		c.replace(name, lanes...)
		its := &s.writers[slices.Index(slices.Sorted(maps.Keys(c.clients)), name)]
		before := its.count()
		eventually(t, "puts at the new member", func(context.Context) bool { return its.count() > before+20 })
		s.more(200)
		a.more(30)
	}
	judge()
	c.judge(s, a)
}
