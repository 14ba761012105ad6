// Command apiserver runs Kubernetes' kube-apiserver and kube-controller-manager, built from their Go module, on
// clusters of braid and of etcd, in rounds that alternate. In each, clients write while members of the store are killed
// and started again. The result is the number of lost writes and wrong events, the longest pause of writes, and the
// work of the controller manager:
//
//	go -C test/kubernetes/apiserver run . --protocol raft,iss,etcd
//	go -C test/kubernetes/apiserver run . --protocol iss --serve
//
// It builds all programs, runs them on this machine, and ends them with itself, even if it is killed. The first build
// takes minutes. With --serve it prints how to reach kube-apiserver, and runs without load until it is interrupted.
//
//   - main.go has the flags.
//   - programs.go builds.
//   - parent.go ends the program with the go command that runs it.
//   - contest.go runs the rounds: start, load with kills, checks.
//   - plane.go starts both programs of Kubernetes, and keys.go writes the keys and tokens that they need.
//   - client.go sends requests to kube-apiserver, and object.go has the types of their contents.
//   - load.go writes ConfigMaps, and watch.go watches them.
//   - history.go compares the writes with the objects and with the events. store.go reads the store itself.
//   - kills.go kills members of the store.
//   - controllers.go creates work for the controller manager.
//   - result.go has the figures, as JSON and as a table.
//
// It is a module of its own, because folder kube is one: that requires Kubernetes, which braid does not. Clusters and
// rounds are those of braid's package bench.
package main
