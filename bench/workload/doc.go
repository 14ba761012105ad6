// Package workload generates the requests of a benchmark's clients: the operation, its key, the size of its value,
// and when it is due.
//
// Everything is drawn from a seed: the same specification, seed and client have the same operations in every run.
// Only [Keys] named "latest" and inserts depend on the progress of all clients of a run. Drawing an operation
// allocates nothing.
//
// Read it in this order:
//
//	workload.go  the specification, and the generator of one client's operations
//	mix.go       shares of the operations; YCSB's workloads A–F
//	keys.go      distributions of keys: uniform, conflict, normal, zipf, exponential, latest
//	zipf.go      Zipf's distribution by rejection and inversion, for any skew
//	sizes.go     sizes of values
//	frontier.go  how many keys were inserted
//	pace.go      when operations are due: open loop and throttle
//	parse.go     name:parameter=value, as the command line has it
//
// Imports nothing of braid.
package workload
