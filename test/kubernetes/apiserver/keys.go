package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
)

// keyBits is the size of the key that signs tokens of service accounts.
const keyBits = 2048

// keys are the files that programs of Kubernetes need to trust each other.
type keys struct {
	serviceAccounts string // the key of service accounts
	tokens          string // the token of an administrator
	certificates    string // folder for the certificate of kube-apiserver
	config          string // address, certificate and token, for kube-controller-manager
}

// certificate is the file that kube-apiserver writes its certificate to.
func (k *keys) certificate() string { return filepath.Join(k.certificates, "apiserver.crt") }

// writeKeys writes the files to a folder.
func writeKeys(dir, url, token string) (*keys, error) {
	k := &keys{
		serviceAccounts: filepath.Join(dir, "service-accounts.key"), tokens: filepath.Join(dir, "tokens.csv"),
		certificates: filepath.Join(dir, "certificates"), config: filepath.Join(dir, "config.json"),
	}
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	if err := os.WriteFile(k.serviceAccounts, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, err
	}
	line := token + ",admin,admin,\"system:masters\"\n"
	if err := os.WriteFile(k.tokens, []byte(line), 0o600); err != nil {
		return nil, err
	}
	config, err := json.Marshal(named{
		"apiVersion": "v1", "kind": "Config", "current-context": "admin",
		"clusters": []named{{"name": "here", "cluster": named{
			"server": url, "certificate-authority": k.certificate()}}},
		"users":    []named{{"name": "admin", "user": named{"token": token}}},
		"contexts": []named{{"name": "admin", "context": named{"cluster": "here", "user": "admin"}}},
	})
	if err != nil {
		return nil, err
	}
	return k, os.WriteFile(k.config, config, 0o600)
}
