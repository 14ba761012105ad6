package server

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/server/internal/page"
)

// fetch gets a path and returns status and body.
func (f *fixture) fetch(t testing.TB, path string) (int, string) {
	t.Helper()
	return do(t, http.DefaultClient, http.MethodGet, "http://"+f.addr+path, nil)
}

func do(t testing.TB, c *http.Client, method, url string, body io.Reader) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(testContext(t), method, url, body)
	require.NoError(t, err)
	req.Close = true
	resp, err := c.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(got)
}

func TestHTTPEndpoints(t *testing.T) {
	f := start(t)
	_, err := f.client.Put(testContext(t), "k", "v")
	require.NoError(t, err)
	for path, want := range map[string]string{
		"/version":                  `{"etcdserver":"3.7.3","etcdcluster":"3.7.0","storage":"3.7.0"}`,
		"/health":                   `{"health":"true","reason":""}`,
		"/health?serializable=true": `{"health":"true","reason":""}`,
		"/livez":                    "ok\n",
		"/readyz":                   "ok\n",
		"/readyz?verbose": "[+]data_corruption ok\n[+]serializable_read ok\n[+]linearizable_read " +
			"ok\n[+]non_learner ok\nok\n",
		"/readyz/linearizable_read": "ok\n",
	} {
		code, body := f.fetch(t, path)
		require.Equal(t, http.StatusOK, code, path)
		require.Equal(t, want, body, path)
	}
	code, _ := f.fetch(t, "/nowhere")
	require.Equal(t, http.StatusNotFound, code)
	code, _ = do(t, http.DefaultClient, http.MethodPost, "http://"+f.addr+"/health", nil)
	require.Equal(t, http.StatusMethodNotAllowed, code)
}

func TestUnhealthy(t *testing.T) {
	f := start(t)
	f.fake.set(func(l *fakeLog) { l.leader, l.barrier = 0, braid.ErrReadTimeout })
	eventually(t, "the loss of the leader", func() bool { return f.self.Load().leader == 0 })
	code, body := f.fetch(t, "/health")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.JSONEq(t, `{"health":"false","reason":"RAFT NO LEADER"}`, body)
	code, body = f.fetch(t, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Contains(t, body, "[-]linearizable_read failed: ")
	code, _ = f.fetch(t, "/readyz?exclude=linearizable_read")
	require.Equal(t, http.StatusOK, code)
	code, _ = f.fetch(t, "/livez")
	require.Equal(t, http.StatusOK, code)
	f.fake.set(func(l *fakeLog) { l.leader, l.barrier = 0x10, nil })
}

// TestReady: the status, its page and /readyz agree. What counts is whether the member gets level in time, not that
// something is always waiting to be applied.
func TestReady(t *testing.T) {
	f := start(t)
	says := func(ready bool) {
		t.Helper()
		want := map[bool]int{true: http.StatusOK, false: http.StatusServiceUnavailable}[ready]
		code, body := f.fetch(t, "/readyz")
		require.Equal(t, want, code, body)
		_, body = f.fetch(t, "/braid/status")
		require.Contains(t, body, fmt.Sprintf(`"ready":%v,`, ready))
	}
	says(true)
	f.fake.set(func(l *fakeLog) {
		l.amend = func(st *braid.Status) { st.Progress[0].Waiting = 5 }
	})
	says(true)
	f.fake.set(func(l *fakeLog) { l.barrier = braid.ErrReadTimeout })
	says(false)
	f.fake.set(func(l *fakeLog) { l.barrier, l.leader = nil, 0 })
	says(false)
	f.fake.set(func(l *fakeLog) { l.leader = 0x10 })
	says(true)
	for _, ready := range []bool{false, true} {
		action := pb.AlarmRequest_ACTIVATE
		if ready {
			action = pb.AlarmRequest_DEACTIVATE
		}
		_, err := pb.NewMaintenanceClient(f.client.ActiveConnection()).Alarm(testContext(t),
			&pb.AlarmRequest{Action: action, MemberID: 0x10, Alarm: pb.AlarmType_CORRUPT})
		require.NoError(t, err)
		says(ready)
	}
}

func TestMetrics(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	for range 5 {
		_, err := f.client.Put(ctx, "k", "v")
		require.NoError(t, err)
	}
	_, err := f.kvClient().Put(ctx, &pb.PutRequest{})
	require.Error(t, err)
	code, body := f.fetch(t, "/metrics")
	require.Equal(t, http.StatusOK, code)
	for _, want := range []string{
		"etcd_server_has_leader 1", "etcd_server_is_leader 1", "etcd_server_leader_changes_seen_total 1",
		"etcd_server_proposals_committed_total ", "etcd_server_proposals_applied_total ", "etcd_server_proposals_pending 0",
		"etcd_server_proposals_failed_total 0", `etcd_server_id{server_id="10"} 1`,
		`etcd_server_version{server_version="3.7.3"} 1`,
		`grpc_server_handled_total{grpc_code="OK",grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"} 5`,
		`grpc_server_handled_total{grpc_code="InvalidArgument",` +
			`grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"} 1`,
		`grpc_server_started_total{grpc_method="Put",grpc_service="etcdserverpb.KV",grpc_type="unary"} 6`,
		`etcd_server_client_requests_total{client_api_version="3.7",type="unary"}`,
		`braid_term{instance="1"} 2`, `braid_members{role="voter"} 1`,
		"etcd_mvcc_put_total", "etcd_disk_backend_commit_duration_seconds_count", // of etcd's own packages
	} {
		require.True(t, strings.Contains(body, want), want)
	}
}

func TestStatusPage(t *testing.T) {
	f := start(t)
	eventually(t, "the name", func() bool { return f.view(testContext(t)).Members[0].Name == "one" })
	code, body := f.fetch(t, "/")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "/dash/main.js")
	require.NotContains(t, body, "one", "it has no data")
	code, body = f.fetch(t, "/braid/status")
	require.Equal(t, http.StatusOK, code)
	var v page.View
	require.NoError(t, json.Unmarshal([]byte(body), &v))
	require.True(t, v.IsLeader && v.Ready)
	require.Equal(t, "10", v.Leader)
	require.Equal(t, "one", v.Members[0].Name)
}

func TestStatusOfLargeValues(t *testing.T) {
	f := start(t)
	eventually(t, "the name", func() bool { return f.view(testContext(t)).Members[0].Name == "one" })
	f.fake.set(func(l *fakeLog) {
		l.members = append(l.members, braid.Member{ID: 0x20, Name: "two"})
		l.amend = func(st *braid.Status) {
			st.Placement = braid.PlacementCode
			b := &st.Bodies
			b.Held, b.Missing, b.LiveBytes, b.TotalBytes, b.Failing = 3, 1, 300, 1000, io.ErrUnexpectedEOF
			b.Fetched, b.Served, b.Corrupt, b.Repaired, b.Trimmed = 4, 5, 6, 7, 8
			b.Short = 9
			d := &st.Disk
			d.Rounds, d.Scrubbed, d.Damaged, d.Mended, d.Failing = 2, 900, 5, 4, io.ErrShortWrite
			in := &st.Instances[0]
			in.K, in.Preparing, in.Lacking, in.Restriping = 2, 9, true, 1
			in.Peers = []protocol.PeerStatus{{ID: 0x20, Lacking: true}}
		}
	})
	v := f.view(testContext(t))
	require.Equal(t, "code", v.Placement)
	require.Equal(t, page.Bodies{
		Held: 3, Missing: 1, Short: 9, LiveBytes: 300, TotalBytes: 1000, Fetched: 4, Served: 5, Corrupt: 6, Repaired: 7,
		Trimmed: 8, Failing: "unexpected EOF",
	}, v.Bodies)
	require.Equal(t, page.Disk{Rounds: 2, Damaged: 5, Mended: 4, Failing: "short write"}, v.Disk)
	require.Equal(t, []any{uint8(2), 9, true, 1}, []any{v.Instances[0].K, v.Instances[0].Preparing, v.Instances[0].Lacking,
		v.Instances[0].Restriping})
	require.Nil(t, v.Members[0].Lacking)
	require.True(t, *v.Members[1].Lacking)

	_, metrics := f.fetch(t, "/metrics")
	for _, want := range []string{
		"braid_bodies_held 3", "braid_bodies_missing 1", "braid_bodies_live_bytes 300", "braid_bodies_file_bytes 1000",
		"braid_bodies_fetched_total 4", "braid_bodies_served_total 5", "braid_bodies_corrupt_total 6",
		"braid_bodies_repaired_total 7",
		"braid_bodies_trimmed_total 8", `braid_code_k{instance="1"} 2`, `braid_preparing_bodies{instance="1"} 9`,
		"braid_bodies_short 9", "braid_scrub_rounds_total 2", "braid_scrub_bytes_total 900", "braid_disk_damaged_total 5",
		"braid_disk_mended_total 4", `braid_restriping_members{instance="1"} 1`,
		`braid_peer_lacking{instance="1",member="20"} 1`,
	} {
		require.Contains(t, metrics, "\n"+want+"\n")
	}
}

func TestStatusOfLanes(t *testing.T) {
	f := start(t)
	eventually(t, "the name", func() bool { return f.view(testContext(t)).Members[0].Name == "one" })
	require.Nil(t, f.view(testContext(t)).Instances[0].Lanes)
	_, metrics := f.fetch(t, "/metrics")
	require.NotContains(t, metrics, "braid_lane_")

	own, older := protocol.Lane{Member: 0x10, Incarnation: 4}, protocol.Lane{Member: 0x10, Incarnation: 3}
	f.fake.set(func(l *fakeLog) {
		l.amend = func(st *braid.Status) {
			st.Instances[0].Lanes = &protocol.LanesStatus{
				Own: own, Open: true, Accepted: 7, Generation: 2, Accepting: true, Fence: true, Window: 1000,
				Lanes: []protocol.LaneStatus{
					{Lane: older, Confirmed: 1, Durable: 2, Held: 2, HeldBytes: 30},
					{Lane: own, Confirmed: 6, Durable: 7, Held: 8, HeldBytes: 40},
					{Lane: protocol.Lane{Member: 0x20, Incarnation: 1}, Confirmed: 5, Durable: 5, Held: 5},
				},
				Counts: protocol.LaneCounts{SentBytes: 11, ReceivedBytes: 12, SparedBytes: 13, WholeGroups: 14, WholeBytes: 15,
					Missed: 16, Refused: 17},
			}
		}
	})
	require.Equal(t, &page.Lanes{
		Open: true, Accepted: 7, Generation: 2, Accepting: true, Fence: true, WindowBytes: 1000,
		Lanes: []page.Lane{
			{Member: "10", Life: 3, Confirmed: 1, Durable: 2, Held: 2, HeldBytes: 30},
			{Member: "10", Life: 4, Own: true, Confirmed: 6, Durable: 7, Held: 8, HeldBytes: 40},
			{Member: "20", Life: 1, Confirmed: 5, Durable: 5, Held: 5},
		},
		SentBytes: 11, ReceivedBytes: 12, SparedBytes: 13, WholeGroups: 14, WholeBytes: 15, Missed: 16, Refused: 17,
	}, f.view(testContext(t)).Instances[0].Lanes)
	_, metrics = f.fetch(t, "/metrics")
	for want, n := range map[string]int{
		"open": 1, "generation": 2, "accepting": 1, "fence": 1, "window_bytes": 1000, "accepted_number": 7,
		"sent_bytes_total": 11, "received_bytes_total": 12,
		"spared_bytes_total": 13, "whole_groups_total": 14, "whole_bytes_total": 15, "missed_total": 16, "refused_total": 17,
	} {
		require.Contains(t, metrics, fmt.Sprintf("\nbraid_lane_%s{instance=\"1\"} %d\n", want, n))
	}
	for want, n := range map[string]int{"confirmed_number": 6, "durable_number": 7, "held_number": 8, "held_bytes": 70} {
		require.Contains(t, metrics, fmt.Sprintf("\nbraid_lane_%s{instance=\"1\",member=\"10\"} %d\n", want, n))
	}
}

func TestStatusOfEpochs(t *testing.T) {
	f := start(t)
	eventually(t, "the name", func() bool { return f.view(testContext(t)).Members[0].Name == "one" })
	require.Nil(t, f.view(testContext(t)).Instances[0].Epoch)
	_, metrics := f.fetch(t, "/metrics")
	require.NotContains(t, metrics, "braid_epoch_")

	f.fake.set(func(l *fakeLog) {
		l.amend = func(st *braid.Status) {
			st.Instances[0].Epoch = &protocol.EpochStatus{
				Number: 7, First: 100, Last: 117, Ending: true, Unsettled: true, Banned: []braid.MemberID{0x30},
				BannedUntil: []uint64{74}, Slots: 99, Skipped: 33,
				Segments: []protocol.SegmentStatus{
					{Leader: 0x10, Last: 116, Decided: 103, Slots: 9, Skipped: 2},
					{Leader: 0x20, Last: 117, Decided: 110, Slots: 9, Skipped: 5, Ballot: 2, By: 0x30}, {Leader: 0x40, Ballot: 3},
				},
			}
		}
	})
	require.Equal(t, &page.Epoch{
		Number: 7, First: 100, Last: 117, Ending: true, Unsettled: true, Banned: []string{"30"}, Until: []uint64{74},
		Slots: 99, Skipped: 33,
		Segments: []page.Segment{
			{Leader: "10", Last: 116, Decided: 103, Slots: 9, Skipped: 2},
			{Leader: "20", Last: 117, Decided: 110, Slots: 9, Skipped: 5, Ballot: 2, By: "30"}, {Leader: "40", Ballot: 3},
		},
	}, f.view(testContext(t)).Instances[0].Epoch)
	_, metrics = f.fetch(t, "/metrics")
	for want, n := range map[string]int{
		"epoch_number": 7, "epoch_leaders": 3, "epoch_banned": 1, "epoch_unsettled": 1, "epoch_slots_total": 99,
		"epoch_skipped_total": 33,
	} {
		require.Contains(t, metrics, fmt.Sprintf("\nbraid_%s{instance=\"1\"} %d\n", want, n))
	}
	for want, n := range map[string]int{"epoch_leads": 1, "segment_decided_index": 110, "segment_last_index": 117,
		"segment_ballot": 2} {
		require.Contains(t, metrics, fmt.Sprintf("\nbraid_%s{instance=\"1\",member=\"20\"} %d\n", want, n))
	}
	require.Contains(t, metrics, "\nbraid_epoch_leads{instance=\"1\",member=\"30\"} 0\n")
}

func TestGateway(t *testing.T) {
	f := start(t)
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	post := func(path, body string) (int, string) {
		return do(t, http.DefaultClient, http.MethodPost, "http://"+f.addr+path, strings.NewReader(body))
	}
	code, body := post("/v3/kv/put", `{"key":"`+b64("k")+`","value":"`+b64("v")+`"}`)
	require.Equal(t, http.StatusOK, code, body)
	code, body = post("/v3/kv/range", `{"key":"`+b64("k")+`"}`)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, `"value":"`+b64("v")+`"`)
	code, body = post("/v3/kv/put", `{}`)
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, body, "key is not provided")
	code, _ = post("/v3/kv/put", `{"key":`)
	require.Equal(t, http.StatusBadRequest, code)

	asked, err := http.NewRequestWithContext(testContext(t), http.MethodPost, "http://"+f.addr+"/v3/kv/put",
		strings.NewReader(`{"key":"`+b64("l")+`"}`))
	require.NoError(t, err)
	asked.Header.Set("Grpc-Metadata-Braid-Mode", modeAccepted)
	put, err := http.DefaultClient.Do(asked)
	require.NoError(t, err)
	require.NoError(t, put.Body.Close())
	require.Equal(t, modeConfirmed, put.Header.Get("Grpc-Metadata-Braid-Mode"), "this log answers nothing early")

	req, err := http.NewRequestWithContext(testContext(t), http.MethodPost, "http://"+f.addr+"/v3/watch",
		strings.NewReader(`{"create_request":{"key":"`+b64("k")+`","start_revision":"2"}}`))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	require.True(t, lines.Scan())
	require.Contains(t, lines.Text(), `"created":true`)
	require.True(t, lines.Scan())
	require.Contains(t, lines.Text(), `"mod_revision":"2"`)
}

// Whatever comes in on the client port: it ends or waits alone, and others are served.
func TestGarbageOnTheClientPort(t *testing.T) {
	f := start(t)
	ctx := testContext(t)
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	for name, bytes := range map[string][]byte{
		"nothing":              nil,
		"noise":                []byte("\x00\xff\x13\x37 not a protocol \r\n\r\n"),
		"half a preface":       []byte("PRI * HT"),
		"preface and noise":    []byte(preface + strings.Repeat("\xff", 100)),
		"half a frame":         []byte(preface + "\x00\x00\x10\x01\x04"),
		"huge frame announced": []byte(preface + "\xff\xff\xff\x00\x00\x00\x00\x00\x01"),
		"half a request":       []byte("GET /health HTTP/1.1\r\nHost: x\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", f.addr)
			require.NoError(t, err)
			defer conn.Close()
			_, err = conn.Write(bytes)
			require.NoError(t, err)
			_, err = f.client.Put(ctx, "k", "v")
			require.NoError(t, err)
		})
	}
	conn := f.client.ActiveConnection()
	err := conn.Invoke(ctx, "/etcdserverpb.KV/Put", &pb.WatchProgressRequest{}, &pb.PutResponse{})
	requireStatus(t, rpctypes.ErrGRPCEmptyKey, err)
	require.Error(t, conn.Invoke(ctx, "/etcdserverpb.KV/Nothing", &pb.PutRequest{}, &pb.PutResponse{}))
	require.Error(t, conn.Invoke(ctx, "/nowhere/at.all", &pb.PutRequest{}, &pb.PutResponse{}))
}

func TestTLS(t *testing.T) {
	ca, pair := certificate(t, "server")
	_, clientPair := certificate(t, "reader")
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	clients := x509.NewCertPool()
	clients.AddCert(clientPair.Leaf)
	// A server with TLS on its only port, and metrics without.
	l2, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	secure := start(t, func(c *Config) {
		c.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients,
			ClientAuth: tls.VerifyClientCertIfGiven}
		c.ListenMetrics = []net.Listener{l2}
		c.Store.ClientCertAuth = true
	})
	ctx := testContext(t)
	trusting := &tls.Config{RootCAs: pool, ServerName: "localhost"}
	secure.tls = trusting
	c := secure.dial(t, clientv3.Config{})
	_, err = c.Put(ctx, "k", "v")
	require.NoError(t, err)
	for _, http2 := range []bool{false, true} { // a browser offers both
		web := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting.Clone(), ForceAttemptHTTP2: http2}}
		code, body := do(t, web, http.MethodGet, "https://"+secure.addr+"/health", nil)
		require.Equal(t, http.StatusOK, code, body)
	}
	code, body := do(t, http.DefaultClient, http.MethodGet, "http://"+l2.Addr().String()+"/metrics", nil)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "etcd_server_has_leader 1")

	// The certificate's name is a user.
	secure.client = c
	root, _ := secure.enableAuth(t, ctx)
	named := trusting.Clone()
	named.Certificates = []tls.Certificate{clientPair}
	reader := secure.dial(t, clientv3.Config{TLS: named})
	_, err = root.Put(ctx, "r", "v")
	require.NoError(t, err)
	got, err := reader.Get(ctx, "r")
	require.NoError(t, err)
	require.Len(t, got.Kvs, 1)
	_, err = reader.Put(ctx, "r", "w")
	require.ErrorIs(t, err, rpctypes.ErrPermissionDenied)
	for _, http2 := range []bool{false, true} {
		for config, want := range map[*tls.Config]int{trusting: http.StatusUnauthorized, named: http.StatusOK} {
			web := &http.Client{Transport: &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: http2}}
			code, body := do(t, web, http.MethodGet, "https://"+secure.addr+"/braid/status", nil)
			require.Equal(t, want, code, body)
		}
	}
}

// TestProtocolsOverTLS: a client that offers HTTP/2 gets it, whatever else it offers and in
// which order, and with it gRPC and everything else; one that does not gets HTTP/1.1.
func TestProtocolsOverTLS(t *testing.T) {
	ca, pair := certificate(t, "server")
	_, clientPair := certificate(t, "root")
	pool, clients := x509.NewCertPool(), x509.NewCertPool()
	pool.AddCert(ca)
	clients.AddCert(clientPair.Leaf)
	f := start(t, func(c *Config) {
		c.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients,
			ClientAuth: tls.VerifyClientCertIfGiven}
		c.Store.ClientCertAuth = true
	})
	trusting := &tls.Config{RootCAs: pool, ServerName: "localhost"}
	f.tls = trusting
	f.client = f.dial(t, clientv3.Config{})
	ctx := testContext(t)
	f.enableAuth(t, ctx)
	for _, s := range []struct {
		offered []string
		want    string
	}{
		{nil, ""},
		{[]string{"http/1.1"}, "http/1.1"},
		{[]string{"h2"}, "h2"},
		{[]string{"h2", "http/1.1"}, "h2"},
		{[]string{"http/1.1", "h2"}, "h2"},
		{[]string{"grpc-exp", "h2"}, "h2"},
	} {
		t.Run(strings.Join(s.offered, " "), func(t *testing.T) {
			offers := trusting.Clone()
			offers.NextProtos, offers.Certificates = s.offered, []tls.Certificate{clientPair}
			conn, err := tls.Dial("tcp", f.addr, offers)
			require.NoError(t, err)
			defer conn.Close()
			require.Equal(t, s.want, conn.ConnectionState().NegotiatedProtocol)
			if s.want != "h2" {
				_, err = io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
				require.NoError(t, err)
				line, err := bufio.NewReader(conn).ReadString('\n')
				require.NoError(t, err)
				require.Equal(t, "HTTP/1.1 200 OK\r\n", line)
				return
			}
			// gRPC, with a stream, and with the certificate's name as the user.
			c := f.dial(t, clientv3.Config{TLS: offers})
			_, err = c.Put(ctx, "k", "v")
			require.NoError(t, err)
			watching, cancel := context.WithCancel(ctx)
			defer cancel()
			require.NotEmpty(t, (<-c.Watch(watching, "k", clientv3.WithRev(2))).Events)
			_, err = f.dial(t, clientv3.Config{TLS: trusting}).Put(ctx, "k", "v")
			require.ErrorContains(t, err, "user name is empty")
		})
	}
	for _, version := range []int{1, 2} {
		web := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting.Clone(), ForceAttemptHTTP2: version == 2}}
		for _, path := range []string{"/livez", "/metrics", "/readyz", "/version"} {
			resp, err := web.Get("https://" + f.addr + path)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			require.Equal(t, version, resp.ProtoMajor)
			require.Equal(t, http.StatusOK, resp.StatusCode)
			require.NoError(t, resp.Body.Close())
		}
		resp, err := web.Post("https://"+f.addr+"/v3/kv/range", "application/json", strings.NewReader(`{"key":"aw=="}`))
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Contains(t, string(body), "user name is empty", "the gateway answers, as a stranger")
		web.CloseIdleConnections()

		// A certificate that names a user does not make a JSON call that user's.
		named := trusting.Clone()
		named.Certificates = []tls.Certificate{clientPair}
		web = &http.Client{Transport: &http.Transport{TLSClientConfig: named, ForceAttemptHTTP2: version == 2}}
		for path, want := range map[string]int{"/v3/kv/range": http.StatusBadRequest, "/version": http.StatusOK} {
			method, body := http.MethodPost, io.Reader(strings.NewReader(`{"key":"aw=="}`))
			if want == http.StatusOK {
				method, body = http.MethodGet, nil
			}
			status, text := do(t, web, method, "https://"+f.addr+path, body)
			require.Equal(t, want, status, text)
		}
	}
}

// certificate makes a self-signed certificate.
func certificate(t testing.TB, name string) (*x509.Certificate, tls.Certificate) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return leaf, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}
