package paper

import (
	"fmt"
	"time"
)

// The experiments of "LCR" (leader confirmation replication), section VI.
//
// The paper's setup: Raft of brpc, with RocksDB, on five to nine servers, with clients on two more and delays by
// Linux's tc. Its text does not have the values of the figures, only statements about them.

const lcrPaper = "Leader Confirmation Replication for Millisecond Consensus in Private Chains (LCR)"

const (
	seriesLCR       = "lcr"
	seriesMultiRaft = "multi-raft"
)

const (
	// lcrClients and lcrBytes are the paper's, lcrWorkers is its limit of requests in progress to a follower.
	lcrClients = 40
	lcrBytes   = 80
	lcrWorkers = 16
	// lcrHeartbeat is the paper's; its election timeout is twice ours.
	lcrHeartbeat = 500 * time.Millisecond
	// lcrLog is the size of the log between snapshots.
	lcrLog = 16 << 20
	// manyClients is the number of clients with batches, which 40 would not fill.
	manyClients = 1000
)

// lcrSetup is a cluster with the paper's settings: one command in an entry, one entry in a frame of the leader, and
// at most 16 of them in progress to a follower.
func lcrSetup(protocol string, members int) Setup {
	s := lcrBatched(protocol, members)
	s.NoBatching, s.Depth = true, lcrWorkers
	return s
}

// lcrBatched is the same with braid's own batches.
func lcrBatched(protocol string, members int) Setup {
	return Setup{Protocol: protocol, Members: members, Heartbeat: lcrHeartbeat, SnapshotBytes: lcrLog}
}

// lcrProcesses has the paper's settings with members in separate processes.
func lcrProcesses(protocol string, members int) Setup {
	s := lcrSetup(protocol, members)
	s.Processes = true
	return s
}

// batchedProcesses is the same with braid's own batches.
func batchedProcesses(protocol string, members int) Setup {
	s := lcrBatched(protocol, members)
	s.Processes = true
	return s
}

// lcrNet is a link with a one-way latency in milliseconds, and the paper's jitter if there is a latency.
func lcrNet(latency float64) string {
	if latency == 0 {
		return ""
	}
	return fmt.Sprintf("latency=%gms,jitter=%gms", latency, min(latency, 0.1))
}

// seriesOf names lcr's series with a share of blind commands.
func seriesOf(share float64) string { return fmt.Sprintf("%s, %.0f %%", seriesLCR, 100*share) }

// bound is an upper bound of a cluster of LCR, compared with one of Raft. Latencies are in round trips between
// members, rates in commands for each round trip.
//
// A command that a member replicates itself takes one round trip. A command that goes through the leader takes one
// more, unless its client is connected to the leader. The leader has a given number of workers; a command that goes
// through the leader keeps one worker busy for a round trip. Signals, disks and processors are not counted.
type bound struct {
	members, clients, workers float64
	share                     float64 // of blind commands
}

func lcrBound(members int, share float64) bound {
	return bound{float64(members), lcrClients, lcrWorkers, share}
}

// throughLeader is the share of commands that go through the leader: clients are at all members.
func (b *bound) throughLeader() float64 { return 1 - b.share*(b.members-1)/b.members }

// free is a command's mean latency without a wait for a worker.
func (b *bound) free() float64 { return 1 + (1-b.share)*(b.members-1)/b.members }

// rate is the throughput of clients in closed loops.
func (b *bound) rate() float64 { return min(b.workers/b.throughLeader(), b.clients/b.free()) }

// transactional is the mean latency of commands that are not blind.
func (b *bound) transactional() float64 {
	wait := (b.clients/b.rate() - b.free()) / b.throughLeader()
	return wait + 1 + (b.members-1)/b.members
}

// raft is the same without blind commands.
func (b *bound) raft() *bound {
	r := *b
	r.share = 0
	return &r
}

// leaderBound is the ratio to Raft's throughput if the leader's workers limit both: 1/(1 − x(N−1)/N).
func (b *bound) leaderBound() float64 { return 1 / b.throughLeader() }

// closedLoop is the same for a given number of clients.
func (b *bound) closedLoop() float64 { return b.rate() / b.raft().rate() }

// quicker is the reduction of a transactional command's latency from Raft's, in percent.
func (b *bound) quicker() float64 {
	return 100 * (1 - b.transactional()/b.raft().transactional())
}

// lcrText is common to the experiments.
const (
	lcrText = "All members and all clients run in this process, with real fsyncs and TCP over loopback, and " +
		"share the cores and the disk of this machine. Contestants are one program: raft and lcr have the same batching, " +
		"disk, codec and links, and clients on all members alike. Clients stand beside their member, so the paper's " +
		"latency to clients is 0. Latency between members is one way, and is changed on the living cluster. Jitter is 0.1 " +
		"ms, evenly distributed around the latency; the paper's 30 % is the correlation that tc gives it, which is not " +
		"emulated. A transactional command is a plain proposal. A blind (non-transactional) one is answered when it is " +
		"accepted, unless something else is said; raft takes it as any other."
	lcrProcessText = "Each member is a process of its own on this machine, with real fsyncs and TCP over loopback; all " +
		"of them share its cores and its disk. Clients are in the process that measures, alike many at each member, to " +
		"which they speak over TCP. Contestants are one program: raft and lcr have the same batching, disk, codec and " +
		"links. Latency between members is one way, 5 ms; to clients there is none. A transactional command is a plain " +
		"proposal. A blind (non-transactional) one is answered when it is accepted; raft takes it as any other."
	lcrWorkText = "As in the paper there is no batching: an entry has one command of 80 bytes, a frame from the leader " +
		"has one entry, and there are 40 clients in closed loops. The paper says that the leader's worker threads are what " +
		"limits it, and gives 16 requests to a follower under way at most. So W = 16 here: a leader has 16 frames under " +
		"way to a follower, each of which takes a round trip. The paper's heartbeat of 500 ms is kept."
	lcrMultiText = "Multi-raft is a group of raft for each member, which share connections and disk; each member leads " +
		"one. Keys are hashed over the groups, and each command touches one key of its own, so transactions stay within a " +
		"group. There is no order between groups. Workers and batches are each group's own, so with 16 workers for each " +
		"leader multi-raft has as many times that as there are members. A command goes through its group's leader, whether " +
		"it is blind or not."
	lcrBatchText = "The paper leaves batching out. With braid's own batches frames have many entries, entries many " +
		"commands, and the number of frames under way adapts; then the leader is not what limits closed loops, their " +
		"latency is."
)
