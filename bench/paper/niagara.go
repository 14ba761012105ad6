package paper

import (
	"fmt"
)

// The experiments of "In Search of a Scalable Raft-based Replication Architecture" (Deyerl and Distler, PaPoC '19),
// section 4.
//
// The paper's setup: its prototype and Raft, both on etcd's library, on three servers with twelve cores each (figures
// 3 and 4) or four cores and a network link split into four (figure 5). Its text does not have the values of the
// figures, only statements about them.

const niagaraPaper = "In Search of a Scalable Raft-based Replication Architecture (NIAGARA, PaPoC '19)"

const (
	seriesNiagara = "niagara"
	modelPrefix   = "model: "
	modelRaft     = modelPrefix + seriesRaft
	modelNiagara  = modelPrefix + seriesNiagara
)

// instanceCounts are the numbers of instances in the paper: as many as cores.
var instanceCounts = []int{1, 2, 4, 8, 12}

// logBytes is the size of the log between snapshots: runs for a time write much.
const logBytes = 64 << 20

// niagaraSetup is a cluster of this many instances that one member leads, as in a local network, where more instances
// use more cores; 0 is raft. Batches have at most this many commands, 0: no limit.
func niagaraSetup(instances, batch int) Setup {
	s := Setup{BatchCommands: batch, SnapshotBytes: logBytes}
	if instances > 0 {
		s.Protocol = "niagara"
		s.set(fmt.Sprint("instances=", instances), "leaders=together")
	}
	return s
}

// modelled is the same in the cost model, with a given number of cores for each member; 0: as measured.
func (s Setup) modelled(cores int) Setup {
	s.Model, s.Cores = true, cores
	return s
}

// contestant is a series with its number of instances, 0 with raft.
type contestant struct {
	series    string
	instances int
}

// at is the x of a contestant over numbers of instances: raft is at one.
func (c *contestant) at() float64 { return float64(max(1, c.instances)) }

// name is its series if there is one for each number of instances.
func (c *contestant) name() string {
	if c.instances == 0 {
		return c.series
	}
	return fmt.Sprintf("%s, R = %d", c.series, c.instances)
}

// inQuick reports whether quick runs measure it: raft, and niagara with few instances, some and many.
func (c *contestant) inQuick() bool { return c.instances != 2 && c.instances != 8 }

// niagaraContestants are raft and niagara with each number of instances.
func niagaraContestants(raft, niagara string) []contestant {
	out := []contestant{{raft, 0}}
	for _, r := range instanceCounts {
		out = append(out, contestant{niagara, r})
	}
	return out
}

// Parts of the experiments.
const (
	byInstances = "instances"
	lone        = "instances, one client"
	byCores     = "cores of each member"
	batched     = "instances, batches without limit"
	byModel     = "commands/s requested of the model"
)

const (
	// entryEach has an entry for each command, as in etcd's library and so in the paper.
	entryEach = 1
	// entriesInflight is the maximal number of entries in progress.
	entriesInflight = 10_000
	// saturating is a rate above every capacity.
	saturating = 20e6
)

// The common text of figures 3 and 4.
const (
	entriesText = "In the paper every command is an entry of etcd's log: frames have many of them, and each is handled " +
		"by itself. braid puts all commands that wait into one entry, so that one instance does not become what limits it. " +
		"To compare with the paper, entries have one command here, unless something else is said; frames still have many."
	modelText = "All members and the load run in this process, with real fsyncs and TCP over loopback, and share the " +
		"cores of this machine; in the paper each server had twelve. What more cores would bring is computed, and such " +
		"series begin with the word model: the production code of a member's decisions, of the protocol, of the order and " +
		"of group commit runs in simulated time (package internal/sim/scale), with the costs of its pieces as they were " +
		"measured on this machine just before. One factor on the costs of CPU is fitted to raft's here; how far the " +
		"model is then off for niagara is one of the claims. The model leaves out what cores do to each other's caches and " +
		"memory, which flatters whoever uses more of them. The costs are in the JSON."
)
