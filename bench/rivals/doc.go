// Command braid-rivals runs the libraries and servers that braid is compared with. braid bench starts it: build it
// next to braid with "go -C bench/rivals build -o ../../braid-rivals .". It is a module of its own, so that braid's
// requires none of them.
//
//	main.go        the subcommands of braid bench: a run of the log benchmark, or a member of an etcd cluster
//	etcdraft*.go   go.etcd.io/raft with etcd's log on disk
//	hashicorp.go   hashicorp/raft with its own log on disk
//	etcdserver.go  etcd itself
//
// The members of a library run in this process with the load, as those of braid's own protocols do in braid's: both
// are measured by package bench.
package main
