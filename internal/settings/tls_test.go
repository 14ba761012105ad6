package settings

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/testcert"
)

// args are flags with the files' names in place of @NAME.
func args(a *testcert.Authority, text string) []string {
	return strings.Fields(strings.ReplaceAll(text, "@", a.Path("")+string(filepath.Separator)))
}

// meets connects one configuration to another, and returns the listening side's error.
func meets(t *testing.T, server, client *tls.Config) error {
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server)
	require.NoError(t, err)
	defer listener.Close()
	served := make(chan error, 1)
	go func() { served <- serveOne(listener) }()
	conn, err := tls.Dial("tcp", listener.Addr().String(), client)
	if err == nil {
		defer conn.Close()
	}
	if said := <-served; said != nil {
		return said
	}
	return err
}

// TestWhoseCertificatesAreTaken: each restriction refuses, on the sides that it names, and accepts all others.
func TestWhoseCertificatesAreTaken(t *testing.T) {
	a := testcert.New(t)
	a.Issue("m1")
	m2 := a.Issue("m2")
	a.Issue("guest")
	const (
		clients = "--listen-client-urls=https://127.0.0.1:1 --cert-file=@m1.crt --key-file=@m1.key " +
			"--trusted-ca-file=@ca.crt --client-cert-auth"
		peers = "--listen-peer-urls=https://127.0.0.1:2 --peer-cert-file=@m1.crt --peer-key-file=@m1.key " +
			"--peer-trusted-ca-file=@ca.crt"
	)
	for _, c := range []struct {
		flags          string
		peer           bool
		takes, refuses string
	}{
		{clients, false, "m1 m2 guest", ""},
		{clients + " --client-cert-allowed-hostname=m1,m2", false, "m1 m2", "guest"},
		{clients + " --client-crl-file=@crl", false, "m1 guest", "m2"},
		{peers, true, "m1 m2 guest", ""},
		{peers + " --peer-cert-allowed-cn=m1,m2", true, "m1 m2", "guest"},
		{peers + " --peer-cert-allowed-hostname=m2", true, "m2", "m1 guest"},
		{peers + " --peer-crl-file=@crl", true, "m1 guest", "m2"},
	} {
		a.Revoke(m2)
		s, err := load(args(a, c.flags))
		require.NoError(t, err, c.flags)
		side := s.ClientTLS.Server
		if c.peer {
			side = s.PeerTLS.Mutual
		}
		config, err := side()
		require.NoError(t, err)
		for who, want := range wanted(c.takes, c.refuses) {
			pair, err := tls.LoadX509KeyPair(a.Path(who+".crt"), a.Path(who+".key"))
			require.NoError(t, err)
			roots := x509.NewCertPool()
			roots.AddCert(a.Cert)
			theirs := &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, ServerName: "m1"}
			require.Equal(t, want, meets(t, config, theirs) == nil, "%s connects to %s", who, c.flags)
			if c.peer { // and this member connects to it
				open := &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert}
				ours := config.Clone()
				ours.ServerName = who
				require.Equal(t, want, meets(t, open, ours) == nil, "%s accepts %s", who, c.flags)
			}
		}
	}
}

func wanted(takes, not string) map[string]bool {
	out := map[string]bool{}
	for _, who := range strings.Fields(takes) {
		out[who] = true
	}
	for _, who := range strings.Fields(not) {
		out[who] = false
	}
	return out
}

// TestRevocationIsReadAgain: a certificate that is revoked now is refused at once.
func TestRevocationIsReadAgain(t *testing.T) {
	a := testcert.New(t)
	m1 := a.Issue("m1")
	a.Revoke()
	s, err := load(args(a, "--listen-peer-urls=https://127.0.0.1:2 --peer-cert-file=@m1.crt --peer-key-file=@m1.key "+
		"--peer-trusted-ca-file=@ca.crt --peer-crl-file=@crl"))
	require.NoError(t, err)
	config, err := s.PeerTLS.Mutual()
	require.NoError(t, err)
	client := config.Clone()
	client.ServerName, client.VerifyConnection = "m1", nil
	require.NoError(t, meets(t, config, client))
	a.Revoke(m1)
	require.ErrorContains(t, meets(t, config, client), "revoked")

	require.NoError(t, os.WriteFile(a.Path("crl"), []byte("no list"), 0o600))
	_, err = s.PeerTLS.Mutual()
	require.ErrorContains(t, err, "list of revoked certificates")
	require.Error(t, meets(t, config, client), "what cannot be read revokes everybody")
}

func TestVersionsOfTLS(t *testing.T) {
	a := testcert.New(t)
	a.Issue("m1")
	const flags = "--listen-client-urls=https://127.0.0.1:1 --cert-file=@m1.crt --key-file=@m1.key "
	for _, c := range []struct {
		flags    string
		min, max uint16
	}{
		{"", tls.VersionTLS12, tls.VersionTLS13},
		{"--tls-min-version=TLS1.3", tls.VersionTLS13, tls.VersionTLS13},
		{"--tls-max-version=TLS1.2", tls.VersionTLS12, tls.VersionTLS12},
	} {
		s, err := load(args(a, flags+c.flags))
		require.NoError(t, err)
		config, err := s.ClientTLS.Server()
		require.NoError(t, err)
		for _, version := range []uint16{tls.VersionTLS11, tls.VersionTLS12, tls.VersionTLS13} {
			client := &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version}
			want := version >= c.min && version <= c.max
			conn := serveAny(t, config)
			dialled, err := tls.Dial("tcp", conn, client)
			require.Equal(t, want, err == nil, "%s: %s", c.flags, tls.VersionName(version))
			if err == nil {
				dialled.Close()
			}
		}
	}
	s, err := load(args(a, flags+"--cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"))
	require.NoError(t, err)
	config, err := s.ClientTLS.Server()
	require.NoError(t, err)
	require.Equal(t, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}, config.CipherSuites)
	config, err = s.PeerTLS.Server()
	require.NoError(t, err)
	require.Nil(t, config)
}

// serveAny accepts one connection and returns its address.
func serveAny(t *testing.T, config *tls.Config) string {
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		if conn, err := listener.Accept(); err == nil {
			_ = conn.(*tls.Conn).Handshake()
			conn.Close()
		}
	}()
	return listener.Addr().String()
}

func TestWhatRestrictsNothingIsRefused(t *testing.T) {
	a := testcert.New(t)
	a.Issue("m1")
	const (
		clients = "--listen-client-urls=https://127.0.0.1:1 --cert-file=@m1.crt --key-file=@m1.key "
		peers   = "--listen-peer-urls=https://127.0.0.1:2 --peer-cert-file=@m1.crt --peer-key-file=@m1.key " +
			"--peer-trusted-ca-file=@ca.crt "
	)
	for flags, want := range map[string]string{
		"--client-crl-file=@crl": "--client-crl-file has no meaning without " +
			"--cert-file and --trusted-ca-file",
		clients + "--client-crl-file=@crl":                                "--client-crl-file has no meaning",
		clients + "--client-cert-allowed-hostname=a":                      "--client-cert-allowed-hostname has no meaning",
		"--peer-crl-file=@crl":                                            "--peer-crl-file has no meaning",
		"--peer-cert-names-host":                                          "--peer-cert-names-host has no meaning",
		"--peer-tls-by-url":                                               "--peer-tls-by-url has no meaning",
		"--peer-cert-allowed-cn=a":                                        "--peer-cert-allowed-cn has no meaning",
		"--peer-client-cert-file=@m1.crt --peer-client-key-file=@m1.key":  "--peer-client-cert-file has no meaning",
		peers + "--peer-client-cert-file=@m1.crt":                         "go together",
		peers + "--peer-cert-allowed-cn=a --peer-cert-allowed-hostname=b": "exclude each other",
		"--tls-min-version=SSL3":                                          "--tls-min-version",
		"--tls-max-version=TLS1.4":                                        "--tls-max-version",
		"--tls-min-version=TLS1.3 --tls-max-version=TLS1.2":               "is above",
		"--cipher-suites=ROT13":                                           "--cipher-suites",
		"--tls-min-version=TLS1.3 --cipher-suites=TLS_AES_128_GCM_SHA256": "cannot be chosen",
		"--max-learners=0":                                                "--max-learners",
		"--peer-cert-allowed-hostname=b --peer-trusted-ca-file=@ca.crt":   "--peer-cert-allowed-hostname has no meaning",
	} {
		_, err := load(args(a, flags))
		require.ErrorContains(t, err, want, flags)
	}
}

// TestSectionsOfTheFile: keys of etcd's file with other names than their flags.
func TestSectionsOfTheFile(t *testing.T) {
	a := testcert.New(t)
	a.Issue("m1")
	file := a.Path("braid.yaml")
	text := strings.ReplaceAll(`
discovery:
tls-min-version: TLS1.3
listen-client-urls: https://127.0.0.1:1
listen-peer-urls: https://127.0.0.1:2
client-transport-security: {cert-file: @m1.crt, key-file: @m1.key, trusted-ca-file: @ca.crt,
  allowed-hostname: [m1], auto-tls: false, client-cert-file: ~}
peer-transport-security: {cert-file: @m1.crt, key-file: @m1.key, trusted-ca-file: @ca.crt,
  allowed-cn: [m1, m2], client-cert-file: @m1.crt, client-key-file: @m1.key}
`, "@", a.Path("")+string(filepath.Separator))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	s, err := load([]string{"--config-file=" + file})
	require.NoError(t, err)
	require.Equal(t, []string{"m1"}, s.ClientTLS.AllowedHosts)
	require.Equal(t, []string{"m1", "m2"}, s.PeerTLS.AllowedNames)
	require.Equal(t, a.Path("m1.crt"), s.PeerTLS.DialCertFile)
	require.Equal(t, "TLS1.3", s.PeerTLS.Min)
	require.Empty(t, s.Ignored())
}
