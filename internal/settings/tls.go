package settings

import (
	"crypto/tls"
	"errors"
	"fmt"

	"go.etcd.io/etcd/client/pkg/v3/transport"
)

func (s *Settings) checkTLS() error {
	var errs []error
	for _, side := range []struct {
		prefix string
		tls    TLS
	}{{"--", s.ClientTLS}, {"--peer-", s.PeerTLS}} {
		t := side.tls
		if (t.CertFile == "") != (t.KeyFile == "") {
			errs = append(errs, fmt.Errorf("%scert-file and %skey-file go together", side.prefix, side.prefix))
		}
		if t.ClientCertAuth && t.TrustedCAFile == "" {
			errs = append(errs, fmt.Errorf("%sclient-cert-auth needs %strusted-ca-file", side.prefix, side.prefix))
		}
		if !t.Enabled() && t.TrustedCAFile != "" {
			errs = append(errs, fmt.Errorf("%strusted-ca-file is given without %scert-file", side.prefix, side.prefix))
		}
	}
	if s.PeerTLS.Enabled() && s.PeerTLS.TrustedCAFile == "" {
		errs = append(errs, errors.New("--peer-trusted-ca-file is missing: members show each other certificates"))
	}
	return errors.Join(errs...)
}

// Server loads the certificates for serving clients; nil without TLS. Every connection
// gets the certificate that the files hold then.
func (t TLS) Server() (*tls.Config, error) {
	if !t.Enabled() {
		return nil, nil
	}
	return t.info().ServerConfig()
}

// Mutual loads the certificates for links between members, where each side shows one and
// demands one; nil without TLS.
func (t TLS) Mutual() (*tls.Config, error) {
	if !t.Enabled() {
		return nil, nil
	}
	config, err := t.info().ServerConfig()
	if err != nil {
		return nil, err
	}
	client, err := t.info().ClientConfig()
	if err != nil {
		return nil, err
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.RootCAs, config.GetClientCertificate = client.RootCAs, client.GetClientCertificate
	config.NextProtos = nil
	return config, nil
}

func (t TLS) info() transport.TLSInfo {
	return transport.TLSInfo{CertFile: t.CertFile, KeyFile: t.KeyFile, TrustedCAFile: t.TrustedCAFile, ClientCertAuth: t.ClientCertAuth}
}
