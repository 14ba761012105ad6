package server

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid"
)

// TestMetricsOfEtcd are those that its dashboards and alert rules use, with labels.
func TestMetricsOfEtcd(t *testing.T) {
	f := start(t, func(c *Config) {
		c.ExtensiveMetrics = true
		c.Features = []Feature{{Name: "InitialCorruptCheck", Stage: "BETA", On: true},
			{Name: "PriorityRequest", Stage: "ALPHA"}}
	})
	ctx := testContext(t)
	_, err := f.client.Put(ctx, "k", "v")
	require.NoError(t, err)
	_, err = f.client.Txn(ctx).Then(clientv3.OpGet("k")).Commit()
	require.NoError(t, err)
	_, err = f.client.Txn(ctx).Then(clientv3.OpPut("k", "w")).Commit()
	require.NoError(t, err)
	_, err = f.kvClient().Put(ctx, &pb.PutRequest{})
	require.Error(t, err)
	code, _ := f.fetch(t, "/readyz")
	require.Equal(t, http.StatusOK, code)
	f.fake.set(func(l *fakeLog) { l.barrier = braid.ErrNoLeader })
	code, _ = f.fetch(t, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)

	_, body := f.fetch(t, "/metrics")
	for _, want := range []string{
		`etcd_server_request_duration_seconds_count{success="true",type="Put"} 1`,
		`etcd_server_request_duration_seconds_count{success="true",type="Txn"} 1`,
		`etcd_server_request_duration_seconds_count{success="true",type="ReadonlyTxn"} 1`,
		`etcd_server_apply_duration_seconds_count{op="Put",success="true",version="v3"}`,
		`grpc_server_handling_seconds_count{grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"} 2`,
		`etcd_server_feature_enabled{name="InitialCorruptCheck",stage="BETA"} 1`,
		`etcd_server_feature_enabled{name="PriorityRequest",stage="ALPHA"} 0`,
		`etcd_server_healthcheck{name="linearizable_read",type="readyz"} 0`,
		`etcd_server_healthchecks_total{name="linearizable_read",status="success",type="readyz"} 1`,
		`etcd_server_healthchecks_total{name="linearizable_read",status="error",type="readyz"} 1`,
		"etcd_server_learner_promote_successes 0", "os_fd_used ", "etcd_disk_wal_write_bytes_total ",
	} {
		require.True(t, strings.Contains(body, want), "%s", want)
	}

	_, body = start(t).fetch(t, "/metrics")
	require.NotContains(t, body, "grpc_server_handling_seconds")
	require.NotContains(t, body, `etcd_server_request_duration_seconds_count{success="false",type="Put"} 1`,
		"it was refused")
}

// TestSlowRequestsAreLogged: one a second, with its key and without its value, and how many others there were.
func TestSlowRequestsAreLogged(t *testing.T) {
	var out bytes.Buffer
	began := time.Unix(1_800_000_000, 0)
	s := &slowRequests{logger: slog.New(slog.NewTextHandler(&out, nil)), above: time.Second, base: began}
	put := &pb.PutRequest{Key: []byte("key"), Value: []byte("secret")}
	s.note(t.Context(), "/etcdserverpb.KV/Put", put, nil, began, time.Second)
	require.Empty(t, out.String())
	for i := range 4 {
		s.note(t.Context(), "/etcdserverpb.KV/Put", put, errDamaged, began.Add(time.Duration(i)*400*time.Millisecond),
			2*time.Second)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	for _, part := range []string{"level=WARN", `msg="request took long"`, "method=/etcdserverpb.KV/Put", "took=2s",
		"above=1s", "bytes=13", "key=key", "err="} {
		require.Contains(t, lines[0], part)
	}
	require.NotContains(t, out.String(), "secret")
	require.NotContains(t, lines[0], "others")
	require.Contains(t, lines[1], "others=2")
}
