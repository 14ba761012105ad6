package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority signs certificates and keeps them in files.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = a.newKey()
	a.write("ca.crt", "CERTIFICATE", a.sign(a.cert, a.key))
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	return key
}

func (a *authority) sign(cert *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, &key.PublicKey, a.key)
	require.NoError(a.t, err)
	return der
}

func (a *authority) write(name, kind string, content []byte) {
	require.NoError(a.t, os.WriteFile(a.path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600))
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// issue writes NAME.crt and NAME.key for 127.0.0.1.
func (a *authority) issue(name string) {
	key := a.newKey()
	der := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, key)
	a.write(name+".crt", "CERTIFICATE", der)
	content, err := x509.MarshalECPrivateKey(key)
	require.NoError(a.t, err)
	a.write(name+".key", "EC PRIVATE KEY", content)
}

func TestMutualTLSEverywhere(t *testing.T) {
	t.Parallel()
	good, evil := newAuthority(t), newAuthority(t)
	for _, name := range []string{"m1", "m2", "m3", "client"} {
		good.issue(name)
	}
	evil.issue("client")
	members := map[string]serveFlags{}
	var list []string
	for _, name := range []string{"m1", "m2", "m3"} {
		f := newServeFlags(t)
		f.name = name
		members[name] = f
		list = append(list, name+"=https://"+f.peer)
	}
	for name, f := range members {
		begin(t, "", "serve", "--name", name, "--data-dir", f.dir, "--initial-cluster", strings.Join(list, ","),
			"--listen-client-urls", "https://"+f.client, "--listen-peer-urls", "https://"+f.peer,
			"--cert-file", good.path(name+".crt"), "--key-file", good.path(name+".key"), "--trusted-ca-file",
			good.path("ca.crt"), "--client-cert-auth",
			"--peer-cert-file", good.path(name+".crt"), "--peer-key-file", good.path(name+".key"), "--peer-trusted-ca-file",
			good.path("ca.crt"), "--peer-cert-names-host")
	}
	flags := func(a *authority) []string {
		return []string{"--cacert", good.path("ca.crt"), "--cert", a.path("client.crt"), "--key", a.path("client.key"),
			"--endpoints", "https://" + members["m2"].client}
	}
	eventually(t, "a write", func(context.Context) bool {
		_, _, code := do(t, "", append([]string{"ctl", "put", "a", "b"}, flags(good)...)...)
		return code == 0
	})
	require.Equal(t, "a\nb", ok(t, append([]string{"ctl", "get", "a"}, flags(good)...)...))
	eventually(t, "status of all members", func(context.Context) bool { // they publish their addresses after the start
		stdout, _, code := do(t, "", append([]string{"status"}, flags(good)...)...)
		return code == 0 && strings.Contains(stdout, "leader")
	})

	_, _, code := do(t, "", append([]string{"ctl", "get", "a", "--command-timeout=1s"}, flags(evil)...)...)
	require.NotZero(t, code, "a certificate of another authority")
	_, _, code = do(t, "", "ctl", "get", "a", "--command-timeout=1s", "--endpoints", members["m2"].client)
	require.NotZero(t, code, "no certificate")
}

// TestAutomaticTLS: members make certificates. Links and connections of clients are encrypted; a restart keeps them.
func TestAutomaticTLS(t *testing.T) {
	t.Parallel()
	members, metrics, list := map[string]serveFlags{}, map[string]string{}, []string(nil)
	for _, name := range []string{"m1", "m2", "m3"} {
		members[name], metrics[name] = newServeFlags(t), newServeFlags(t).client
		list = append(list, name+"=https://"+members[name].peer)
	}
	serve := func(name string) *invocation {
		f := members[name]
		m, _ := begin(t, "", "serve", "-name", name, "--data-dir", f.dir, "--initial-cluster", strings.Join(list, ","),
			"--listen-client-urls", "https://"+f.client, "--listen-peer-urls", "https://"+f.peer,
			"--auto-tls", "--peer-auto-tls", "--listen-metrics-urls", "https://"+metrics[name])
		return m
	}
	serve("m1")
	serve("m2")
	third := serve("m3")
	flags := []string{"--insecure-skip-tls-verify", "--insecure-transport=false", "--endpoints",
		"https://" + members["m3"].client}
	put := func() bool {
		_, _, code := do(t, "", append([]string{"ctl", "put", "a", "b"}, flags...)...)
		return code == 0
	}
	eventually(t, "a write", func(context.Context) bool { return put() })
	_, _, code := do(t, "", "ctl", "get", "a", "--command-timeout=1s", "--endpoints", members["m3"].client)
	require.NotZero(t, code, "no TLS")
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	resp, err := web.Get("https://" + metrics["m3"] + "/readyz")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	third.stop()
	serve("m3")
	eventually(t, "a write", func(context.Context) bool { return put() })
	require.Equal(t, "a\nb", ok(t, append([]string{"ctl", "get", "a"}, flags...)...))
}
