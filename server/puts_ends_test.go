package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid"
)

// How a stream of puts ends, and what holds it up.

// one is the only member of a cluster.
func (c *realCluster) one() *fixture {
	id := c.leader()
	return &fixture{Server: c.servers[id], addr: c.addrs[id]}
}

// failsSoon receives the error with which a stream ends.
func failsSoon(t testing.TB, stream grpc.ClientStream) error {
	failed := make(chan error, 1)
	go func() { failed <- stream.RecvMsg(new(pb.TxnResponse)) }()
	return within(t, failed)
}

// within is what a channel has, soon.
func within[T any](t testing.TB, c <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-c:
	case <-time.After(20 * time.Second):
		t.Fatal("waited too long")
	}
	return value
}

// A stream whose client sends nothing ends for the reasons for which all streams end, and the client learns which.
func TestStreamOfPutsEndsThoughIdle(t *testing.T) {
	c := startReal(t, 1)
	f := c.one()
	ctx := testContext(t)
	stream := putStreamOf(clientv3.WithRequireLeader(ctx), t, c.client())
	require.NoError(t, stream.SendMsg(putsRequest("a", "1")))
	answerOf(t, stream)
	f.streams.endLeaderless(rpctypes.ErrGRPCNoLeader)
	requireStatus(t, rpctypes.ErrGRPCNoLeader, failsSoon(t, stream))

	stream = putStreamOf(ctx, t, c.client())
	require.NoError(t, stream.SendMsg(putsRequest("a", "1")))
	answerOf(t, stream)
	c.stop(f.id)
	requireStatus(t, rpctypes.ErrGRPCStopped, failsSoon(t, stream))
}

// A rate counts each put, so a message has no more of them than are counted.
func TestStreamOfPutsRefusesTooManyInAMessage(t *testing.T) {
	c := startReal(t, 1)
	stream := putStreamOf(testContext(t), t, c.client())
	most := &pb.TxnRequest{Success: make([]*pb.RequestOp, putsOfMessage)}
	for i := range most.Success {
		most.Success[i] = putOp(&pb.PutRequest{Key: []byte("k")})
	}
	require.NoError(t, stream.SendMsg(most))
	answerOf(t, stream)
	most.Success = append(most.Success, most.Success[0])
	require.NoError(t, stream.SendMsg(most))
	err := failsSoon(t, stream)
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.ErrorContains(t, err, fmt.Sprint(putsOfMessage))
}

// Puts that fit in the quota of a prefix one after the other fit in a message, and in messages that do not wait for
// answers.
func TestStreamOfPutsFitsInAQuota(t *testing.T) {
	c := startReal(t, 1)
	f := c.one()
	ctx := testContext(t)
	client := c.client()
	_, err := SetPrefixQuota(ctx, client.ActiveConnection(), PrefixQuota{Prefix: "q", Keys: 2, Bytes: 14})
	require.NoError(t, err)
	stream := putStreamOf(ctx, t, client)
	require.NoError(t, stream.SendMsg(putsRequest("q1", "0123456789", "q1", "9876543210")))
	require.NoError(t, stream.SendMsg(putsRequest("q1", "", "q2", "0123456789")))
	require.NoError(t, stream.SendMsg(putsRequest("q2", "")))
	require.NoError(t, stream.SendMsg(putsRequest("q1", "0123456789", "q2", "", "q1", "0123456789")))
	for range 4 {
		answerOf(t, stream)
	}
	require.NoError(t, stream.SendMsg(putsRequest("x", "", "q3", "")))
	err = failsSoon(t, stream)
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.ErrorContains(t, err, `quota of prefix "q" exceeded`)
	require.Zero(t, f.metrics.Pending.Load())
}

// gated is a state machine that applies nothing while it is shut.
type gated struct {
	*machine
	shut sync.Mutex
}

func (g *gated) Apply(commands []braid.Command) error {
	g.shut.Lock()
	defer g.shut.Unlock()
	return g.machine.Apply(commands)
}

// While the server takes no more puts, for those before them are not applied, the message that the client has sent in
// part is not late. When the stream is ended nothing of it remains.
func TestStreamOfPutsWaits(t *testing.T) {
	gate := new(gated)
	c := startReal(t, 1, func(c *Config) {
		c.Node.ElectionTimeout = 2 * time.Second
		c.openLog = func(o braid.Options, sm braid.DurableStateMachine) (Log, error) {
			gate.machine = sm.(*machine)
			return braid.Open(o, gate)
		}
	})
	f := c.one()
	client := c.client()
	ctx, cancel := context.WithCancel(testContext(t))
	streams := []grpc.ClientStream{putStreamOf(testContext(t), t, client), putStreamOf(ctx, t, client)}
	for _, stream := range streams {
		require.NoError(t, stream.SendMsg(putsRequest("k", "v")))
		answerOf(t, stream)
	}
	gate.shut.Lock()
	open := sync.OnceFunc(gate.shut.Unlock)
	defer open()
	const messages = 8
	value := strings.Repeat("v", 900<<10)
	sent := make(chan error, 2*messages)
	for _, stream := range streams {
		go func() {
			for i := range messages {
				sent <- stream.SendMsg(putsRequest(fmt.Sprint(i), value))
			}
		}()
	}
	eventually(t, "messages that have arrived in part", func() bool { return f.partly() == 2 })
	for range 100 {
		f.intake.sweep() // time passes
	}
	cancel()
	require.Equal(t, codes.Canceled, status.Code(failsSoon(t, streams[1])))
	counted := `grpc_code="Canceled",grpc_method="Puts",grpc_service="braid.KV",grpc_type="bidi_stream"} 1`
	eventually(t, "it to be counted as left by its client", func() bool {
		_, metrics := f.fetch(t, "/metrics")
		return strings.Contains(metrics, counted)
	})
	open()
	for range messages {
		answerOf(t, streams[0])
	}
	eventually(t, "nothing to be pending", func() bool { return f.metrics.Pending.Load() == 0 })
	require.NoError(t, streams[0].CloseSend())
	eventually(t, "the streams to be gone", func() bool { return f.intake.calls.Load() == 0 && f.partly() == 0 })
	for range 2 * messages {
		<-sent
	}
}

// partly is how many messages of streams have arrived in part, and are not read further.
func (f *fixture) partly() (n int) {
	f.intake.mu.Lock()
	defer f.intake.mu.Unlock()
	for conn := range f.intake.conns {
		for _, c := range conn.all() {
			c.mu.Lock()
			if c.left > 0 && c.left < c.size && c.waits {
				n++
			}
			c.mu.Unlock()
		}
	}
	return n
}

// A user who may do nothing any more puts nothing any more.
func TestStreamOfPutsNeedsRightsWhenApplied(t *testing.T) {
	c := startSecured(t)
	stream := putStreamOf(c.ctx, t, c.clientAs("bob", "b"))
	require.NoError(t, stream.SendMsg(putsRequest("b1", "1")))
	answerOf(t, stream)
	require.NoError(t, second(c.root.UserDelete(c.ctx, "bob")))
	require.NoError(t, stream.SendMsg(putsRequest("b2", "2")))
	require.NotEqual(t, codes.OK, status.Code(failsSoon(t, stream)))

	require.NoError(t, second(c.root.AuthDisable(c.ctx)))
	stream = putStreamOf(c.ctx, t, c.client())
	require.NoError(t, stream.SendMsg(putsRequest("b3", "3")))
	answerOf(t, stream)
	require.NoError(t, second(c.client().AuthEnable(c.ctx)))
	require.NoError(t, stream.SendMsg(putsRequest("b4", "4")))
	requireStatus(t, rpctypes.ErrGRPCUserEmpty, failsSoon(t, stream))
	root := c.clientAs("root", "secret")
	got, err := root.Get(c.ctx, "b", clientv3.WithPrefix())
	require.NoError(t, err)
	require.Len(t, got.Kvs, 2)
}

// However leaders change, the puts of a stream that took effect are the first ones, each once, in order, and those
// that were answered are among them.
func TestStreamOfPutsKeepsOrderWithoutALeader(t *testing.T) {
	eachKind(t, func(t *testing.T, kind func(*Config)) {
		c := startReal(t, 3, kind)
		ctx := testContext(t)
		client := c.client(c.follower())
		answered := map[string]int{}
		began, err := client.Get(ctx, "k")
		require.NoError(t, err)
		for round := range 3 {
			name := fmt.Sprint(round)
			answered[name] = putThrough(t, putStreamOf(ctx, t, client), name, func() {
				if id := c.leader(); round < 2 || c.addrs[id] == client.Endpoints()[0] {
					_ = c.servers[id].log.TransferLeader(ctx, 0)
				} else {
					c.stop(id)
				}
			})
		}
		requirePrefixes(t, ctx, c.client(), began.Header.Revision, answered)
	})
}

// A switch of protocols is no different.
func TestStreamOfPutsKeepsOrderAcrossProtocols(t *testing.T) {
	t.Parallel() // it waits most of the time
	c := startReal(t, 3)
	ctx := testContext(t)
	client := c.client(c.follower())
	answered := map[string]int{}
	began, err := client.Get(ctx, "k")
	require.NoError(t, err)
	for _, to := range []braid.Switch{
		{Protocol: "niagara", Settings: map[string]string{"instances": "2", "leaders": "spread"}},
		{Protocol: "craft", Settings: map[string]string{"code-k": "2"}}, {Protocol: "lcr"}, {Protocol: "iss"},
	} {
		answered[to.Protocol] = putThrough(t, putStreamOf(ctx, t, client), to.Protocol, func() {
			_, err := Switch(ctx, c.client().ActiveConnection(), to)
			require.NoError(t, err)
		})
	}
	requirePrefixes(t, ctx, c.client(), began.Header.Revision, answered)
}

// flow is a stream of puts that continues while something happens.
type flow struct {
	stream        grpc.ClientStream
	name          string
	unanswered    chan struct{} // bounds the messages in flight
	going, enough chan struct{} // closed when many are answered, and when some more suffice
	answered      int
	err           error
}

const flowPuts, flowMore = 20, 100

// putThrough puts while something happens, and returns how many puts were answered.
func putThrough(t *testing.T, stream grpc.ClientStream, name string, happens func()) (answered int) {
	f := &flow{stream: stream, name: name, unanswered: make(chan struct{}, 50), going: make(chan struct{}),
		enough: make(chan struct{})}
	received := make(chan struct{})
	go f.send()
	go func() {
		defer close(received)
		f.receive()
	}()
	select {
	case <-f.going:
	case <-received:
	}
	happens()
	close(f.enough)
	<-received
	if !errors.Is(f.err, io.EOF) {
		t.Logf("stream %s ends after %d answers: %v", name, f.answered, f.err)
	}
	return f.answered * flowPuts
}

func (f *flow) send() {
	enough := f.enough
	for m, last := 0, math.MaxInt; m < last; m++ {
		select {
		case <-f.stream.Context().Done():
			return
		case <-enough:
			enough, last = nil, m+flowMore
		case f.unanswered <- struct{}{}:
		}
		r := new(pb.TxnRequest)
		for i := range flowPuts {
			r.Success = append(r.Success, putsRequest("k", fmt.Sprintf("%s-%d", f.name, m*flowPuts+i)).Success...)
		}
		if f.stream.SendMsg(r) != nil {
			return
		}
	}
	_ = f.stream.CloseSend()
}

func (f *flow) receive() {
	for ; f.err == nil; f.answered++ {
		if f.answered == flowMore {
			close(f.going)
		}
		if f.err = f.stream.RecvMsg(new(pb.TxnResponse)); f.err != nil {
			return
		}
		select { // the message that was sent when enough was closed is one more
		case <-f.unanswered:
		default:
		}
	}
}

// requirePrefixes asserts that the history of the key has puts of each stream from the first one on, in order, and at
// least those that were answered.
func requirePrefixes(t *testing.T, ctx context.Context, client *clientv3.Client, from int64, answered map[string]int) {
	putUntil(t, ctx, client, "k", "end")
	found := map[string]int{}
	for response := range client.Watch(ctx, "k", clientv3.WithRev(from+1)) {
		for _, event := range response.Events {
			value := string(event.Kv.Value)
			if value == "end" {
				for name, n := range answered {
					require.GreaterOrEqual(t, found[name], n, name)
				}
				return
			}
			name, _, _ := strings.Cut(value, "-")
			require.Equal(t, fmt.Sprintf("%s-%d", name, found[name]), value)
			found[name]++
		}
	}
	t.Fatal("the watch ended")
}

// Without a majority a stream fails in time.
func TestStreamOfPutsWithoutQuorum(t *testing.T) {
	t.Parallel() // it waits most of the time
	c := startReal(t, 3)
	leader := c.leader()
	stream := putStreamOf(testContext(t), t, c.client(leader))
	require.NoError(t, stream.SendMsg(putsRequest("k", "v")))
	answerOf(t, stream)
	for _, m := range c.members {
		if m.ID != leader {
			c.stop(m.ID)
		}
	}
	require.NoError(t, stream.SendMsg(putsRequest("k", "w", "k", "x")))
	err := failsSoon(t, stream)
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	require.ErrorContains(t, err, "put 0 of the message")
	eventually(t, "nothing to be pending", func() bool { return c.servers[leader].metrics.Pending.Load() == 0 })
}
