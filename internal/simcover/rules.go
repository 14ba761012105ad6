package main

// room is a package whose decisions must run in the simulator.
type room struct {
	path string
	// least is the share of statements, in percent, that must run. It is the share reached so far, less
	// one, because every change of the simulator moves it a little. The aim is 90 in every room.
	least float64
}

var rooms = []room{
	{"member", 91},
	{"order", 93},
	{"protocol/raft", 93},
	{"protocol/paxos", 94},
	{"protocol/epaxos", 90},
	{"protocol/wpaxos", 90},
	{"protocol/quorum", 90},
	{"wal", 89},
	{"datadir", 80},
}

// apart are files that do not count, with the reason.
var apart = map[string]string{
	"wal/writer.go":           "the goroutine that executes commits.go, which counts",
	"protocol/raft/check.go":  "invariants: in a program without faults nothing is found",
	"protocol/raft/config.go": "which settings are refused before there is a member",
	"wal/inspect.go":          "a tool for operators; no running member calls it",
	"datadir/furthest.go":     "the same, of members that do not run",
	"wal/bodyinspect.go":      "a tool for operators; no running member calls it",
	"wal/gather_linux.go":     "one system call for many buffers; the simulated disk has no system calls",
	"wal/gather_other.go":     "the same for other systems",
	"member/errors.go":        "the words of errors",
	"wal/errors.go":           "the words of errors",
	"member/mutant.go":        "names",
	"order/mutant.go":         "names",
	"wal/mutant.go":           "names",
	"protocol/raft/mutant.go": "names",

	"protocol/raft/lanemutant.go": "names",

	"protocol/quorum/tolerance.go": "what operators are told when a member starts; no member decides by it",

	"protocol/epaxos/check.go":    "invariants, as above",
	"protocol/epaxos/mutant.go":   "names",
	"protocol/wpaxos/mutant.go":   "names",
	"protocol/paxos/check.go":     "invariants, as above",
	"protocol/paxos/isscheck.go":  "invariants, as above",
	"protocol/paxos/mutant.go":    "names",
	"protocol/paxos/issmutant.go": "names",
}

// silent are methods that do not count. Check finds nothing in a program without faults. The others
// say in words what was decided.
var silent = map[string]bool{"Check": true, "check": true, "Error": true, "Unwrap": true, "String": true}

// forMutant is in the comments of functions that only mutants run. Such functions do not count.
const forMutant = "for a mutant"

// campaign is a part of the measured run.
type campaign struct {
	cluster []string
	seeds   string
}

// campaigns are the measured run: all protocols, each with few seeds. The run does not look for
// violations.
var campaigns = []campaign{
	{[]string{"--protocol", "raft", "--nodes", "3"}, "1-800"},
	{[]string{"--protocol", "raft", "--nodes", "5"}, "1-100"},
	{[]string{"--protocol", "craft", "--nodes", "5"}, "1-300"},
	{[]string{"--protocol", "craft", "--nodes", "7"}, "1-30"},
	{[]string{"--protocol", "rs-raft", "--nodes", "5"}, "1-40"},
	{[]string{"--protocol", "niagara", "--instances", "3", "--nodes", "3"}, "1-120"},
	{[]string{"--protocol", "niagara", "--instances", "3", "--placement", "code", "--nodes", "5"}, "1-60"},
	{[]string{"--protocol", "multi-raft", "--nodes", "3"}, "1-100"},
	{[]string{"--protocol", "lcr", "--nodes", "3"}, "1-400"},
	{[]string{"--protocol", "lcr", "--nodes", "5"}, "1-60"},
	{[]string{"--protocol", "lcr", "--placement", "code", "--nodes", "5"}, "1-40"},
	{[]string{"--protocol", "multi-paxos", "--nodes", "3"}, "1-200"},
	{[]string{"--protocol", "multi-paxos", "--nodes", "5", "--relays", "2"}, "1-40"},
	{[]string{"--protocol", "multi-paxos", "--nodes", "5", "--quorums", "4/2"}, "1-20"},
	{[]string{"--protocol", "multi-paxos", "--nodes", "4", "--quorums", "grid:2"}, "1-30"},
	{[]string{"--protocol", "iss", "--nodes", "6", "--quorums", "zones:2/0/1"}, "1-10"},
	{[]string{"--protocol", "iss", "--nodes", "3"}, "1-150"},
	{[]string{"--protocol", "iss", "--nodes", "5"}, "1-20"},
	{[]string{"--protocol", "iss", "--nodes", "5", "--relays", "2"}, "1-15"},
	{[]string{"--protocol", "iss", "--nodes", "6", "--quorums", "grid:2"}, "1-10"},
	{[]string{"--protocol", "epaxos", "--nodes", "3"}, "1-200"},
	{[]string{"--protocol", "epaxos", "--nodes", "5"}, "1-40"},
	{[]string{"--protocol", "epaxos", "--nodes", "9"}, "1-6"},
	{[]string{"--protocol", "wpaxos", "--nodes", "3"}, "1-60"},
	{[]string{"--protocol", "wpaxos", "--nodes", "5", "--quorums", "zones:2/0/1"}, "1-20"},
	{[]string{"--protocol", "wpaxos", "--nodes", "6", "--quorums", "zones:3/0/1"}, "1-15"},
	{[]string{"--protocol", "slotpaxos", "--nodes", "3"}, "1-600"},
	{[]string{"--protocol", "slotpaxos", "--nodes", "5"}, "1-100"},
}
