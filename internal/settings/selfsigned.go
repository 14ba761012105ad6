package settings

import (
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"

	"go.uber.org/zap"

	"go.etcd.io/etcd/client/pkg/v3/transport"
)

// CertificatesDir is the part of the data directory with the certificates that the member made, as in etcd's.
const CertificatesDir = "fixtures"

// MakeCertificates makes those certificates that --auto-tls and --peer-auto-tls ask for, unless an earlier start of the
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

// completeAuto leaves out certificates that the member need not make.
func (s *Settings) completeAuto() {
	for flag, t := range map[string]*TLS{"": &s.ClientTLS, "peer-": &s.PeerTLS} {
		if t.Auto && t.hasFiles() {
			t.Auto = false
			s.unknown = append(s.unknown, fmt.Sprintf("--%sauto-tls does nothing: --%scert-file is given", flag, flag))
		}
	}
}

// checkAuto refuses what cannot be verified with certificates that sign themselves.
func (t TLS) checkAuto(prefix, restricts string) error {
	if !t.Auto {
		return nil
	}
	var errs []error
	if t.Years == 0 {
		errs = append(errs, errors.New("--self-signed-cert-validity is 0"))
	}
	for flag, given := range map[string]bool{
		prefix + "client-cert-auth": t.ClientCertAuth, prefix + "trusted-ca-file": t.TrustedCAFile != "",
		restricts + "crl-file": t.CRLFile != "", restricts + "cert-allowed-hostname": len(t.AllowedHosts) > 0,
		restricts + "cert-allowed-cn": len(t.AllowedNames) > 0, restricts + "client-cert-file": t.DialCertFile != "",
	} {
		if given {
			errs = append(errs, fmt.Errorf("%s has no meaning with %sauto-tls, which verifies nobody's certificate", flag,
				prefix))
		}
	}
	return errors.Join(errs...)
}

// trustAny makes the links between members accept any certificate: they are encrypted, and not authenticated.
func trustAny(config *tls.Config) {
	config.InsecureSkipVerify, config.ClientAuth = true, tls.RequireAnyClientCert
	config.VerifyConnection = func(tls.ConnectionState) error { return nil }
}
