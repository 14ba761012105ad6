package main

// What is run: with these imports go.mod and go.sum list all that it needs.
import (
	_ "k8s.io/apiserver/pkg/storage/etcd3"
	_ "k8s.io/apiserver/pkg/storage/etcd3/metrics"
	_ "k8s.io/apiserver/pkg/storage/etcd3/preflight"
	_ "k8s.io/apiserver/pkg/storage/etcd3/testing"
)
