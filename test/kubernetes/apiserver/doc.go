// Command apiserver runs Kubernetes' kube-apiserver, built from its Go module, on a cluster of braid:
//
//	go -C test/kubernetes/apiserver run . --protocol iss --nodes 3
//
// It builds both, starts them on this machine, prints how to reach them, and runs until it is interrupted. The first
// build of kube-apiserver takes minutes.
//
//   - main.go builds, starts and stops.
//   - keys.go makes what kube-apiserver asks for: a key for service accounts, and a token for an administrator.
//
// It is a module of its own. go.mod replaces modules that Kubernetes keeps in its own repository by the published ones
// of the same version, and etcd's package embed by the one that starts braid (../etcdserver).
package main
