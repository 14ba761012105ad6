// Package paper runs the experiments of the papers that braid implements, and reports its figures next to the papers'
// own.
//
// An experiment is data: the settings that it compares, their work, its plots, the paper's figures and the paper's
// claims. One runner runs them all, in rounds that alternate between the contestants, and one report shows them. A
// new protocol needs a Setup with its name and a function that opens it; a new experiment needs an entry in
// list.go.
//
// Read it in this order:
//
//	list.go        the names of all experiments
//	experiment.go  what an experiment consists of
//	metric.go      the figures of runs, and their labels
//	raftopt*.go    the experiments of "Analysis of Optimization Ideas of Basic Raft"
//	craft*.go      those of "CRaft"
//	niagara*.go    those of NIAGARA, and braided.go, which is braid's own
//	lcr*.go        those of LCR
//	iss*.go        those of ISS over Paxos
//	run.go         the runner: clusters, rounds, time limit
//	target.go      what the runner loads: a cluster of braid's in this process
//	process.go     members in processes of their own, serving.go what these do, use.go what they use
//	write.go       a run that writes, and what is counted
//	burst.go       its load: exactly this many requests, timed one by one
//	window.go      a run that writes for a time, with some members stopped
//	faults.go      the same while members are killed, window by window
//	reads.go       a run that reads from a new leader
//	flow.go        a run at a rate, whether or not the cluster keeps up
//	web.go         members that serve a map by HTTP, and the clients of that
//	bare.go        the same without members: servers that answer at once
//	mix.go         clients whose commands are partly blind, or touch keys
//	fit*.go        a day of loads, and the log that fits itself: braid's own
//	day*.go        how such a day runs: its phases, clients and history, and what the cluster changes meanwhile; its
//	               figures as text
//	groups.go      members that order only commands of a key, or of a group of keys
//	links.go       links and leaders that change on a living cluster
//	readers.go     a run of strong reads, and writes between them
//	model.go       what is computed, because no machine here could measure it
//	machine.go     the state machine, whose applying can be made to cost something
//	result.go      medians, and the form in which all of it is kept
//	measure.go     how the figures of claims are computed
//	report.go      the files: JSON, CSV, SVG and the page
//	plot*.go       plots as SVG, with axis.go for their axes
//
// The package may import the root package, bench, protocol, internal/sim/scale, internal/transport/netspec and
// internal/ports.
package paper
