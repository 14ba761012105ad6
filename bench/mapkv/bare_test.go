package mapkv

import (
	"context"
	"encoding/json"
	"net"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// A bare server answers like the service, and stores nothing.
func TestBare(t *testing.T) {
	server := httptest.NewServer(Bare(2, []braid.Member{{ID: 1}, {ID: 2}}))
	defer server.Close()
	for _, r := range []struct {
		method, path string
		code         int
	}{{"PUT", "/kv/a", 204}, {"GET", "/kv/a", 404}, {"POST", "/kv/a", 204}, {"DELETE", "/kv/a", 204}, {"PUT", "/kv/", 400},
		{"GET", "/kv/", 400}} {
		code, _ := ask(t, r.method, server.URL+r.path, "value")
		require.Equal(t, r.code, code, r.method+r.path)
	}
	code, answer := ask(t, "GET", server.URL+"/status", "")
	var s Status
	require.NoError(t, json.Unmarshal([]byte(answer), &s))
	require.Equal(t, 200, code)
	require.Equal(t, Status{Member: "2", Leader: "1", Members: 2, Ready: true}, s)
}

func TestServeBare(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- ServeBare(ctx, l, 1, []braid.Member{{ID: 1}}) }()
	code, _ := ask(t, "PUT", "http://"+l.Addr().String()+"/kv/a", "value")
	require.Equal(t, 204, code)
	cancel()
	require.NoError(t, <-ended)
	require.ErrorContains(t, ServeBare(t.Context(), l, 1, []braid.Member{{ID: 1}}), "closed")
}
