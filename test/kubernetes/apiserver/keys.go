package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
)

// keyBits is the size of the key that signs tokens of service accounts.
const keyBits = 2048

// writeKeys writes the key of service accounts, and returns flags that name it and the file with the token of an
// administrator.
func writeKeys(dir, token string) ([]string, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, err
	}
	keyFile, tokenFile := filepath.Join(dir, "service-accounts.key"), filepath.Join(dir, "tokens.csv")
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	if err := os.WriteFile(keyFile, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, err
	}
	line := token + ",admin,admin,\"system:masters\"\n"
	return []string{
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + keyFile,
		"--service-account-signing-key-file=" + keyFile, "--token-auth-file=" + tokenFile,
	}, os.WriteFile(tokenFile, []byte(line), 0o600)
}
