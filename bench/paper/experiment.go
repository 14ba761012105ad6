package paper

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/braidlog/braid/protocol/setting"
)

// Setup says how a cluster is set up. Cases with equal setups share a cluster.
type Setup struct {
	Protocol string // one of braid's own; empty: raft
	Members  int    // 0: 3
	Learners int    // of them, the last ones, which do not vote
	// Values are settings that all protocols have, and the protocol's own.
	Values setting.Values
	// Cards is how many network cards each member has, with an address each; 0: one.
	Cards int
	// Model makes it a setup of the cost model (package scale), which computes what is asked: with a
	// given number of cores for each member, or with 0 as where it is measured, where all members and
	// the load share the machine.
	Model bool
	Cores int

	// Raft's four optimisations; the zero value is all of them at their defaults.
	NoBatching       bool
	NoPipeline       bool
	NoParallelAppend bool
	NoAsyncApply     bool
	BatchCommands    int // commands at which a batch is full; 0: no limit
	Depth            int // batches in progress; 0: adaptive

	Net       string        // link emulation, as the flag --net; empty: bare loopback
	ApplyCost time.Duration // what applying one command takes, without using the CPU
	Heartbeat time.Duration // 0: 250 ms
	// Keys is how many keys members keep a value of, the bytes of a command; 0: none.
	Keys int
	// SnapshotBytes is how much log there is between snapshots; 0: braid's default. Bodies
	// are kept for as long as the log.
	SnapshotBytes int
	// Processes: each member is a process of its own, and clients' commands come to it over TCP from
	// the one that measures. So what it uses is known, and it can be killed.
	Processes bool
	// HTTP: members serve the map service of package mapkv, and clients ask there. It is not for processes.
	HTTP bool
	// Bare: servers answer by HTTP at once. There is no log, and no protocol.
	Bare bool
}

// set adds settings, NAME=VALUE each.
func (s *Setup) set(settings ...string) { s.Values = setting.MustParse(settings...).Over(s.Values) }

// Work is what is measured once. Mostly that is exactly Requests commands.
type Work struct {
	Requests int
	Payload  int     // bytes of a command; 0: 16
	Body     int     // bytes of its body, the large value that it writes; 0: none
	Rate     float64 // requests a second; 0: all at once
	Clients  int     // clients that each wait for an answer; 0: no one waits

	// For, if not 0, is how long the clients work, in place of Requests. It is no failure if nothing
	// is answered. With a rate no one waits; what is due while Inflight commands are in progress is
	// dropped.
	For      time.Duration
	Inflight int
	// Readers are clients that read strongly, for that time, each at one of the members; what
	// they read comes over its network cards. Every WriteEvery-th time they write; 0: never.
	Readers    int
	WriteEvery int
	// Down followers are stopped while the clients work, which they do for a time. With Faults members
	// are killed, which must be processes of their own. There are clients in closed loops then, or a rate.
	Down   int
	Faults *Faults
	// At is where the clients are, or where commands come to at a rate. Blind is the share of
	// their commands that may take a lane, and that need not be applied to be answered, unless
	// Confirmed. With Apart it is the share of the clients, all of whose commands are such; and each client
	// has a key. If Of is not 0, latencies are of the clients of that member alone; there are
	// others then too.
	At        Place
	Blind     float64
	Confirmed bool
	Apart     bool
	// KeySpace, if not 0, is how many keys commands touch: one that all clients use, for a share Hot of all commands, and
	// others that only the clients of one member use. They are not blind then.
	KeySpace int
	Hot      float64
	// Writes is the share of writes among what clients ask for by HTTP; the others are reads in the log.
	Writes float64
	Of     int
	// Net, if not empty, is what links do in place of Setup.Net, from then on and on the same cluster. Leader is the
	// member that leads; 0: any.
	Net    string
	Leader int
	// Reads is how often the last of the requests' bodies is read after that, one read
	// after the other, from a leader that has just taken over.
	Reads int
}

// bytes is how large the value is that a request writes; 0 if no one cares.
func (w *Work) bytes() int { return w.Payload + w.Body }

// Metric is one figure of a run.
type Metric string

// The figures that runs give.
const (
	// Runtime is from the first request until the last member has applied the last one.
	Runtime Metric = "runtime_ms"
	// Replicated is from the first request until all are committed, applied or not.
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
	// PlainRate and BlindRate are how many of them were answered.
	PlainRate Metric = "transactional_per_s"
	BlindRate Metric = "blind_per_s"
	// Of work with faults: throughput while a follower is dead, and under a new leader. Pauses are the
	// longest time without an answer: of any kind while a follower is dead, and since the leader died.
	OneDown      Metric = "follower_dead_throughput_per_s"
	NewLeader    Metric = "new_leader_throughput_per_s"
	OneDownPause Metric = "follower_dead_pause_ms"
	PlainPause   Metric = "transactional_pause_ms"
	BlindPause   Metric = "blind_pause_ms"
	// Where the leader comes back: the longest time without an answer from its death until then, and after that; and how
	// many commands were refused, or have an unknown outcome.
	LeaderPause Metric = "leader_dead_pause_ms"
	BackPause   Metric = "leader_back_pause_ms"
	Failed      Metric = "failed_commands"
	// PerEntry is how many commands shared an entry, on average.
	PerEntry Metric = "commands_per_entry"
	// Syncs is how often the leader made its log durable, SyncTime how long that took in total,
	// SyncMean each.
	Syncs    Metric = "syncs"
	SyncTime Metric = "sync_time_ms"
	SyncMean Metric = "sync_mean_ms"
	// MemberSync is the time that a member spent in making its log durable, the mean of all
	// members: a batch waits for most of them, not for the leader alone.
	MemberSync Metric = "member_sync_time_ms"
	// Messages counts the messages between all members. RoundTrips is the median latency of a command, in round trips of
	// the links.
	Messages   Metric = "messages_per_request"
	RoundTrips Metric = "round_trips"
	// SyncsAll is how often all members together made their logs durable, SyncAllMean how long that took each.
	SyncsAll    Metric = "fsyncs_per_request"
	SyncAllMean Metric = "fsync_mean_ms"
	// CPU is of all members and the load.
	CPU Metric = "cpu_us_per_request"
	// PerCPU is how many requests a second of CPU is enough for.
	PerCPU Metric = "requests_per_cpu_second"
	// LeaderCPU and FollowerCPU are of the leader's process and of the mean follower's, LeaderLoad and
	// FollowerLoad the same for the time: a whole core is 100. Heap is of what is in use, without garbage;
	// Resident is the process's whole memory. Members that share a process have none of these.
	LeaderCPU        Metric = "leader_cpu_us_per_request"
	FollowerCPU      Metric = "follower_cpu_us_per_request"
	LeaderLoad       Metric = "leader_cpu_percent"
	FollowerLoad     Metric = "follower_cpu_percent"
	LeaderHeap       Metric = "leader_heap_mib"
	FollowerHeap     Metric = "follower_heap_mib"
	LeaderResident   Metric = "leader_resident_mib"
	FollowerResident Metric = "follower_resident_mib"
	// Bandwidth is of values that were written, until the last member had applied the last;
	// of work for a time, of those answered in it.
	Bandwidth Metric = "mib_per_s"
	// Egress is what the leader sent to other members.
	Egress Metric = "leader_egress_bytes_per_request"
	// EgressAll is what all members together sent to each other.
	EgressAll Metric = "egress_bytes_per_request"
	// Reads are strong reads, ReadP50 and ReadP90 how long they took.
	Reads   Metric = "reads_per_s"
	ReadP50 Metric = "read_p50_ms"
	ReadP90 Metric = "read_p90_ms"
	// Kept is what a follower keeps of bodies on its disk, Written what it wrote, bodies and
	// log; means of all followers.
	Kept    Metric = "follower_kept_bytes_per_request"
	Written Metric = "follower_written_bytes_per_request"
	// FirstRead is the first read from a new leader, MeanRead the mean of all, both over a
	// link; FirstLocal and NextLocal are the leader's part of it: to know that it still
	// leads, and to have the whole body in memory. NextLocal is the median of the later reads.
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
	PlainRate: "transactional commands/s", BlindRate: "blind commands/s", OneDown: "requests/s while a follower is dead",
	NewLeader:   "requests/s under a new leader",
	LeaderPause: "longest pause while a leader is dead, ms", BackPause: "longest pause after it is back, ms",
	Failed:       "commands that failed",
	OneDownPause: "longest pause while a follower is dead, ms", PlainPause: "pause of transactional commands when the " +
		"leader dies, ms", BlindPause: "pause of blind commands when the leader dies, ms",
	Messages: "messages of all members per request", RoundTrips: "round trips of a command",
	EgressAll: "bytes from all members per request", P99: "99th percentile of latency, ms", PerEntry: "commands per entry",
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

// Case is one point of one series: a setup that does some work.
type Case struct {
	Series string
	// Part names x where it is not the experiment's XName: a side experiment, whose series
	// are apart from others of the same name.
	Part  string
	X     float64
	Setup Setup
	Work  Work
	// Times is how often the work is done in each round, for work that is short; 0: once.
	Times int
	// Full keeps the case out of quick runs. Quick keeps it out of full ones, for which there is another one in
	// its place.
	Full, Quick bool
}

// Curve is what the paper measured.
type Curve struct {
	Name string
	Like string // the series of ours that corresponds to it
	X, Y []float64
}

// Plot is one picture.
type Plot struct {
	Kind       PlotKind
	Title      string
	Part       string // of which cases
	XLabel     string
	X          Metric // of Scatter and Tradeoff
	Y          Metric
	LogX, LogY bool
	Series     []string // which; nil: all
	Accent     []string // of Bars: the ones that stand out
	Bare       bool     // of Tradeoff: without Case.X alongside the dots
	Paper      []Curve  // of metric Y
	Caption    string
}

// PlotKind says what a plot draws.
type PlotKind string

// The kinds of plots.
const (
	Lines   PlotKind = "lines"   // medians over Case.X, with the range of the rounds
	Bars    PlotKind = "bars"    // a bar for each series, the median at its only point
	Scatter PlotKind = "scatter" // a dot for each run: Y over X
	// Tradeoff is a line through the medians of Y over those of X, in the order of Case.X.
	Tradeoff PlotKind = "tradeoff"
)

// Claim is something that the paper says, and how to see whether it holds here.
type Claim struct {
	Text  string
	Paper float64 // 0: the paper gives no figure
	Unit  string
	// Measure computes our figure; false if what it needs was not measured.
	Measure func(*Result) (float64, bool)
	// Holds judges the figure.
	Holds func(measured float64) bool
	// Note says how the figure is computed, or what limits it.
	Note string
	// Remark is the note where that takes a computation. Every braid command lists the experiments at its
	// start, and does not need it.
	Remark func() string
}

// note is what there is to say about the figure.
func (c *Claim) note() string {
	if c.Remark != nil {
		return c.Remark()
	}
	return c.Note
}

// Experiment is one experiment of a paper.
type Experiment struct {
	Name   string // as on the command line
	Title  string
	Source string // paper and section
	// Short says in one line what is compared; Text explains it, a paragraph each, with
	// what differs from the paper.
	Short string
	Text  []string
	XName string // what Case.X is
	Cases []Case
	Plots []Plot
	// Table lists the metrics of the table, the first of them with its range.
	Table  []Metric
	Claims []Claim
	// Fit are measured points that the cost model is fitted to: with one factor on the costs of
	// CPU that were measured piece by piece. Only experiments with models have it.
	Fit []where
	// Alone: one cluster runs at a time. Where CPU is what counts, those that wait for their turn would be counted too.
	Alone bool
	// Rounds is how often each case runs: in full, and in quick mode if there is time.
	Rounds, QuickRounds int
}

// Experiments returns all experiments, in the order in which a report shows them.
func Experiments() []*Experiment {
	return []*Experiment{
		raftBatching(), raftPipeline(), raftBatchSize(), raftParallel(), raftAblation(),
		craftLatency(), craftThroughput(), craftNetwork(), craftStorage(), craftLiveness(), craftRead(),
		niagaraThroughput(), niagaraLatency(), niagaraNetwork(), braidedCoding(),
		lcrTPS(), lcrClientCounts(), lcrFailures(), lcrRegions(), lcrTraffic(), lcrCPU(), lcrMemory(),
		issLatency(), issSkip(), issFailures(), issThroughput(), issScale(),
		protocolCosts(),
	}
}

// UnknownError is the name of an experiment that does not exist.
type UnknownError struct {
	Name  string
	Known []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("unknown experiment %q: there are %s, and all", e.Name, strings.Join(e.Known, ", "))
}

// Select returns the experiments of these names; "all" stands for every one.
func Select(names ...string) ([]*Experiment, error) {
	all := Experiments()
	var known []string
	for _, e := range all {
		known = append(known, e.Name)
	}
	for _, name := range names {
		if name != "all" && !slices.Contains(known, name) {
			return nil, &UnknownError{Name: name, Known: known}
		}
	}
	if slices.Contains(names, "all") {
		return all, nil
	}
	return slices.DeleteFunc(all, func(e *Experiment) bool { return !slices.Contains(names, e.Name) }), nil
}

// cases returns what a run of the experiment runs.
func (e *Experiment) cases(quick bool) []Case {
	return slices.DeleteFunc(slices.Clone(e.Cases), func(c Case) bool { return quick && c.Full || !quick && c.Quick })
}

// seriesNames returns the names of the series, in the order of the cases.
func (e *Experiment) seriesNames() []string {
	var names []string
	for i := range e.Cases {
		if !slices.Contains(names, e.Cases[i].Series) {
			names = append(names, e.Cases[i].Series)
		}
	}
	return names
}
