package bench

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

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
		{grpcstatus.Error(codes.ResourceExhausted, "grpc: received message larger than max (16777231 vs. 2097152)"),
			"--max-request-bytes"},
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

// Started servers keep etcd's limits unless the load needs more.
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
