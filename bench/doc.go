// Package bench measures replicated logs and key-value servers: braid's and its peers', with the same load, on the
// same disk, over the same loopback.
//
// Read it in this order:
//
//	cluster.go     a contestant: a cluster of members in the process of its load
//	machine.go     the state machine that every member of every contestant drives
//	load.go        the load: an open window, a closed loop, or a fixed rate
//	log.go         one run on one contestant: start, warm up, measure, verify
//	idle.go        one run without commands: what the members use then
//	contest.go     several contestants, alternating in rounds; medians and ratios
//	result.go      the figures, as JSON and as a table
//	trust.go       the warnings about figures that are not reliable
//	braid.go       the contestants: braid …
//	rival.go       … and other libraries, in the process of a program of their own (module bench/rivals)
//	limit.go       … and the limit, which is no rival (package limit)
//	share.go       how contestants compare with each other, and with the limit
//	device_*.go    the bytes that reached the device of the data
//	kinds*.go      the servers that are started as processes, runs on them, and the results of all rounds
//	servers.go     a cluster of such processes (process.go), whose members can be killed and started again
//	kv*.go         load on etcd v3 endpoints, and clusters of server processes for it
//	watch*.go      puts under many watches, whose events are compared with the puts
//	backup*.go     backups of a member, and restoring them
//	defrag*.go     puts while a member defragments its database
//	kubernetes*.go load like that of Kubernetes
//	switch*.go     clusters of server processes that change their protocol under load
//
// A result counts only if the run was correct: at the end all members must have applied the same commands in the same
// order, and each acknowledged command exactly once.
//
// The package may import the root package, server clients, package limit, and the internal packages of braid that
// internal/lint lists.
package bench
