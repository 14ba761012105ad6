package status

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const metrics = `# TYPE etcd_network_peer_sent_bytes_total counter
etcd_network_peer_sent_bytes_total{To="a"} 16
etcd_network_peer_sent_bytes_total{To="b"} 20
# TYPE etcd_network_peer_received_bytes_total counter
etcd_network_peer_received_bytes_total{From="a"} 5
# TYPE etcd_disk_wal_fsync_duration_seconds histogram
etcd_disk_wal_fsync_duration_seconds_bucket{le="+Inf"} 4
etcd_disk_wal_fsync_duration_seconds_sum 0.5
etcd_disk_wal_fsync_duration_seconds_count 4
`

// fake is a member with a given answer.
func fake(t *testing.T, m *Member) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/braid/status":
			json.NewEncoder(w).Encode(m)
		case "/metrics":
			w.Write([]byte(metrics))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestAskFindsTheOthers(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	var one, two Member
	first, second := fake(t, &one), fake(t, &two)
	all := []Peer{
		{ID: "1", Name: "m1", Role: "leader", ClientURLs: []string{first.URL}},
		{ID: "2", Name: "m2", Role: "learner", ClientURLs: []string{second.URL}},
		{ID: "3", Name: "m3", Role: "follower", ClientURLs: []string{gone.URL}},
	}
	one = Member{Name: "m1", ID: "1", Ready: true, IsLeader: true, Members: all}
	two = Member{Name: "m2", ID: "2", Ready: true, Members: all}

	got := Ask(t.Context(), Options{Endpoints: []string{second.URL}, Timeout: 5 * time.Second})
	require.Len(t, got, 3)
	require.Contains(t, got[2].Error, "refused")
	require.Equal(t, "m3", got[2].Name, "others know the name of a member that does not answer")
	require.Equal(t, "m1", got[0].Name)
	require.Equal(t, "braid", got[0].Kind)
	require.Empty(t, got[0].Error)
	require.EqualValues(t, 36, got[0].SentBytes)
	require.EqualValues(t, 5, got[0].ReceivedBytes)
	require.EqualValues(t, 4, got[0].Fsyncs)
	require.Equal(t, 0.5, got[0].FsyncSeconds)
	require.True(t, got[1].Learner)

	require.Len(t, Ask(t.Context(), Options{Endpoints: []string{second.URL}, Only: true, Timeout: 5 * time.Second}), 1)
	require.Len(t,
		Ask(t.Context(), Options{Endpoints: []string{second.URL, second.URL}, Only: true, Timeout: 5 * time.Second}), 1)
}

func TestAskOfSomethingElse(t *testing.T) {
	other := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) }))
	defer other.Close()
	got := Ask(t.Context(), Options{Endpoints: []string{other.URL}, Timeout: 5 * time.Second})
	require.Len(t, got, 1)
	require.Contains(t, got[0].Error, "/braid/status")

	empty := httptest.NewServer(http.NotFoundHandler())
	defer empty.Close()
	got = Ask(t.Context(), Options{Endpoints: []string{empty.URL}, Timeout: 500 * time.Millisecond})
	require.Len(t, got, 1)
	require.NotEmpty(t, got[0].Error) // neither braid nor etcd
}

func TestBytes(t *testing.T) {
	for n, want := range map[float64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 5 << 30: "5 GiB",
		1 << 60: "1048576 TiB"} {
		require.Equal(t, want, Bytes(n))
	}
}

// TestAskNeverWeakensTLS listens for the first byte that comes: 0x16 begins a TLS handshake.
func TestAskNeverWeakensTLS(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	first := make(chan byte, 16)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			var b [1]byte
			if _, err := io.ReadFull(conn, b[:]); err == nil {
				first <- b[0]
			}
			conn.Close()
		}
	}()
	for _, c := range []struct {
		scheme string
		tls    *tls.Config
		secure bool
	}{
		{"", nil, false}, {"http://", nil, false}, {"http://", &tls.Config{}, false},
		{"https://", nil, true}, {"https://", &tls.Config{}, true}, {"", &tls.Config{}, true},
	} {
		got := Ask(t.Context(), Options{Endpoints: []string{c.scheme + l.Addr().String()}, TLS: c.tls,
			Timeout: 5 * time.Second})
		require.NotEmpty(t, got[0].Error)
		require.Equal(t, c.secure, <-first == 0x16, "%q with TLS %v", c.scheme, c.tls != nil)
		for len(first) > 0 { // retries
			require.Equal(t, c.secure, <-first == 0x16, "%q with TLS %v", c.scheme, c.tls != nil)
		}
	}
}

// TestAskTellsNobodyElse: neither a member that another one names with a plain URL nor one that
// an endpoint redirects to is asked in clear text.
func TestAskTellsNobodyElse(t *testing.T) {
	asked := make(chan string, 4)
	stranger := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	defer stranger.Close()
	member := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case user+":"+password != "root:r:1":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/braid/status":
			json.NewEncoder(w).Encode(
				&Member{Name: "m1", ID: "1", Members: []Peer{{ID: "2", ClientURLs: []string{stranger.URL}}}})
		case r.URL.Path == "/metrics":
			http.Redirect(w, r, stranger.URL, http.StatusFound)
		}
	}))
	defer member.Close()
	roots := x509.NewCertPool()
	roots.AddCert(member.Certificate())
	o := Options{Endpoints: []string{member.URL}, TLS: &tls.Config{RootCAs: roots}, Timeout: 5 * time.Second, User: "root",
		Password: "r:1"}
	got := Ask(t.Context(), o)
	require.Len(t, got, 2)
	require.Contains(t, got[0].Error, "advertises a plain URL")
	require.Equal(t, "m1", got[1].Name)
	require.Contains(t, got[1].Error, "302")
	o.User = ""
	got = Ask(t.Context(), o)
	require.Len(t, got, 1)
	require.Contains(t, got[0].Error, "auth is on")
	require.True(t, got[0].Refused)
	require.Empty(t, asked)
}
