package main

// room names a package whose decisions must run in the simulator.
type room struct {
	path string
	// least is the share of statements, in percent, that must run. It is the share reached so far, less one, because every
	// change of the simulator moves it a little. The aim is 90 in every package.
	least float64
}

var rooms = []room{
	{"internal/member", 91},
	{"internal/order", 93},
	{"internal/protocol/raft", 93},
	{"internal/protocol/raft/message", 87}, // no part of a message is damaged where the frame is not
	{"internal/protocol/raft/raftlog", 93},
	{"internal/protocol/raft/tracker", 93},
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
	"internal/member/intake", "internal/member/instance", "internal/member/apply", "internal/member/body", "internal/member/snapshot",
	"internal/member/damage", "internal/member/lifecycle", "internal/member/cluster",
}

// apart are files that do not count, with the reason.
var apart = map[string]string{
	"internal/wal/writer.go":           "the goroutine that executes commits.go, which counts",
	"internal/protocol/raft/check.go":  "invariants: in a program without faults nothing is found",
	"internal/protocol/raft/config.go": "which settings are refused before there is a member",
	"internal/wal/inspect.go":          "a tool for operators; no running member calls it",
	"internal/datadir/furthest.go":     "the same, of members that do not run",
	"internal/datadir/tell.go":         "the same, of a directory that is not opened",
	"internal/wal/bodyinspect.go":      "a tool for operators; no running member calls it",
	"internal/wal/gather_linux.go":     "one system call for many buffers; the simulated disk has no system calls",
	"internal/wal/gather_other.go":     "the same for other systems",
	"internal/member/errors.go":        "the words of errors",
	"internal/wal/errors.go":           "the words of errors",
	"internal/member/mutant.go":        "names",
	"internal/order/mutant.go":         "names",
	"internal/wal/mutant.go":           "names",
	"internal/protocol/raft/mutant.go": "names",

	"internal/protocol/raft/lanemutant.go": "names",

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

// silent are methods that do not count. Check finds nothing in a program without faults. The others
// say in words what was decided.
var silent = map[string]bool{"Check": true, "check": true, "Error": true, "Unwrap": true, "String": true}

// forMutant is in the comments of functions that only mutants run. Such functions do not count.
const forMutant = "for a mutant"

// campaign is a kind of cluster, and how many seeds of it are run, from seed 1 on.
type campaign struct {
	cluster string // flags of braid sim
	counted int    // seeds that also count statements; the run is a third slower
	seeds   int    // all seeds
}

// campaigns are all protocols. The shares of packages are those of the seeds that are counted.
var campaigns = []campaign{
	{"--protocol raft --nodes 3", 800, 1200},
	{"--protocol raft --nodes 5", 100, 500},
	{"--protocol craft --nodes 4", 0, 250},
	{"--protocol craft --nodes 5", 300, 350},
	{"--protocol craft --nodes 7", 30, 100},
	{"--protocol rs-raft --nodes 5", 40, 250},
	{"--protocol niagara --instances 3 --nodes 3", 120, 500},
	{"--protocol niagara --instances 4 --nodes 5", 0, 200},
	{"--protocol niagara --instances 3 --placement code --nodes 4", 0, 150},
	{"--protocol niagara --instances 3 --placement code --nodes 5", 60, 200},
	{"--protocol multi-raft --nodes 3", 100, 200},
	{"--protocol lcr --nodes 3", 400, 400},
	{"--protocol lcr --nodes 5", 60, 200},
	{"--protocol lcr --placement code --nodes 5", 40, 200},
	{"--protocol multi-paxos --nodes 3", 200, 500},
	{"--protocol multi-paxos --nodes 5", 0, 200},
	{"--protocol multi-paxos --nodes 5 --relays 2", 40, 40},
	{"--protocol multi-paxos --nodes 5 --quorums 4/2", 20, 20},
	{"--protocol multi-paxos --nodes 4 --quorums grid:2", 30, 30},
	{"--protocol iss --nodes 3", 150, 400},
	{"--protocol iss --nodes 5", 20, 200},
	{"--protocol iss --nodes 5 --relays 2", 15, 15},
	{"--protocol iss --nodes 5 --quorums zones:2/0/1", 105, 105}, // from seed 91 on voters change with bodies
	{"--protocol iss --nodes 6 --quorums grid:2", 25, 25},
	{"--protocol iss --nodes 6 --quorums zones:2/0/1", 10, 10},
	{"--protocol epaxos --nodes 3", 200, 400},
	{"--protocol epaxos --nodes 5", 40, 100},
	{"--protocol epaxos --nodes 9", 6, 10},
	{"--protocol wpaxos --nodes 3", 60, 500},
	{"--protocol wpaxos --nodes 5", 0, 100},
	{"--protocol wpaxos --nodes 5 --quorums zones:2/0/1", 20, 20},
	{"--protocol wpaxos --nodes 6 --quorums zones:3/0/1", 15, 60},
	{"--protocol slotpaxos --nodes 3", 600, 600},
	{"--protocol slotpaxos --nodes 5", 100, 100},
}
