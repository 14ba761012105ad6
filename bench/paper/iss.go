package paper

import "fmt"

// The experiments of the thesis on ISS over Paxos, chapter 5.
//
// The thesis's setup: its own ISS, WPaxos and EPaxos in the Paxi library, on three and six servers of 16 threads in a
// local network, with six machines of 256 clients each. Its text does not have the values of the figures, only
// statements about them.

const issPaper = "An implementation of ISS over Paxos (thesis, in Portuguese)"

const (
	seriesISS         = "iss"
	seriesEPaxos      = "epaxos"
	seriesWPaxos      = "wpaxos"
	seriesMultiPaxos  = "multi-paxos"
	seriesPaxosLeader = "multi-paxos, at its leader"
)

const (
	// issLog is the size of the log between snapshots.
	issLog = 16 << 20
	// thesisRate is the rate of the thesis's own program on the machine on which these experiments were made first, in
	// commands/s, and thesisLow the load that the thesis calls low.
	thesisRate = 6000.0
	thesisLow  = 5400.0
	// issInflight is the maximal number of commands in progress. It is several times that of the thesis, which has 1,536
	// clients with one command each and no batches.
	issInflight = 10_000
)

var issMembers = []int{3, 6}

func issSetup(protocol string, members int) Setup {
	return Setup{Protocol: protocol, Members: members, SnapshotBytes: issLog}
}

func byRateOf(members int) string { return fmt.Sprintf("commands/s offered, %d members", members) }

// issText is common to the experiments.
const (
	issText = "All members and all clients run in this process, with real fsyncs and TCP over loopback, and share " +
		"the cores and the disk of this machine; the thesis had a machine of 16 threads for each server, and kept nothing " +
		"on a disk. Contestants are one program: they have the same batching, disk, codec and links, and clients on all " +
		"members alike. EPaxos and WPaxos, with which the thesis compares, are in iss-throughput alone; elsewhere " +
		"multi-paxos and raft are in their place."
	issRateText = "Commands come at a rate, to all members alike, whether or not the cluster keeps up, and latency " +
		"counts from when a command was due. What is due while 10,000 are under way is dropped. The thesis's clients wait " +
		"for their answers and are slowed down to a rate, so its latencies do not show what waits at the client."
	issForwarded = "With multi-paxos and raft a command that comes to another member goes to the leader and back, a " +
		"round trip more. A member of iss that leads proposes what its own clients bring, so nothing is passed on and " +
		"nobody waits for a bucket to come round, as in the thesis: there a command waits until its member leads its bucket."
)
