// Command kubernetes runs Kubernetes' own tests of its store, k8s.io/apiserver/pkg/storage/etcd3, on braid. They come
// unmodified as a Go module. Each of them starts clusters through etcd's package embed, and here this is a package that
// starts braid (etcdserver/embed, by a replacement in go.mod).
//
//	go -C test/kubernetes run . --protocol raft,iss --nodes 1,3
//	go -C test/kubernetes run . --protocol craft --nodes 3 -- -run TestWatch
//
// It builds braid, runs the tests on each kind of cluster, and prints how many passed. What follows -- are flags of
// go test.
//
//   - main.go runs the tests.
//   - result.go counts them.
//   - manifests_test.go checks the manifests of deploy/kubernetes, by Kubernetes' types and, if one runs, by
//     kube-apiserver.
//   - imports_test.go imports what is run, so that go.mod and go.sum are complete.
//
// Folder apiserver runs kube-apiserver and kube-controller-manager themselves, and is a module of its own, too.
//
// It is a module of its own, so that braid does not require Kubernetes. It imports nothing of braid: braid requires
// etcd's server as it is.
package main
