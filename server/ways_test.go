package server

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestBothWaysOfAListener: as in etcd, a listener may serve TLS and plain clients, gRPC and HTTP. A certificate is
// required of the first alone.
func TestBothWaysOfAListener(t *testing.T) {
	ca, pair := certificate(t, "server")
	_, clientPair := certificate(t, "reader")
	pool, clients := x509.NewCertPool(), x509.NewCertPool()
	pool.AddCert(ca)
	clients.AddCert(clientPair.Leaf)
	plain, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	f := start(t, func(c *Config) {
		c.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients,
			ClientAuth: tls.RequireAndVerifyClientCert}
		c.ListenPlain = append(c.ListenClient, plain)
	})
	ctx := testContext(t)
	_, err = f.client.Put(ctx, "k", "plain")
	require.NoError(t, err)
	trusting := &tls.Config{RootCAs: pool, ServerName: "localhost", Certificates: []tls.Certificate{clientPair}}
	_, err = f.dial(t, clientv3.Config{TLS: trusting}).Put(ctx, "k", "secure")
	require.NoError(t, err)
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + plain.Addr().String()}, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer c.Close()
	got, err := c.Get(ctx, "k")
	require.NoError(t, err)
	require.Equal(t, "secure", string(got.Kvs[0].Value))

	code, body := do(t, http.DefaultClient, http.MethodGet, "http://"+f.addr+"/health", nil)
	require.Equal(t, http.StatusOK, code, body)
	for _, http2 := range []bool{false, true} {
		web := &http.Client{Transport: &http.Transport{TLSClientConfig: trusting.Clone(), ForceAttemptHTTP2: http2}}
		code, body := do(t, web, http.MethodGet, "https://"+f.addr+"/health", nil)
		require.Equal(t, http.StatusOK, code, body)
	}
	nameless := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}}}
	_, err = nameless.Get("https://" + f.addr + "/health")
	require.ErrorContains(t, err, "certificate required")
}
