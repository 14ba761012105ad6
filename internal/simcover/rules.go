package main

import "github.com/braidlog/braid/internal/sim/count"

// countedPackage is a package whose decisions must run in the simulator.
type countedPackage struct {
	path string
	// least is the share of statements, in percent, that must run. It is the share reached so far, less one, because every
	// change of the simulator moves it a little. The aim is 90 in every package.
	least float64
}

var measured = []countedPackage{
	{"internal/member", 91},
	{"internal/order", 93},
	{"internal/protocol/raft", 93},
	{"internal/protocol/raft/message", 87}, // no part of a message is damaged where the frame is not
	{"internal/protocol/raft/raftlog", 93},
	{"internal/protocol/raft/tracker", 90},
	{"internal/protocol/raft/members", 93},
	{"internal/protocol/raft/code", 90},
	{"internal/protocol/raft/effects", 93},
	{"internal/protocol/raft/lane", 93},
	{"internal/protocol/paxos", 94},
	{"internal/protocol/paxos/relay", 94},
	{"internal/protocol/multipaxos", 94},
	{"internal/protocol/iss", 94},
	{"internal/protocol/epaxos", 90},
	{"internal/protocol/wpaxos", 90},
	{"protocol/quorum", 90},
	{"internal/wal", 89},
	{"internal/datadir", 84},
}

// parts are the folders of which each counts with the one above it.
var parts = []string{
	"internal/member/intake", "internal/member/instance", "internal/member/apply", "internal/member/body",
	"internal/member/snapshot",
	"internal/member/damage", "internal/member/lifecycle", "internal/member/cluster",
}

// apart are files that do not count, with the reason.
var apart = map[string]string{
	"internal/wal/writer.go":           "the goroutine that executes commits.go, which counts",
	"internal/protocol/raft/check.go":  "invariants: in a program without faults nothing is found",
	"internal/protocol/raft/config.go": "which settings are refused before there is a member",
	"internal/wal/inspect.go":          "a tool for operators; no running member calls it",
	"internal/datadir/furthest.go":     "the same, of members that do not run",
	"internal/datadir/inspect.go":      "the same, of a directory that is not opened",
	"internal/wal/bodyinspect.go":      "a tool for operators; no running member calls it",
	"internal/wal/gather_linux.go":     "one system call for many buffers; the simulated disk has no system calls",
	"internal/wal/gather_other.go":     "the same for other systems",
	"internal/member/errors.go":        "the words of errors",
	"internal/wal/errors.go":           "the words of errors",
	"internal/member/mutant.go":        "names",
	"internal/order/mutant.go":         "names",
	"internal/wal/mutant.go":           "names",
	"internal/protocol/raft/mutant.go": "names",

	"internal/protocol/raft/code/mutant.go":    "names",
	"internal/protocol/raft/members/mutant.go": "names",
	"internal/protocol/raft/lane/mutant.go":    "names",
	"internal/protocol/raft/tracker/check.go":  "invariants, as above",
	"internal/protocol/raft/lane/behind.go":    "a tool for operators; no running member calls it",
	"internal/protocol/raft/members/check.go":  "invariants, as above",
	"internal/protocol/raft/lane/check.go":     "invariants, as above",

	"protocol/quorum/tolerance.go": "what operators are told when a member starts; no member decides by it",

	"internal/protocol/epaxos/check.go":      "invariants, as above",
	"internal/protocol/epaxos/mutant.go":     "names",
	"internal/protocol/wpaxos/mutant.go":     "names",
	"internal/protocol/paxos/behind.go":      "a tool for operators; no running member calls it",
	"internal/protocol/multipaxos/check.go":  "invariants, as above",
	"internal/protocol/multipaxos/mutant.go": "names",
	"internal/protocol/iss/check.go":         "invariants, as above",
	"internal/protocol/iss/mutant.go":        "names",
}

// silent are methods that do not count. Check finds nothing in a program without bugs. The others format text.
var silent = map[string]bool{"Check": true, "check": true, "Error": true, "Unwrap": true, "String": true}

// forMutant is in the comments of functions that only mutants run. Such functions do not count.
const forMutant = "for a mutant"

// campaign is a kind of cluster, and how many seeds of it are run, from seed 1 on.
type campaign struct {
	cluster string // flags of braid sim
	counted int    // seeds that also count statements; the run is a third slower
	seeds   int    // all seeds
	// brings are the counters that must have reached a minimum in all seeds.
	brings []count.Needs
	often  int
}

// seldom are counters of a campaign for which less is enough.
var seldom = map[string]int{
	// Several members seldom send one member a snapshot, and few runs with bodies have rot.
	"--protocol raft --nodes 3: snapshots_that_waited_for_another_one":  4,
	"--protocol craft --nodes 5: snapshots_that_waited_for_another_one": 4,
	"--protocol craft --nodes 5: damaged_snapshots_found":               4, // few runs with bodies have rot
	// Two changes that meet need a fitted run, a change of a fitter and an operator at once.
	"--protocol raft --nodes 3: fit_overtaken": 4,
}

// campaigns are all protocols. The shares of packages are those of the seeds that are counted.
var campaigns = []campaign{
	{cluster: "--protocol raft --nodes 3", counted: 800, seeds: 1600, brings: []count.Needs{count.Any, count.Bodiless},
		often: 15},
	{cluster: "--protocol raft --nodes 5", counted: 100, seeds: 250},
	{cluster: "--protocol raft --instances 1 --nodes 3", counted: 100, seeds: 100},
	{cluster: "--protocol craft --nodes 4", counted: 0, seeds: 120},
	{cluster: "--protocol craft --nodes 5", counted: 300, seeds: 850, brings: []count.Needs{count.Any, count.Coded},
		often: 10},
	{cluster: "--protocol craft --nodes 7", counted: 30, seeds: 60},
	{cluster: "--protocol rs-raft --nodes 5", counted: 40, seeds: 120},
	{cluster: "--protocol niagara --instances 3 --nodes 3", counted: 120, seeds: 500, brings: []count.Needs{count.Merged},
		often: 40},
	{cluster: "--protocol niagara --instances 4 --nodes 5", counted: 0, seeds: 80},
	{cluster: "--protocol niagara --instances 3 --placement code --nodes 4", counted: 0, seeds: 80},
	{cluster: "--protocol niagara --instances 3 --placement code --nodes 5", counted: 60, seeds: 120},
	{cluster: "--protocol iss --instances 3 --nodes 3", counted: 60, seeds: 300},
	{cluster: "--protocol iss --instances 2 --nodes 5", counted: 0, seeds: 80},
	{cluster: "--protocol multi-raft --nodes 3", counted: 100, seeds: 120},
	{cluster: "--protocol lcr --nodes 3", counted: 400, seeds: 400},
	{cluster: "--protocol lcr --nodes 5", counted: 60, seeds: 120},
	{cluster: "--protocol lcr --placement code --nodes 5", counted: 40, seeds: 120},
	{cluster: "--protocol multi-paxos --nodes 3", counted: 200, seeds: 300},
	{cluster: "--protocol multi-paxos --nodes 5", counted: 0, seeds: 100},
	{cluster: "--protocol multi-paxos --nodes 5 --relays 2", counted: 40, seeds: 40},
	{cluster: "--protocol multi-paxos --nodes 5 --quorums 4/2", counted: 20, seeds: 20},
	{cluster: "--protocol multi-paxos --nodes 4 --quorums grid:2", counted: 30, seeds: 30},
	{cluster: "--protocol iss --nodes 3", counted: 150, seeds: 250},
	{cluster: "--protocol iss --nodes 5", counted: 20, seeds: 100},
	{cluster: "--protocol iss --nodes 5 --relays 2", counted: 15, seeds: 15},
	// From seed 91 on voters change with bodies.
	{cluster: "--protocol iss --nodes 5 --quorums zones:2/0/1", counted: 105, seeds: 105,
		brings: []count.Needs{count.Zoned}, often: 40},
	{cluster: "--protocol iss --nodes 6 --quorums grid:2", counted: 25, seeds: 25},
	{cluster: "--protocol iss --nodes 6 --quorums zones:2/0/1", counted: 10, seeds: 10},
	{cluster: "--protocol epaxos --nodes 3", counted: 200, seeds: 200},
	{cluster: "--protocol epaxos --nodes 5", counted: 40, seeds: 60},
	{cluster: "--protocol epaxos --nodes 9", counted: 6, seeds: 10},
	{cluster: "--protocol wpaxos --nodes 3", counted: 60, seeds: 250},
	{cluster: "--protocol wpaxos --nodes 5", counted: 0, seeds: 60},
	{cluster: "--protocol wpaxos --nodes 5 --quorums zones:2/0/1", counted: 20, seeds: 20},
	{cluster: "--protocol wpaxos --nodes 6 --quorums zones:3/0/1", counted: 15, seeds: 40},
	{cluster: "--protocol slotpaxos --nodes 3", counted: 600, seeds: 600},
	{cluster: "--protocol slotpaxos --nodes 5", counted: 100, seeds: 100},
}
