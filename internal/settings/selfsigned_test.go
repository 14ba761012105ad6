package settings

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// TestSelfSignedCertificates: they are made once, and name the hosts.
func TestSelfSignedCertificates(t *testing.T) {
	s, err := load([]string{"--data-dir=" + t.TempDir(), "--auto-tls", "--peer-auto-tls", "--self-signed-cert-validity=2",
		"--listen-client-urls=https://127.0.0.1:1,https://localhost:2", "--listen-peer-urls=https://127.0.0.1:3"})
	require.NoError(t, err)
	require.Empty(t, s.Ignored())
	require.NoError(t, s.MakeCertificates(zap.NewNop()))
	config, err := s.ClientTLS.Server()
	require.NoError(t, err)
	shown := leaf(t, config)
	require.NoError(t, shown.VerifyHostname("127.0.0.1"))
	require.NoError(t, shown.VerifyHostname("localhost"))
	require.InDelta(t, 2*365*24, time.Until(shown.NotAfter).Hours(), 1)
	require.Equal(t, tls.NoClientCert, config.ClientAuth)

	links, err := s.PeerTLS.Mutual()
	require.NoError(t, err)
	require.NotEqual(t, shown.SerialNumber, leaf(t, links).SerialNumber)
	require.Equal(t, tls.RequireAnyClientCert, links.ClientAuth)

	require.NoError(t, s.MakeCertificates(zap.NewNop()))
	config, err = s.ClientTLS.Server()
	require.NoError(t, err)
	require.Equal(t, shown.SerialNumber, leaf(t, config).SerialNumber, "the same after a restart")
}

func leaf(t *testing.T, config *tls.Config) *x509.Certificate {
	pair, err := config.GetCertificate(&tls.ClientHelloInfo{})
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	require.NoError(t, err)
	return cert
}

func TestAutomaticTLSIsRefused(t *testing.T) {
	https := []string{"--listen-client-urls=https://127.0.0.1:1", "--listen-peer-urls=https://127.0.0.1:3", "--auto-tls",
		"--peer-auto-tls"}
	for want, args := range map[string][]string{
		"--self-signed-cert-validity is 0":                               {"--self-signed-cert-validity=0"},
		"--client-cert-auth has no meaning with --auto-tls":              {"--client-cert-auth"},
		"--peer-trusted-ca-file has no meaning with --peer-auto-tls":     {"--peer-trusted-ca-file=ca"},
		"--peer-cert-allowed-cn has no meaning with --peer-auto-tls":     {"--peer-cert-allowed-cn=m1"},
		"--peer-cert-names-host has no meaning without --peer-cert-file": {"--peer-cert-names-host"},
	} {
		_, err := load(append(https, args...))
		require.ErrorContains(t, err, want)
	}
	_, err := load([]string{"--listen-client-urls=http://127.0.0.1:1", "--auto-tls"})
	require.ErrorContains(t, err, "127.0.0.1:1 is plain although a certificate is given")
	s, err := load([]string{"--listen-client-urls=https://127.0.0.1:1", "--auto-tls", "--cert-file=c", "--key-file=k"})
	require.NoError(t, err)
	require.Equal(t, []string{"--auto-tls does nothing: --cert-file is given"}, s.Ignored())
	require.False(t, s.ClientTLS.Auto)
}
