package transport

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"
)

// authority is a certificate authority in memory.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	var der []byte
	der, a.key = certificate(t, &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

// certificate signs c by a, or on its own.
func certificate(t testing.TB, c *x509.Certificate, a *authority) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	c.Subject = pkix.Name{CommonName: "test"}
	c.BasicConstraintsValid = true
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := c, key
	if a != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	return der, key
}

// member returns the settings of a member with a certificate of a.
func (a *authority) member(t testing.TB) *tls.Config {
	t.Helper()
	der, key := certificate(t, &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a)
	return &tls.Config{
		RootCAs:      a.pool,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}
}

func TestTLS(t *testing.T) {
	ca := newAuthority(t)
	a, b := pairOf(t, defaultTiming, func(o *Options, h *testHandler) {
		o.TLS = ca.member(t)
		h.request = echo
		h.snapshot = func(_ uint64, _ []byte, body io.Reader) error {
			all, err := io.ReadAll(body)
			if err == nil && !bytes.Equal(all, noise(1<<20)) {
				t.Error("the snapshot is not what was sent")
			}
			return err
		}
	})
	big := noise(1 << 20)
	for range 20 {
		a.Send(2, 1, [][]byte{[]byte("small"), big, []byte("end")})
	}
	for range 20 {
		if f := get(t, b.frames, "frame"); !bytes.Equal(f.frame[5:len(f.frame)-3], big) {
			t.Fatal("the frame is not what was sent")
		}
	}
	if r, err := a.Request(t.Context(), 2, []byte("x")); err != nil || string(r) != "answer to: x" {
		t.Errorf("%q, %v", r, err)
	}
	if err := b.SendSnapshot(t.Context(), 1, nil, send(big)); err != nil {
		t.Error(err)
	}
}

// expectRefused connects to a member as a stranger, who must be told nothing.
func expectRefused(t *testing.T, addr string, c *tls.Config) {
	conn, err := tls.Dial("tcp", addr, c)
	if err != nil {
		return // refused in the TLS handshake
	}
	defer conn.Close()
	conn.Write(greeting(forFrames, 9))
	if said := expectClosed(t, conn); len(said) > 0 {
		t.Errorf("was told % x", said)
	}
}

// TestTLSRefusesStrangers: not a byte of braid's for who has no certificate of ours.
func TestTLSRefusesStrangers(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	a, b := pairOf(t, defaultTiming, func(o *Options, _ *testHandler) { o.TLS = ca.member(t) })
	trusting := func(c *tls.Config) *tls.Config {
		c.RootCAs = ca.pool
		return c
	}
	for name, c := range map[string]*tls.Config{
		"none":          trusting(&tls.Config{}),
		"another's":     trusting(other.member(t)),
		"none, TLS 1.2": trusting(&tls.Config{MaxVersion: tls.VersionTLS12}),
	} {
		t.Run(name, func(t *testing.T) {
			expectRefused(t, a.addr, c)
		})
	}
	plain := stranger(t, a.addr, nil)
	if _, err := plain.Write(greeting(forFrames, 9)); err != nil {
		t.Fatal(err)
	}
	if said := expectClosed(t, plain); len(said) >= replySize {
		t.Errorf("a plain stranger was told % x", said)
	}
	eventually(t, "log lines", func() bool { return strings.Contains(a.logs.String(), "tls") })
	b.Send(1, 3, [][]byte{[]byte("undisturbed")})
	get(t, a.frames, "frame")
}

// TestTLSDialerVerifies: a member does not talk to a listener of another authority.
func TestTLSDialerVerifies(t *testing.T) {
	noLeaks(t)
	ca, other := newAuthority(t), newAuthority(t)
	a := start(t, 1, calm, "", func(o *Options, _ *testHandler) { o.TLS = ca.member(t) })
	b := start(t, 2, calm, "", func(o *Options, _ *testHandler) { o.TLS = other.member(t) })
	connect(a, b)
	for _, m := range []*member{a, b} {
		if err := m.expectDown(t, 3-m.id); !strings.Contains(err.Error(), "certificate") {
			t.Errorf("got %v", err)
		}
	}
}

func TestTLSOptions(t *testing.T) {
	ca := newAuthority(t)
	for name, change := range map[string]func(*tls.Config){
		"no certificate":  func(c *tls.Config) { c.Certificates = nil },
		"no authority":    func(c *tls.Config) { c.RootCAs = nil },
		"no verification": func(c *tls.Config) { c.InsecureSkipVerify = true },
	} {
		c := ca.member(t)
		change(c)
		if _, err := New(Options{Self: 1, Handler: newHandler(), TLS: c}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestTLSByAddress changes a pair from plain links to TLS: one member has TLS already and the other has not, then
// addresses say which it is, and in the end there is no plain link.
func TestTLSByAddress(t *testing.T) {
	noLeaks(t)
	ca := newAuthority(t)
	byAddress := func(o *Options, _ *testHandler) { o.TLS, o.TLSByAddress = ca.member(t), true }
	a := start(t, 1, calm, "", byAddress)
	b := start(t, 2, calm, "", nil)
	c := start(t, 3, calm, "", func(o *Options, _ *testHandler) { o.TLS = ca.member(t) })
	plain, mixed, strict := Peer{ID: 1, Addrs: []string{a.addr}}, Peer{ID: 2, Addrs: []string{"http://" + b.addr}},
		Peer{ID: 3, Addrs: []string{c.addr}}
	a.SetPeers([]Peer{mixed, strict})
	b.SetPeers([]Peer{plain})
	c.SetPeers([]Peer{plain})
	for _, m := range []*member{b, c} {
		m.expectUp(t, 1)
		m.Send(1, 7, [][]byte{[]byte("hello")})
		if f := get(t, a.frames, "frame"); f.from != m.id || string(f.frame) != "hello" {
			t.Errorf("got %+v", f)
		}
		a.Send(m.id, 7, [][]byte{[]byte("answer")})
		get(t, m.frames, "answer")
	}
	a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}, strict})
	a.expectDown(t, 2) // b accepts no TLS
	conn := stranger(t, c.addr, nil)
	if _, err := conn.Write(greeting(forFrames, 9)); err != nil {
		t.Fatal(err)
	}
	if said := expectClosed(t, conn); len(said) >= replySize {
		t.Errorf("who takes TLS only told % x", said)
	}
}

// TestTLSBinds: a certificate of the authority does not make its owner any member, if that is demanded. Each member has
// the certificate of its host; 127.0.0.1 is no host of member 3.
func TestTLSBinds(t *testing.T) {
	noLeaks(t)
	ca := newAuthority(t)
	for _, binds := range []bool{false, true} {
		a := start(t, 1, calm, "", func(o *Options, _ *testHandler) { o.TLS, o.TLSBinds = ca.member(t), binds })
		b := start(t, 2, calm, "", func(o *Options, _ *testHandler) { o.TLS, o.TLSBinds = ca.member(t), binds })
		c := start(t, 3, calm, "", func(o *Options, _ *testHandler) { o.TLS = ca.member(t) })
		a.SetPeers([]Peer{{ID: 2, Addrs: []string{b.addr}}, {ID: 3, Addrs: []string{"192.0.2.1:1"}}})
		for _, m := range []*member{b, c} {
			m.SetPeers([]Peer{{ID: 1, Addrs: []string{a.addr}}})
		}
		b.expectUp(t, 1)
		b.Send(1, 0, [][]byte{[]byte("me")})
		if f := get(t, a.frames, "frame"); f.from != 2 {
			t.Fatalf("a frame of %d", f.from)
		}
		if !binds {
			c.expectUp(t, 1)
			continue
		}
		if err := c.expectDown(t, 1); !strings.Contains(err.Error(), "no answer") {
			t.Errorf("got %v", err)
		}
		eventually(t, "log line", func() bool { return strings.Contains(a.logs.String(), "names no host of member 3") })
	}
}

// TestTLSWithoutAuthorities: members that accept any certificate connect, with self-signed certificates. One
// without a certificate is a stranger still.
func TestTLSWithoutAuthorities(t *testing.T) {
	noLeaks(t)
	any := func(o *Options, _ *testHandler) {
		o.TLS = newAuthority(t).member(t)
		o.TLS.RootCAs, o.TLS.InsecureSkipVerify, o.TLS.ClientAuth = nil, true, tls.RequireAnyClientCert
		o.TLS.VerifyConnection = func(tls.ConnectionState) error { return nil }
	}
	a, b := start(t, 1, calm, "", any), start(t, 2, calm, "", any)
	connect(a, b)
	a.expectUp(t, 2)
	b.expectUp(t, 1)
	expectRefused(t, a.addr, &tls.Config{InsecureSkipVerify: true})
}
