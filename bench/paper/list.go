package paper

import "slices"

// Listed is an experiment in a list.
type Listed struct {
	Name  string // as on the command line
	Short string // a one-line summary of the comparison
}

// experiment is one of the list, with the function that builds the rest of it.
type experiment struct {
	Listed
	build func() *Experiment
}

// List lists all experiments, in the order in which a report shows them. It builds none: they have thousands of cases.
func List() []Listed {
	var out []Listed
	for _, e := range experiments() {
		out = append(out, e.Listed)
	}
	return out
}

// Experiments returns all experiments in the same order.
func Experiments() []*Experiment {
	var out []*Experiment
	for _, e := range experiments() {
		made := e.build()
		made.Name, made.Short = e.Name, e.Short
		out = append(out, made)
	}
	return out
}

func experiments() []experiment { return slices.Concat(ofOneLeader(), ofManyLeaders()) }

func ofOneLeader() []experiment {
	return []experiment{
		{Listed{"raft-batching",
			"1,000 to 5,000 requests, one at a time or in batches of at most 128."}, raftBatching},
		{Listed{"raft-pipeline",
			"1 to 64 batches under way at once, of at most 128 or 1,024 requests."}, raftPipeline},
		{Listed{"raft-batch-size",
			"5,000 requests with batches of at most 64 to 1,024, and why the paper's figures look " +
				"random."}, raftBatchSize},
		{Listed{"raft-parallel",
			"1,000 to 5,000 requests; the leader writes and sends at once or one after the other, and replication " +
				"waits for the state machine or not."}, raftParallel},
		{Listed{"raft-ablation",
			"500 requests with every single optimisation, and with all but one."}, raftAblation},
		{Listed{"craft-latency",
			"One client writes values of 1 KiB to 2 MiB to raft, rs-raft and craft with 5 and 7 " +
				"members."}, craftLatency},
		{Listed{"craft-throughput",
			"Up to 100 clients write values of 1 KiB to 2 MiB to raft, rs-raft and craft with 5 and 7 " +
				"members."}, craftThroughput},
		{Listed{"craft-network",
			"A write every 70 ms to 7 members: how many bytes leave the leader for each."}, craftNetwork},
		{Listed{"craft-storage",
			"Values of 16 to 512 KiB: how many bytes of each a follower keeps on its disk."}, craftStorage},
		{Listed{"craft-liveness",
			"Throughput of raft, rs-raft and craft while 7, 6, 5 and 4 of 7 members run."}, craftLiveness},
		{Listed{"craft-recovery-read",
			"The first read, and ten of them, of values of 512 KiB to 16 MiB from a leader that has " +
				"just taken over."}, craftRead},
	}
}

func ofManyLeaders() []experiment {
	return []experiment{
		{Listed{"niagara-throughput",
			"Commands of 16 bytes at rising rates to raft and to niagara with 1 to 12 instances: how many come " +
				"through."}, niagaraThroughput},
		{Listed{"niagara-latency",
			"The 90th percentile of latency at levels of throughput, and that of a lone client, for raft and niagara " +
				"with 1 to 12 instances."}, niagaraLatency},
		{Listed{"niagara-network",
			"Writes and strong reads of values of 2 KiB with 1 to 4 network cards for each member: raft " +
				"and niagara."}, niagaraNetwork},
		{Listed{"braided-coding",
			"Values of 512 KiB to five members whose links are limited: raft, craft, niagara, and niagara over coded " +
				"bodies."}, braidedCoding},
		{Listed{"lcr-tps",
			"40 clients in closed loops on 5, 7 and 9 members, 0 to 30 ms apart: raft, multi-raft, and lcr with 24, " +
				"40 and 56 % blind commands."}, lcrTPS},
		{Listed{"lcr-clients",
			"5 members 5 ms apart, 25 % blind commands, more and more clients: throughput and response time of raft, " +
				"multi-raft and lcr."}, lcrClientCounts},
		{Listed{"lcr-failures",
			"5 members 5 ms apart; a follower is killed at 10 s and comes back at 16 s, the leader is killed at 25 " +
				"s: throughput over time, raft, multi-raft and lcr."}, lcrFailures},
		{Listed{"lcr-regions",
			"Clients in each of 5 cloud regions: median latency by region, raft and lcr in both modes."}, lcrRegions},
		{Listed{"lcr-traffic",
			"5 and 9 members 5 ms apart, commands at a rate: bytes that the leader sends, and all members together, " +
				"with raft, multi-raft and lcr."}, lcrTraffic},
		{Listed{"lcr-cpu",
			"5 and 9 members 5 ms apart, commands at a rate: CPU of the leader and of followers, with raft, " +
				"multi-raft and lcr."}, lcrCPU},
		{Listed{"lcr-memory",
			"5, 7 and 9 members 5 ms apart, commands of 80 bytes at a rate: memory of the leader and of followers, " +
				"with raft, multi-raft and lcr."}, lcrMemory},
		{Listed{"iss-latency",
			"3 and 6 members, commands at a rate at all members: median and 99th percentile of raft, multi-paxos and " +
				"iss."}, issLatency},
		{Listed{"iss-skip",
			"6 members, commands at a rate at all members: iss with skips and with votes for empty values; segments " +
				"of 32, 64 and 128 slots, waiting 0 and 30 ms."}, issSkip},
		{Listed{"iss-failures",
			"3 and 6 members under 1,000 commands/s; a leader is killed and comes back: answers over time, raft, " +
				"multi-paxos and iss."}, issFailures},
		{Listed{"iss-throughput",
			"3 and 6 members, clients at all of them: iss, epaxos, wpaxos, multi-paxos and raft with and without " +
				"batches, by conflicts, and over HTTP beside a bare server."}, issThroughput},
		{Listed{"iss-scale",
			"iss, epaxos, wpaxos, multi-paxos and raft with up to 128 members of 8 cores each, with relays and " +
				"flexible quorums: computed, and beside it what is measured with 3 and 6."}, issScale},
		{Listed{"protocols",
			"3 and 5 members 5 ms apart, commands one by one: latency, messages, bytes, fsyncs and CPU of each, with " +
				"all protocols."}, protocolCosts},
		{Listed{"fit",
			"5 regions, a day of seven loads: raft, craft, niagara, lcr, multi-paxos and iss that stay as they are, " +
				"and fit on, which begins as raft."}, fitExperiment},
		{Listed{"fit-other",
			"5 regions, a day of mixed sizes, bursts, two slow members, a rise and a fall: raft as it " +
				"is, and fit on."}, fitOther},
	}
}
