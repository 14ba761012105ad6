package paper

// Metric is one figure of a run.
type Metric string

// The figures of runs.
const (
	// Runtime is the time from the first request until the last member has applied the last one.
	Runtime Metric = "runtime_ms"
	// Replicated is the time from the first request until all are committed, applied or not.
	Replicated Metric = "replicated_ms"
	Throughput Metric = "throughput_per_s"
	P50        Metric = "latency_p50_ms"
	P90        Metric = "latency_p90_ms"
	P99        Metric = "latency_p99_ms"
	// Of work with blind commands: latencies of those, and of the others.
	PlainP50  Metric = "transactional_p50_ms"
	PlainMean Metric = "transactional_mean_ms"
	BlindP50  Metric = "blind_p50_ms"
	BlindMean Metric = "blind_mean_ms"
	// PlainRate and BlindRate are their rates of answers.
	PlainRate Metric = "transactional_per_s"
	BlindRate Metric = "blind_per_s"
	// Of work with faults: throughput while a follower is dead, and under a new leader. Pauses are the longest time
	// without an answer: of any kind while a follower is dead, and since the leader died.
	OneDown      Metric = "follower_dead_throughput_per_s"
	NewLeader    Metric = "new_leader_throughput_per_s"
	OneDownPause Metric = "follower_dead_pause_ms"
	PlainPause   Metric = "transactional_pause_ms"
	BlindPause   Metric = "blind_pause_ms"
	// If the leader comes back: the longest time without an answer from its death until then, and after that; and the
	// numbers of commands that were refused, or have an unknown outcome.
	LeaderPause Metric = "leader_dead_pause_ms"
	BackPause   Metric = "leader_back_pause_ms"
	Failed      Metric = "failed_commands"
	// Of a day: the throughput of a whole phase, with its begin; changes of the profile and of the leader that the
	// cluster made; and what contradicts the history of the commands, as one that was lost or took effect twice.
	FromBegin Metric = "from_begin_throughput_per_s"
	Changes   Metric = "changes"
	Wrong     Metric = "wrong"
	// PerEntry is the mean number of commands in an entry.
	PerEntry Metric = "commands_per_entry"
	// Syncs is the number of syncs of the leader's log, SyncTime their total time, SyncMean their mean time.
	Syncs    Metric = "syncs"
	SyncTime Metric = "sync_time_ms"
	SyncMean Metric = "sync_mean_ms"
	// MemberSync is the time of a member's syncs, the mean of all members: a batch waits for most of them, not for the
	// leader alone.
	MemberSync Metric = "member_sync_time_ms"
	// Messages counts the messages between all members. RoundTrips is the median latency of a command, in round trips
	// of the links.
	Messages   Metric = "messages_per_request"
	RoundTrips Metric = "round_trips"
	// SyncsAll is the number of syncs of all members' logs together, SyncAllMean their mean time.
	SyncsAll    Metric = "fsyncs_per_request"
	SyncAllMean Metric = "fsync_mean_ms"
	// CPU is of all members and the load.
	CPU Metric = "cpu_us_per_request"
	// PerCPU is the number of requests for which a second of CPU suffices.
	PerCPU Metric = "requests_per_cpu_second"
	// LeaderCPU and FollowerCPU are of the leader's process and of the mean follower's, LeaderLoad and FollowerLoad are
	// the loads over the time: a whole core is 100. Heap is the live heap, without garbage; Resident is the process's
	// whole memory. Members that share a process have none of these.
	LeaderCPU        Metric = "leader_cpu_us_per_request"
	FollowerCPU      Metric = "follower_cpu_us_per_request"
	LeaderLoad       Metric = "leader_cpu_percent"
	FollowerLoad     Metric = "follower_cpu_percent"
	LeaderHeap       Metric = "leader_heap_mib"
	FollowerHeap     Metric = "follower_heap_mib"
	LeaderResident   Metric = "leader_resident_mib"
	FollowerResident Metric = "follower_resident_mib"
	// Bandwidth is of written values, until the last member had applied the last; of work for a time, of those answered
	// in it.
	Bandwidth Metric = "mib_per_s"
	// Egress is the leader's traffic to other members.
	Egress Metric = "leader_egress_bytes_per_request"
	// EgressAll is the traffic between all members.
	EgressAll Metric = "egress_bytes_per_request"
	// Reads are strong reads, ReadP50 and ReadP90 their latencies.
	Reads   Metric = "reads_per_s"
	ReadP50 Metric = "read_p50_ms"
	ReadP90 Metric = "read_p90_ms"
	// Kept is the size of the bodies on a follower's disk, Written the bytes that it wrote, bodies and log; means of
	// all followers.
	Kept    Metric = "follower_kept_bytes_per_request"
	Written Metric = "follower_written_bytes_per_request"
	// FirstRead is the first read from a new leader, MeanRead the mean of all, both over a link; FirstLocal and
	// NextLocal are the leader's part of it: to confirm that it still leads, and to have the whole body in memory.
	// NextLocal is the median of the later reads.
	FirstRead  Metric = "first_read_ms"
	MeanRead   Metric = "mean_read_ms"
	FirstLocal Metric = "first_read_local_ms"
	NextLocal  Metric = "next_read_local_ms"
)

// labels name metrics on axes and in tables.
var labels = map[Metric]string{
	Runtime: "runtime, ms", Replicated: "time until replicated, ms", Throughput: "requests/s",
	P50: "median latency, ms", P90: "90th percentile of latency, ms", Reads: "strong reads/s",
	ReadP50: "median of a read, ms", ReadP90: "90th percentile of a read, ms",
	PlainP50: "median of a transactional command, ms", PlainMean: "mean of a transactional command, ms",
	BlindP50: "median of a blind command, ms", BlindMean: "mean of a blind command, ms",
	PlainRate: "transactional commands/s", BlindRate: "blind commands/s",
	OneDown:     "requests/s while a follower is dead",
	NewLeader:   "requests/s under a new leader",
	LeaderPause: "longest pause while a leader is dead, ms", BackPause: "longest pause after it is back, ms",
	Failed:    "commands that failed",
	FromBegin: "requests/s from the begin of the phase", Changes: "changes",
	Wrong:        "commands lost, doubled or out of order",
	OneDownPause: "longest pause while a follower is dead, ms",
	PlainPause:   "pause of transactional commands when the leader dies, ms",
	BlindPause:   "pause of blind commands when the leader dies, ms",
	Messages:     "messages of all members per request", RoundTrips: "round trips of a command",
	EgressAll: "bytes from all members per request",
	P99:       "99th percentile of latency, ms", PerEntry: "commands per entry",
	MemberSync: "time in fsyncs, mean of the members, ms", SyncsAll: "fsyncs of all members per request",
	SyncAllMean: "an fsync, mean of all, ms",
	Syncs:       "leader's fsyncs", SyncTime: "time in the leader's fsyncs, ms", SyncMean: "leader's fsync, ms",
	CPU: "CPU µs per request", PerCPU: "requests per second of CPU",
	LeaderCPU: "leader's CPU µs per request", FollowerCPU: "a follower's CPU µs per request",
	LeaderLoad: "leader's CPU, % of a core", FollowerLoad: "a follower's CPU, % of a core",
	LeaderHeap: "leader's heap in use, MiB", FollowerHeap: "a follower's heap in use, MiB",
	LeaderResident: "leader's memory, MiB", FollowerResident: "a follower's memory, MiB",
	Bandwidth: "MiB/s", Egress: "bytes from the leader per request",
	Kept: "bytes kept by a follower per request", Written: "bytes written by a follower per request",
	FirstRead: "first read, ms", MeanRead: "mean of all reads, ms", FirstLocal: "first read at the leader itself, ms",
	NextLocal: "later reads at the leader itself, ms",
}

func (m Metric) label() string {
	if l, ok := labels[m]; ok {
		return l
	}
	return string(m)
}
