package settings

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"go.etcd.io/etcd/client/pkg/v3/tlsutil"
	"go.etcd.io/etcd/client/pkg/v3/transport"
)

func (s *Settings) checkTLS() error {
	var errs []error
	for _, side := range []struct {
		prefix, restricts string
		tls               TLS
	}{{"--", "--client-", s.ClientTLS}, {"--peer-", "--peer-", s.PeerTLS}} {
		t := side.tls
		if t.Auto {
			errs = append(errs, t.checkAuto(side.prefix, side.restricts))
			continue
		}
		if (t.CertFile == "") != (t.KeyFile == "") {
			errs = append(errs, fmt.Errorf("%scert-file and %skey-file go together", side.prefix, side.prefix))
		}
		if t.ClientCertAuth && t.TrustedCAFile == "" {
			errs = append(errs, fmt.Errorf("%sclient-cert-auth needs %strusted-ca-file", side.prefix, side.prefix))
		}
		if !t.Enabled() && t.TrustedCAFile != "" {
			errs = append(errs, fmt.Errorf("%strusted-ca-file is given without %scert-file", side.prefix, side.prefix))
		}
		errs = append(errs, t.checkRestrictions(side.prefix, side.restricts))
	}
	if s.PeerTLS.hasFiles() && s.PeerTLS.TrustedCAFile == "" {
		errs = append(errs, errors.New("--peer-trusted-ca-file is missing: members show each other certificates"))
	}
	if s.PeerTLSBinds && !s.PeerTLS.hasFiles() {
		errs = append(errs, errors.New("--peer-cert-names-host has no meaning without --peer-cert-file"))
	}
	if s.PeerTLSByURL && !s.PeerTLS.Enabled() {
		errs = append(errs, errors.New("--peer-tls-by-url has no meaning without --peer-cert-file"))
	}
	if !s.PeerTLS.Auto && (s.PeerTLS.DialCertFile == "") != (s.PeerTLS.DialKeyFile == "") {
		errs = append(errs, errors.New("--peer-client-cert-file and --peer-client-key-file go together"))
	}
	return errors.Join(append(errs, s.ClientTLS.TLSVersions.check())...)
}

// optional is a flag, and whether it is given.
type optional struct {
	flag  string
	given bool
}

// restrictions are the flags that restrict the certificates of the other side, or need them.
func (t TLS) restrictions(restricts string) []optional {
	return []optional{
		{restricts + "crl-file", t.CRLFile != ""}, {restricts + "cert-allowed-hostname", len(t.AllowedHosts) > 0},
		{restricts + "cert-allowed-cn", len(t.AllowedNames) > 0}, {restricts + "client-cert-file", t.DialCertFile != ""},
	}
}

// checkRestrictions refuses restrictions without effect: they need certificates of the other side.
func (t TLS) checkRestrictions(prefix, restricts string) error {
	var errs []error
	for _, r := range t.restrictions(restricts) {
		if r.given && (!t.Enabled() || t.TrustedCAFile == "") {
			errs = append(errs, fmt.Errorf("%s has no meaning without %scert-file and %strusted-ca-file", r.flag,
				prefix, prefix))
		}
	}
	if len(t.AllowedHosts) > 0 && len(t.AllowedNames) > 0 {
		errs = append(errs, fmt.Errorf("%scert-allowed-cn and %scert-allowed-hostname exclude each other",
			restricts, restricts))
	}
	return errors.Join(errs...)
}

func (v *TLSVersions) check() error {
	least, err := tlsutil.GetTLSVersion(v.Min)
	if err != nil {
		return fmt.Errorf("--tls-min-version: %w", err)
	}
	most, err := tlsutil.GetTLSVersion(v.Max)
	if err != nil {
		return fmt.Errorf("--tls-max-version: %w", err)
	}
	if _, err := tlsutil.GetCipherSuites(v.Ciphers); err != nil {
		return fmt.Errorf("--cipher-suites: %w", err)
	}
	switch {
	case most != 0 && least > most:
		return fmt.Errorf("--tls-min-version %s is above --tls-max-version %s", v.Min, v.Max)
	case least == tls.VersionTLS13 && len(v.Ciphers) > 0:
		return errors.New("--cipher-suites has no meaning with --tls-min-version TLS1.3, whose suites cannot be chosen")
	}
	return nil
}

// Server loads the certificates for serving clients; nil without TLS. Every connection gets the certificate that the
// files have then.
func (t TLS) Server() (*tls.Config, error) {
	if !t.Enabled() {
		return nil, nil
	}
	info, err := t.info()
	if err != nil {
		return nil, err
	}
	config, err := info.ServerConfig()
	if err != nil {
		return nil, err
	}
	return config, t.revoke(&info, config)
}

// Mutual loads the certificates for links between members, where each side presents one and requires one; nil without
// TLS.
func (t TLS) Mutual() (*tls.Config, error) {
	if !t.Enabled() {
		return nil, nil
	}
	info, err := t.info()
	if err != nil {
		return nil, err
	}
	config, err := info.ServerConfig()
	if err != nil {
		return nil, err
	}
	client, err := info.ClientConfig()
	if err != nil {
		return nil, err
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.RootCAs, config.GetClientCertificate = client.RootCAs, client.GetClientCertificate
	config.NextProtos = nil
	if t.Auto {
		trustAny(config)
	}
	return config, t.revoke(&info, config)
}

// revoke makes a configuration refuse revoked certificates. The list is read once now, so that an invalid file is
// found at the start.
func (t TLS) revoke(info *transport.TLSInfo, config *tls.Config) error {
	if t.CRLFile == "" {
		return nil
	}
	list, err := os.ReadFile(t.CRLFile)
	if err == nil {
		_, err = x509.ParseRevocationList(list)
	}
	if err != nil {
		return fmt.Errorf("list of revoked certificates %s: %w", t.CRLFile, err)
	}
	info.ConfigureCRLVerification(config)
	return nil
}

func (t TLS) info() (transport.TLSInfo, error) {
	info := transport.TLSInfo{
		CertFile: t.CertFile, KeyFile: t.KeyFile, TrustedCAFile: t.TrustedCAFile, ClientCertAuth: t.ClientCertAuth,
		ClientCertFile: t.DialCertFile, ClientKeyFile: t.DialKeyFile, CRLFile: t.CRLFile, AllowedCNs: t.AllowedNames,
		AllowedHostnames: t.AllowedHosts,
	}
	if t.TLSVersions == nil {
		return info, nil
	}
	var errs [3]error
	info.MinVersion, errs[0] = tlsutil.GetTLSVersion(t.Min)
	info.MaxVersion, errs[1] = tlsutil.GetTLSVersion(t.Max)
	info.CipherSuites, errs[2] = tlsutil.GetCipherSuites(t.Ciphers)
	return info, errors.Join(errs[:]...)
}
