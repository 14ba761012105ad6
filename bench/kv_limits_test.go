package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/braidlog/braid/bench/workload"
)

func TestRefusalOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string // "": none
	}{
		{rpctypes.ErrGRPCRequestTooLarge, "--max-request-bytes"},
		{grpcstatus.Error(codes.ResourceExhausted, "grpc: received message larger than max (16777231 vs. 2097152)"), "--max-request-bytes"},
		{fmt.Errorf("%w: 413", errMapTooLarge), "--max-request-bytes"},
		{rpctypes.ErrGRPCNoSpace, "--quota-backend-bytes"},
		{rpctypes.ErrGRPCNoLeader, ""},
		{rpctypes.ErrGRPCRequestTooManyRequests, ""},
		{context.DeadlineExceeded, ""},
		{nil, ""},
	} {
		if got := refusalOf(c.err); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}

// Servers that are started keep etcd's limits unless the load needs more.
func TestServerLimits(t *testing.T) {
	etcd, mapped := &ServerKind{}, &ServerKind{API: MapAPI}
	for _, c := range []struct {
		kind  *ServerKind
		bytes int
		want  []string
	}{
		{etcd, 100, nil},
		{etcd, 16 << 10, []string{"--quota-backend-bytes", "8589934592"}},
		{etcd, 1 << 20, []string{"--quota-backend-bytes", "8589934592"}},
		{etcd, 16 << 20, []string{"--max-request-bytes", "16842760", "--quota-backend-bytes", "8589934592"}},
		{mapped, 16 << 20, nil},
	} {
		load := kvLoad()
		load.Workload.Values = workload.Sizes{Min: 1, Max: c.bytes}
		if got := c.kind.limits(&load); !slices.Equal(got, c.want) {
			t.Errorf("values up to %d bytes: %v, want %v", c.bytes, got, c.want)
		}
	}
}

func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{"a": "b", "check/": "check0", "a\xff": "b", "\xff\xff": "\x00"} {
		if got := prefixEnd(prefix); !bytes.Equal(got, []byte(want)) {
			t.Errorf("%q: %q, want %q", prefix, got, want)
		}
	}
}

// The keys of a run are removed also when it fails, and others are not.
func TestKVRemovesItsKeys(t *testing.T) {
	s := startEtcd(t, 1)
	conn, err := connect(s.Endpoints[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	kv := etcdserverpb.NewKVClient(conn)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := kv.Put(ctx, &etcdserverpb.PutRequest{Key: []byte("mine0"), Value: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	c := kvLoad()
	c.Endpoints, c.KeyPrefix, c.KeySize, c.RemoveKeys, c.Warmup, c.Duration, c.Total = s.Endpoints, "mine/", 10, true, 0, 0, 300
	check := func(what string) {
		t.Helper()
		r, err := kv.Range(ctx, &etcdserverpb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}})
		if err != nil || r.Count != 1 || string(r.Kvs[0].Key) != "mine0" {
			t.Errorf("%s: error %v, keys %v", what, err, r)
		}
	}
	if r, err := RunKV(ctx, c); err != nil || r.KeysLeft != "" || r.Commands != 300 {
		t.Errorf("error %v, result %+v", err, r)
	}
	check("after a run")

	c.Workload.Values, c.Duration, c.Total = workload.Sizes{Min: 1, Max: 4 << 20}, 5*time.Minute, 0
	var refused *RefusedError
	if _, err := RunKV(ctx, c); !errors.As(err, &refused) {
		t.Errorf("error %v, want that the servers refuse large values", err)
	}
	check("after a run that failed")

	c.KeyPrefix = ""
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "no prefix") {
		t.Errorf("removing everything: error %v", err)
	}
}
