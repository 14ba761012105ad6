package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/braidlog/braid/internal/testsize"
)

var calmFor = flag.Duration("calm.for", 0, "how long TestClientsSeeNoSwitch runs; 0: as the campaign")

// bare is a client of one member that repeats nothing: every error is one that an application may get.
type bare struct {
	kv     pb.KVClient
	lease  pb.LeaseClient
	member pb.ClusterClient
	care   pb.MaintenanceClient
	watch  pb.WatchClient
	key    string // its endpoint
	user   token
}

// token is a user's, in every call. "": none.
type token string

func (t token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	if t == "" {
		return nil, nil
	}
	return map[string]string{rpctypes.TokenFieldNameGRPC: string(t)}, nil
}

func (token) RequireTransportSecurity() bool { return false }

func newBare(t *testing.T, endpoint string, auth bool) *bare {
	var user token
	dial := func() *grpc.ClientConn {
		conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithPerRPCCredentials(user))
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	if auth {
		q := &pb.AuthenticateRequest{Name: "root", Password: "r"}
		r, err := pb.NewAuthClient(dial()).Authenticate(t.Context(), q)
		require.NoError(t, err)
		user = token(r.Token)
	}
	conn := dial()
	return &bare{pb.NewKVClient(conn), pb.NewLeaseClient(conn), pb.NewClusterClient(conn),
		pb.NewMaintenanceClient(conn), pb.NewWatchClient(conn), endpoint, user}
}

// requests are those that a client makes again and again, each as one call that must succeed.
func (b *bare) requests() map[string]func(ctx context.Context, n int) error {
	key := func(kind string) []byte { return []byte(kind + b.key) }
	put := func(ctx context.Context, kind string, n, size int) error {
		r, err := b.kv.Put(ctx, &pb.PutRequest{Key: key(kind), Value: []byte(sized(strconv.Itoa(n)+" ", size)),
			PrevKv: true})
		if err == nil && n > 0 && (r.PrevKv == nil || string(r.PrevKv.Value) != sized(strconv.Itoa(n-1)+" ", size)) {
			return fmt.Errorf("put %d of %s replaced another value than put %d", n, kind, n-1)
		}
		return err
	}
	return map[string]func(ctx context.Context, n int) error{
		"put":       func(ctx context.Context, n int) error { return put(ctx, "put", n, 10) },
		"large put": func(ctx context.Context, n int) error { return put(ctx, "large", n, 1<<20) },
		"get": func(ctx context.Context, n int) error {
			_, err := b.kv.Range(ctx, &pb.RangeRequest{Key: key("put")})
			return err
		},
		"serializable get": func(ctx context.Context, n int) error {
			_, err := b.kv.Range(ctx, &pb.RangeRequest{Key: key("put"), Serializable: true})
			return err
		},
		"txn": func(ctx context.Context, n int) error {
			_, err := b.kv.Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{
				RequestPut: &pb.PutRequest{Key: key("txn"), Value: []byte("x")}}}}})
			return err
		},
		"lease": b.leaseOnce,
		"lock": func(ctx context.Context, n int) error {
			granted, err := b.lease.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: 60})
			if err != nil {
				return err
			}
			var locked struct{ Key string }
			err = b.post(ctx, "lock/lock", map[string]any{"name": []byte("lock"), "lease": granted.ID}, &locked)
			if err == nil {
				err = b.post(ctx, "lock/unlock", map[string]any{"key": locked.Key}, &locked)
			}
			if err == nil {
				_, err = b.lease.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: granted.ID})
			}
			return err
		},
		"members": func(ctx context.Context, n int) error {
			_, err := b.member.MemberList(ctx, &pb.MemberListRequest{Linearizable: true})
			return err
		},
		"status": func(ctx context.Context, n int) error {
			_, err := b.care.Status(ctx, &pb.StatusRequest{})
			return err
		},
		"hash": func(ctx context.Context, n int) error {
			r, err := b.kv.Range(ctx, &pb.RangeRequest{Key: key("put")})
			if err == nil {
				_, err = b.care.HashKV(ctx, &pb.HashKVRequest{Revision: r.Header.Revision})
			}
			return err
		},
	}
}

// post makes a request of JSON.
func (b *bare) post(ctx context.Context, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+b.key+"/v3/"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Authorization", string(b.user))
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if body, err = io.ReadAll(r.Body); err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", r.Status, body)
	}
	if err == nil {
		err = json.Unmarshal(body, answer)
	}
	return err
}

func (b *bare) leaseOnce(ctx context.Context, n int) error {
	granted, err := b.lease.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: 60})
	if err != nil {
		return err
	}
	stream, err := b.lease.LeaseKeepAlive(ctx)
	if err != nil {
		return err
	}
	for range 3 {
		sent := time.Now()
		if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: granted.ID}); err != nil {
			return err
		}
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		// A renewal counts from when it came, however long the answer takes.
		if took := time.Since(sent); r.TTL > 60 || r.TTL < 60-int64(took/time.Second) {
			return fmt.Errorf("a lease that was renewed within %s has %d s", took, r.TTL)
		}
	}
	if _, err := b.lease.LeaseTimeToLive(ctx, &pb.LeaseTimeToLiveRequest{ID: granted.ID}); err != nil {
		return err
	}
	_, err = b.lease.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: granted.ID})
	return err
}

// repeat makes requests until ctx ends, and records those that fail and the one that takes longest.
func repeat(ctx context.Context, t *testing.T, what string, request func(ctx context.Context, n int) error) {
	longest, n, began := time.Duration(0), 0, time.Now()
	for ; ctx.Err() == nil; n++ {
		limited, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		at := time.Now()
		err := request(limited, n)
		cancel()
		longest = max(longest, time.Since(at))
		if err != nil {
			t.Errorf("%s %d, %s after the beginning and after %s: %v", what, n, time.Since(began), time.Since(at), err)
			return
		}
	}
	t.Logf("%s: %d, the longest %s", what, n, longest)
}

// follow watches what all members' clients put, and requires each value once and in order. It returns when it has seen
// the last one, which is "end".
func (b *bare) follow(t *testing.T, clients int) {
	stream, err := b.watch.Watch(t.Context())
	if err == nil {
		err = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{
			CreateRequest: &pb.WatchCreateRequest{Key: []byte("put"), RangeEnd: []byte("puu"), StartRevision: 1}}})
	}
	for next := map[string]int{}; err == nil; {
		var r *pb.WatchResponse
		if r, err = stream.Recv(); err != nil || r.Canceled {
			break
		}
		for _, e := range r.Events {
			key := string(e.Kv.Key)
			switch wanted := sized(strconv.Itoa(next[key])+" ", 10); string(e.Kv.Value) {
			case "end":
				if clients--; clients == 0 {
					return
				}
			case wanted:
				next[key]++
			default:
				t.Errorf("the watch at %s has %s=%s and not %s", b.key, key, e.Kv.Value, wanted)
				return
			}
		}
	}
	t.Errorf("the watch at %s ended: %v", b.key, err)
}

// TestClientsSeeNoSwitch: while the protocol changes all the time, no request fails at any member, of clients that
// repeat none, and no watch ends or misses an event.
func TestClientsSeeNoSwitch(t *testing.T) {
	t.Parallel()
	d := cmp.Or(*calmFor, testsize.Pick(testsize.Processes, time.Second, 4*time.Second, 20*time.Second))
	for name, auth := range map[string]bool{"open": false, "auth": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clientsSeeNoSwitch(t, d, auth)
		})
	}
}

func clientsSeeNoSwitch(t *testing.T, d time.Duration, auth bool) {
	c := up(t, dataDir(t))
	var user []string
	if auth {
		enableAuth(t, c.endpoints[0])
		user = []string{"--user=root:r"}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients, watchers sync.WaitGroup
	all := make([]*bare, len(c.endpoints))
	for i, endpoint := range c.endpoints {
		b := newBare(t, endpoint, auth)
		all[i] = b
		watchers.Go(func() { b.follow(t, len(all)) })
		for what, request := range b.requests() {
			clients.Go(func() { repeat(ctx, t, what+" at "+endpoint, request) })
		}
	}
	switches := 0
	for end := time.Now().Add(d); time.Now().Before(end); {
		for _, protocol := range []string{"multi-paxos", "iss", "niagara", "craft", "lcr", "raft"} {
			switches++
			at := c.endpoints[switches%len(all)]
			ok(t, append([]string{"switch", protocol, "--json", "--endpoints", at}, user...)...)
		}
	}
	cancel()
	clients.Wait()
	for _, b := range all {
		_, err := b.kv.Put(t.Context(), &pb.PutRequest{Key: []byte("put" + b.key), Value: []byte("end")})
		require.NoError(t, err)
	}
	watchers.Wait()
	t.Logf("%d switches in %s", switches, d)
}
