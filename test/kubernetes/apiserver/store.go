package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// registryPrefix is where kube-apiserver stores the objects of the load.
const registryPrefix = "/registry/configmaps/" + loadNamespace + "/"

// readStore returns the objects of the load that a member of the store has, by name, as kube-apiserver encoded them.
func readStore(ctx context.Context, endpoint string) (map[string][]byte, error) {
	const limit = 30 * time.Second
	store, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: limit})
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, err := store.Get(ctx, registryPrefix, clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	all := make(map[string][]byte, len(answer.Kvs))
	for _, kv := range answer.Kvs {
		if name := strings.TrimPrefix(string(kv.Key), registryPrefix); name != rootCertificate {
			all[name] = kv.Value
		}
	}
	return all, nil
}

// differences compares the objects that kube-apiserver has with those in the store.
func differences(present map[string]string, stored map[string][]byte) (wrong []string) {
	for name, value := range present {
		if encoded, ok := stored[name]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s is not in the store", name))
		} else if !bytes.Contains(encoded, []byte(value)) {
			wrong = append(wrong, fmt.Sprintf("%s has another value in the store than %q", name, value))
		}
	}
	for name := range stored {
		if _, ok := present[name]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s is in the store alone", name))
		}
	}
	return wrong
}
