// Package testcert makes certificates for tests, in files. Only tests import it.
package testcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Authority signs certificates and revokes them. All are valid for an hour.
type Authority struct {
	Cert *x509.Certificate

	t    *testing.T
	dir  string
	key  *ecdsa.PrivateKey
	last int64 // serial number
}

// New makes an authority, whose certificate is in the file ca.crt.
func New(t *testing.T) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: t.TempDir()}
	a.key = a.newKey()
	a.Cert = a.template("authority")
	a.Cert.IsCA, a.Cert.BasicConstraintsValid, a.Cert.SubjectKeyId = true, true, []byte{1}
	a.Cert.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	var err error
	a.Cert, err = x509.ParseCertificate(a.sign("ca.crt", a.Cert, a.key))
	require.NoError(t, err)
	return a
}

// Path returns the name of the authority's file with a name, such as ca.crt.
func (a *Authority) Path(name string) string { return filepath.Join(a.dir, name) }

// Issue writes NAME.crt and NAME.key for servers and clients at 127.0.0.1 or a host of that name, which is also the
// common name.
func (a *Authority) Issue(name string) (serial *big.Int) {
	a.t.Helper()
	key, cert := a.newKey(), a.template(name)
	cert.DNSNames, cert.IPAddresses = []string{name}, []net.IP{net.IPv4(127, 0, 0, 1)}
	cert.KeyUsage = x509.KeyUsageDigitalSignature
	cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	a.sign(name+".crt", cert, key)
	content, err := x509.MarshalECPrivateKey(key)
	require.NoError(a.t, err)
	a.write(name+".key", "EC PRIVATE KEY", content)
	return cert.SerialNumber
}

// Revoke writes the list of revoked certificates, the file crl.
func (a *Authority) Revoke(serials ...*big.Int) {
	a.t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), NextUpdate: time.Now().Add(time.Hour)}
	for _, s := range serials {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: s, RevocationTime: time.Now()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.Cert, a.key)
	require.NoError(a.t, err)
	require.NoError(a.t, os.WriteFile(a.Path("crl"), der, 0o600))
}

func (a *Authority) newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	return key
}

// template returns a certificate with the next serial number.
func (a *Authority) template(name string) *x509.Certificate {
	a.last++
	return &x509.Certificate{SerialNumber: big.NewInt(a.last), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
}

// sign signs the certificate of a key, writes it to a file and returns it.
func (a *Authority) sign(file string, cert *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	der, err := x509.CreateCertificate(rand.Reader, cert, a.Cert, &key.PublicKey, a.key)
	require.NoError(a.t, err)
	a.write(file, "CERTIFICATE", der)
	return der
}

func (a *Authority) write(name, kind string, der []byte) {
	require.NoError(a.t, os.WriteFile(a.Path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}
