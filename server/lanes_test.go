package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/server/internal/page"
)

func TestParseLanePrefix(t *testing.T) {
	for text, want := range map[string]LanePrefix{
		"s/": {"s/", false}, "s/=accepted": {"s/", true}, "s/=confirmed": {"s/", false},
		"a=b=confirmed":       {"a=b", false},
		"a=accepted=accepted": {"a=accepted", true},
	} {
		got, err := ParseLanePrefix(text)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "=accepted", "=confirmed", "a=b", "s/=acepted"} {
		_, err := ParseLanePrefix(text)
		require.Error(t, err)
	}
}

// laneClient is a client of one member who reads and writes metadata.
type laneClient struct {
	t   *testing.T
	ctx context.Context
	kv  pb.KVClient
}

func (c *realCluster) lanes(t *testing.T, id braid.MemberID) *laneClient {
	client := c.client(id)
	ctx := testContext(t)
	_, err := client.Get(ctx, "x") // it is connected then
	require.NoError(t, err)
	return &laneClient{t, ctx, pb.NewKVClient(client.ActiveConnection())}
}

func (l *laneClient) with(pairs ...string) context.Context {
	return metadata.AppendToOutgoingContext(l.ctx, pairs...)
}

// put returns what the response has besides the revision.
func (l *laneClient) put(r *pb.PutRequest, pairs ...string) (mode, token string, err error) {
	var header metadata.MD
	resp, err := l.kv.Put(l.with(pairs...), r, grpc.Header(&header))
	if err != nil {
		return "", "", err
	}
	require.NotZero(l.t, resp.Header.Revision)
	return fmt.Sprint(header.Get(metadataMode)), fmt.Sprint(header.Get(metadataToken)), nil
}

func (l *laneClient) get(key string, serializable bool, pairs ...string) string {
	resp, err := l.kv.Range(l.with(pairs...), &pb.RangeRequest{Key: []byte(key), Serializable: serializable})
	require.NoError(l.t, err)
	if len(resp.Kvs) == 0 {
		return ""
	}
	return string(resp.Kvs[0].Value)
}

func putOf(key, value string) *pb.PutRequest {
	return &pb.PutRequest{Key: []byte(key), Value: []byte(value)}
}

var lanePrefixes = func(c *Config) {
	c.LanePrefixes = []LanePrefix{{"sensor/", true}, {"sensor/slow/", false}}
}

func onSlotPaxos(c *Config) { c.Node.Protocol = braid.Named("slotpaxos") }

func onLCR(c *Config) { c.Node.Protocol = braid.LCR{} }

// eachEarly runs a test for clusters of each protocol that answers early.
func eachEarly(t *testing.T, test func(t *testing.T, protocol func(*Config))) {
	t.Run("slotpaxos", func(t *testing.T) { test(t, onSlotPaxos) })
	t.Run("lcr", func(t *testing.T) { test(t, onLCR) })
}

// With a protocol that answers early, puts are accepted if the client asks for it or the key's prefix is configured
// so, and other members find them by their tokens.
func TestAcceptedPuts(t *testing.T) {
	t.Parallel()
	eachEarly(t, func(t *testing.T, protocol func(*Config)) {
		c := startReal(t, 3, protocol, lanePrefixes)
		here, there := c.follower(), c.leader()
		one, two := c.lanes(t, here), c.lanes(t, there)
		for i := range 20 {
			putAndFind(one, two, fmt.Sprintf("k%d", i), fmt.Sprint(i))
		}
		eventually(t, "an accepted put", func() bool {
			return putAndFind(one, two, fmt.Sprintf("k%d", time.Now().UnixNano()), "late")
		})
		require.Positive(t, c.servers[here].metrics.Accepted.Load())
		require.Positive(t, c.servers[there].metrics.Tokens.Load())
		one.modes()
	})
}

// putAndFind puts on one member a key that is new, and finds it on another by its token. accepted: it has one.
func putAndFind(one, two *laneClient, key, value string) (accepted bool) {
	mode, token, err := one.put(putOf(key, value), metadataMode, modeAccepted)
	require.NoError(one.t, err)
	if mode != "[accepted]" {
		require.Equal(one.t, "[confirmed] []", mode+" "+token, "it was applied before the answer")
		return false
	}
	token = token[1 : len(token)-1]
	require.Equal(one.t, value, two.get(key, true, metadataToken, token))
	require.Equal(one.t, value, two.get(key, false, metadataToken, token, metadataRead, readBarrier))
	txn, err := two.kv.Txn(two.with(metadataToken, token), &pb.TxnRequest{
		Compare: []*pb.Compare{{Key: []byte(key), Target: pb.Compare_VALUE,
			TargetUnion: &pb.Compare_Value{Value: []byte(value)}}},
		Success: []*pb.RequestOp{put(key, "seen")},
	})
	require.NoError(one.t, err)
	require.True(one.t, txn.Succeeded)
	return true
}

// modes puts in all modes, and demands that responses have the right one.
func (l *laneClient) modes() {
	modes := map[string]string{}
	for name, ask := range map[string]struct {
		r     *pb.PutRequest
		pairs []string
	}{
		"plain":      {putOf("plain", ""), nil},
		"prefix":     {putOf("sensor/1", ""), nil},
		"longest":    {putOf("sensor/slow/1", ""), nil},
		"asked":      {putOf("sensor/1", ""), []string{metadataMode, modeConfirmed}},
		"not blind":  {&pb.PutRequest{Key: []byte("sensor/1"), PrevKv: true}, nil},
		"asked, too": {&pb.PutRequest{Key: []byte("a"), PrevKv: true}, []string{metadataMode, modeAccepted}},
	} {
		mode, _, err := l.put(ask.r, ask.pairs...)
		require.NoError(l.t, err)
		modes[name] = mode
	}
	require.Contains(l.t, []string{"[accepted]", "[confirmed]"}, modes["prefix"])
	delete(modes, "prefix")
	require.Equal(l.t, map[string]string{"plain": "[]", "longest": "[confirmed]", "asked": "[confirmed]",
		"not blind": "[]", "asked, too": "[confirmed]"}, modes)
}

// While authentication is on nothing is accepted: who asks for it is refused, and what is configured is
// confirmed.
func TestNothingIsAcceptedWithAuth(t *testing.T) {
	t.Parallel()
	eachEarly(t, func(t *testing.T, protocol func(*Config)) {
		c := startReal(t, 3, protocol, lanePrefixes)
		client := c.client(c.follower())
		ctx := testContext(t)
		for _, err := range []error{
			second(client.UserAdd(ctx, "root", "r")), second(client.UserGrantRole(ctx, "root", "root")),
			second(client.AuthEnable(ctx)),
		} {
			require.NoError(t, err)
		}
		cfg := clientv3.Config{Endpoints: client.Endpoints(), Username: "root", Password: "r", DialTimeout: 5 * time.Second}
		root, err := clientv3.New(cfg)
		require.NoError(t, err)
		defer root.Close()
		_, err = root.Put(metadata.AppendToOutgoingContext(ctx, metadataMode, modeAccepted), "k", "")
		require.Equal(t, codes.FailedPrecondition, status.Code(err), "%v", err)
		require.ErrorContains(t, err, "authentication")
		_, err = root.Put(metadata.AppendToOutgoingContext(ctx, metadataMode, modeConfirmed), "k", "")
		require.NoError(t, err)
		_, err = root.Put(ctx, "sensor/1", "")
		require.NoError(t, err)
	})
}

func second[T any](_ T, err error) error { return err }

// Raft has no early answers: responses show that, and tokens and barriers are accepted nevertheless.
func TestLanesOnRaft(t *testing.T) {
	t.Parallel()
	c := startReal(t, 3, lanePrefixes)
	one := c.lanes(t, c.members[0].ID)
	for _, pairs := range [][]string{{metadataMode, modeAccepted}, {metadataMode, modeConfirmed}, nil} {
		mode, token, err := one.put(putOf("sensor/1", "1"), pairs...)
		require.NoError(t, err)
		require.Equal(t, "[confirmed] []", mode+" "+token)
	}
	require.Equal(t, "1", one.get("sensor/1", false, metadataRead, readBarrier))

	for name, err := range map[string]error{
		"mode":  second3(one.put(putOf("k", ""), metadataMode, "soon")),
		"modes": second3(one.put(putOf("k", ""), metadataMode, modeAccepted, metadataMode, modeAccepted)),
		"token": second3(one.put(putOf("k", ""), metadataToken, "1-2")),
		"read":  second(one.kv.Range(one.with(metadataRead, "all"), &pb.RangeRequest{Key: []byte("k")})),
		"range": second(one.kv.Range(one.with(metadataToken, "x"), &pb.RangeRequest{Key: []byte("k")})),
	} {
		require.Equal(t, codes.InvalidArgument, status.Code(err), "%s: %v", name, err)
	}
	short, cancel := context.WithTimeout(one.with(metadataToken, "77-1-1"), 200*time.Millisecond)
	defer cancel()
	_, err := one.kv.Range(short, &pb.RangeRequest{Key: []byte("k"), Serializable: true})
	require.Error(t, err, "a token that nobody gave")
}

func second3(_, _ string, err error) error { return err }

// Followers send the bodies of their puts to the others themselves, as status and metrics show.
func TestLanesAreCounted(t *testing.T) {
	t.Parallel()
	c := startReal(t, 3, onLCR)
	const size = 10_000
	value := strings.Repeat("v", size)
	var clients []*laneClient
	for _, m := range c.members {
		clients = append(clients, c.lanes(t, m.ID))
	}
	eventually(t, "lanes that are counted", func() bool {
		for _, client := range clients { // one leads
			_, _, err := client.put(putOf("k", value), metadataMode, modeAccepted)
			require.NoError(t, err)
		}
		var sum page.Lanes
		confirmed := uint64(0)
		for _, s := range c.servers {
			l := s.view(testContext(t)).Instances[0].Lanes
			sum.SentBytes += l.SentBytes
			sum.ReceivedBytes += l.ReceivedBytes
			sum.SparedBytes += l.SparedBytes
			for _, lane := range l.Lanes {
				if lane.Own && l.Open && l.Accepting && l.Accepted >= lane.Confirmed {
					confirmed = max(confirmed, lane.Confirmed)
				}
			}
		}
		return confirmed >= 5 && sum.SentBytes >= 10*size && sum.ReceivedBytes >= 5*size && sum.SparedBytes >= 5*size
	})
	_, metrics := do(t, http.DefaultClient, http.MethodGet, "http://"+c.addrs[c.members[0].ID]+"/metrics", nil)
	for _, want := range []string{"generation", "open", "sent_bytes_total", "spared_bytes_total"} {
		require.Contains(t, metrics, "\nbraid_lane_"+want+`{instance="1"} `)
	}
	require.Contains(t, metrics, `braid_lane_confirmed_number{instance="1",member="`)
}
