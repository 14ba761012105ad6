package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// served has for every HTTP pattern which clients get an answer. A pattern that is not here fails the test.
var served = []struct {
	pattern   string
	metrics   bool // on listeners for metrics too
	needsUser bool // while auth is on
}{
	{"GET /metrics", true, false},
	{"GET /health", true, false},
	{"GET /livez", true, false},
	{"GET /livez/serializable_read", true, false},
	{"GET /readyz", true, false},
	{"GET /readyz/data_corruption", true, false},
	{"GET /readyz/serializable_read", true, false},
	{"GET /readyz/linearizable_read", true, false},
	{"GET /readyz/non_learner", true, false},
	{"GET /version", false, false},
	{"GET /braid/status", false, true},
	{"GET /braid/cluster", false, true},
	{"GET /{$}", false, false},
	{"GET /dash/", false, false},
	{"GET /debug/vars", false, true},
	{"/v3/", false, false}, // each call checks its user itself
}

// gatewayPaths are some paths under /v3/, of every service.
var gatewayPaths = []string{
	"/v3/kv/put", "/v3/kv/range", "/v3/kv/deleterange", "/v3/kv/txn", "/v3/kv/compaction", "/v3/watch", "/v3/lease/grant",
	"/v3/lease/leases",
	"/v3/cluster/member/list", "/v3/cluster/member/add", "/v3/maintenance/status", "/v3/maintenance/snapshot",
	"/v3/maintenance/hash",
	"/v3/auth/status", "/v3/auth/enable", "/v3/auth/authenticate", "/v3/lock/lock", "/v3/election/leader",
}

// listeners are all listeners of a server except the one for members, whose protocol is another: see
// TestOnlyMembersAreAnswered of package transport.
type listeners struct {
	*fixture
	metrics string // address
	web     *http.Client
}

func startListeners(t *testing.T, secure bool) *listeners {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	out := &listeners{metrics: l.Addr().String(), web: http.DefaultClient}
	var trusting *tls.Config
	change := func(c *Config) { c.ListenMetrics = []net.Listener{l} }
	if secure {
		ca, pair := certificate(t, "server")
		pool := x509.NewCertPool()
		pool.AddCert(ca)
		trusting = &tls.Config{RootCAs: pool, ServerName: "localhost"}
		out.web = &http.Client{Transport: &http.Transport{TLSClientConfig: trusting.Clone()}}
		change = func(c *Config) {
			c.ListenMetrics = []net.Listener{l}
			c.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
		}
	}
	out.fixture = start(t, change)
	out.tls = trusting
	out.client = out.dial(t, clientv3.Config{})
	return out
}

func (l *listeners) url() string {
	if l.tls != nil {
		return "https://" + l.addr
	}
	return "http://" + l.addr
}

// TestEveryPathOfEveryListener asks every HTTP path of every listener.
func TestEveryPathOfEveryListener(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("TLS ", secure), func(t *testing.T) {
			l := startListeners(t, secure)
			var known []string
			for _, s := range served {
				known = append(known, s.pattern)
				path := strings.Replace(strings.TrimPrefix(s.pattern, "GET "), "{$}", "", 1)
				if path == "/v3/" {
					continue
				}
				code, body := do(t, l.web, http.MethodGet, l.url()+path, nil)
				require.Equal(t, http.StatusOK, code, "%s for clients: %s", path, body)
				code, body = do(t, http.DefaultClient, http.MethodGet, "http://"+l.metrics+path, nil)
				require.Equal(t, s.metrics, code == http.StatusOK, "%s for metrics: %d %s", path, code, body)
				code, _ = do(t, http.DefaultClient, http.MethodPost, "http://"+l.metrics+path, strings.NewReader("{}"))
				require.NotEqual(t, http.StatusOK, code, "POST %s for metrics", path)
			}
			for _, path := range gatewayPaths {
				code, body := do(t, l.web, http.MethodGet, l.url()+path, nil) // the wrong method, at a path that is known
				require.Equal(t, http.StatusNotImplemented, code, "%s for clients: %s", path, body)
				code, body = do(t, http.DefaultClient, http.MethodPost, "http://"+l.metrics+path,
					strings.NewReader(`{"key":"aw==","value":"dg=="}`))
				require.Equal(t, http.StatusNotFound, code, "%s for metrics: %s", path, body)
			}
			got, err := l.client.Get(testContext(t), "k")
			require.NoError(t, err)
			require.Empty(t, got.Kvs, "the listener for metrics took a put")
			for _, r := range l.clientRoutes() {
				require.Contains(t, known, r.pattern, "who may ask this?")
			}
			for _, r := range l.metricsRoutes() {
				i := slices.Index(known, r.pattern)
				require.True(t, i >= 0 && served[i].metrics, r.pattern)
			}
		})
	}
}

// TestEveryCallOfEveryListener calls every method of every gRPC service on every listener.
func TestEveryCallOfEveryListener(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("TLS ", secure), func(t *testing.T) {
			l := startListeners(t, secure)
			creds := insecure.NewCredentials()
			if l.tls != nil {
				creds = credentials.NewTLS(l.tls)
			}
			clients, metrics := dialRaw(t, l.addr, creds), dialRaw(t, l.metrics, insecure.NewCredentials())
			n := 0
			for name, service := range l.grpc.GetServiceInfo() {
				for _, method := range service.Methods {
					path := "/" + name + "/" + method.Name
					require.NotEqual(t, codes.Unimplemented, callGarbage(t, clients, path), path)
					require.Equal(t, codes.Unavailable, callGarbage(t, metrics, path), path)
					n++
				}
			}
			require.Greater(t, n, 50)
		})
	}
}

// dialRaw connects to a gRPC server to which garbage can be sent.
func dialRaw(t *testing.T, addr string, creds credentials.TransportCredentials) *grpc.ClientConn {
	conn, err := grpc.NewClient("passthrough:"+addr, grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{})))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// callGarbage calls a method with a request that no message is, and returns how that ends.
func callGarbage(t *testing.T, conn *grpc.ClientConn, path string) codes.Code {
	ctx, cancel := context.WithTimeout(testContext(t), 10*time.Second)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, path)
	if err == nil {
		if err = stream.SendMsg([]byte{0xff}); err == nil {
			err = stream.CloseSend()
		}
	}
	for err == nil {
		var answer []byte
		err = stream.RecvMsg(&answer)
	}
	return status.Code(err)
}

// rawCodec sends bytes as they are.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("%T is not bytes", v)
	}
	return b, nil
}

func (rawCodec) Unmarshal(b []byte, v any) error {
	p, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("%T is not bytes", v)
	}
	*p = b
	return nil
}

func (rawCodec) Name() string { return "proto" }

// TestPathsThatNeedAUser requests every path as a stranger while auth is on, and those about members as a user with a
// token, a password or a certificate.
func TestPathsThatNeedAUser(t *testing.T) {
	l := startListeners(t, false)
	ctx := testContext(t)
	l.enableAuth(t, ctx)
	get := func(path string, change func(*http.Request)) (int, string) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url()+path, nil)
		require.NoError(t, err)
		change(request)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		body := new(strings.Builder)
		require.NoError(t, response.Header.Write(body))
		_, err = fmt.Fprint(body, response.Status)
		require.NoError(t, err)
		return response.StatusCode, body.String()
	}
	login, err := l.dial(t, clientv3.Config{}).Authenticate(ctx, "root", "secret")
	require.NoError(t, err)
	for _, s := range served {
		path := strings.Replace(strings.TrimPrefix(s.pattern, "GET "), "{$}", "", 1)
		if path == "/v3/" {
			continue
		}
		for as, c := range map[string]struct {
			change func(*http.Request)
			user   bool
		}{
			"nobody":           {func(*http.Request) {}, false},
			"a wrong token":    {func(r *http.Request) { r.Header.Set("Authorization", "guess.1") }, false},
			"a wrong password": {func(r *http.Request) { r.SetBasicAuth("root", "x") }, false},
			"no such user":     {func(r *http.Request) { r.SetBasicAuth("nobody", "secret") }, false},
			"no password":      {func(r *http.Request) { r.SetBasicAuth("root", "") }, false},
			"a token":          {func(r *http.Request) { r.Header.Set("Authorization", login.Token) }, true},
			"a bearer":         {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+login.Token) }, true},
			"a password":       {func(r *http.Request) { r.SetBasicAuth("root", "secret") }, true},
		} {
			code, head := get(path, c.change)
			if !s.needsUser || c.user {
				require.Equal(t, http.StatusOK, code, "%s as %s", path, as)
				continue
			}
			require.Equal(t, http.StatusUnauthorized, code, "%s as %s", path, as)
			require.Contains(t, head, "Www-Authenticate: Basic", "%s as %s", path, as)
		}
	}

	// A password that was right is compared again once auth has changed.
	root := l.dial(t, clientv3.Config{Username: "root", Password: "secret"})
	_, err = root.UserChangePassword(ctx, "root", "new")
	require.NoError(t, err)
	code, _ := get("/braid/status", func(r *http.Request) { r.SetBasicAuth("root", "secret") })
	require.Equal(t, http.StatusUnauthorized, code)
	code, _ = get("/braid/status", func(r *http.Request) { r.SetBasicAuth("root", "new") })
	require.Equal(t, http.StatusOK, code)
}

// TestAGatewayHeaderIsNoUser: what a stranger writes into headers does not become metadata that names
// a user.
func TestAGatewayHeaderIsNoUser(t *testing.T) {
	r, err := http.NewRequest(http.MethodGet, "http://x/braid/status", nil)
	require.NoError(t, err)
	r.Header.Set("Grpc-Metadata-Token", "t")
	r.Header.Set("Token", "t")
	md, ok := metadata.FromIncomingContext(callContext(r))
	require.True(t, ok)
	require.Empty(t, md)
}
