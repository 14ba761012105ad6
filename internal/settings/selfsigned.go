package settings

import (
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"

	"go.uber.org/zap"

	"go.etcd.io/etcd/client/pkg/v3/transport"
)

// CertificatesDir is the folder of the data directory with self-signed certificates, as in etcd's.
const CertificatesDir = "fixtures"

// MakeCertificates makes the self-signed certificates of --auto-tls and --peer-auto-tls, unless an earlier start of the
// member made them. They name the hosts that it listens on.
func (s *Settings) MakeCertificates(logger *zap.Logger) error {
	for _, side := range []struct {
		tls  *TLS
		name string
		urls []string
	}{{&s.ClientTLS, "client", s.ListenClient}, {&s.PeerTLS, "peer", s.ListenPeer}} {
		if !side.tls.Auto {
			continue
		}
		dir := filepath.Join(s.DataDir, CertificatesDir, side.name)
		info, err := transport.SelfCert(logger, dir, Hosts(side.urls), side.tls.Years)
		if err != nil {
			return fmt.Errorf("certificate in %s: %w", dir, err)
		}
		side.tls.CertFile, side.tls.KeyFile = info.CertFile, info.KeyFile
	}
	return nil
}

// completeAuto turns off Auto where a certificate is given.
func (s *Settings) completeAuto() {
	for flag, t := range map[string]*TLS{"": &s.ClientTLS, "peer-": &s.PeerTLS} {
		if t.Auto && t.hasFiles() {
			t.Auto = false
			s.noted = append(s.noted, fmt.Sprintf("--%sauto-tls does nothing: --%scert-file is given", flag, flag))
		}
	}
}

// checkAuto refuses what self-signed certificates cannot verify.
func (t TLS) checkAuto(prefix, restricts string) error {
	var errs []error
	if t.Years == 0 {
		errs = append(errs, errors.New("--self-signed-cert-validity is 0"))
	}
	verifies := []optional{{prefix + "client-cert-auth", t.ClientCertAuth},
		{prefix + "trusted-ca-file", t.TrustedCAFile != ""}}
	for _, o := range append(verifies, t.restrictions(restricts)...) {
		if o.given {
			errs = append(errs, fmt.Errorf("%s has no meaning with %sauto-tls, which verifies no certificate", o.flag, prefix))
		}
	}
	return errors.Join(errs...)
}

// trustAny makes the links between members accept any certificate: they are encrypted, and not authenticated.
func trustAny(config *tls.Config) {
	config.InsecureSkipVerify, config.ClientAuth = true, tls.RequireAnyClientCert
	config.VerifyConnection = func(tls.ConnectionState) error { return nil }
}
