package paper

import (
	"fmt"

	"github.com/braidlog/braid"
)

// The experiments of "In Search of a Scalable Raft-based Replication Architecture" (Deyerl
// and Distler, PaPoC '19), section 4.
//
// What the paper ran: its prototype and Raft, both on etcd's library, on three servers with
// twelve cores each (figures 3 and 4) or four cores and a network link split into four
// (figure 5). What the figures show is not in its text, only what it says of them.

const niagaraPaper = "In Search of a Scalable Raft-based Replication Architecture (NIAGARA, PaPoC '19)"

const seriesNiagara = "niagara"

// instanceCounts are the numbers of instances in the paper: as many as cores.
var instanceCounts = []int{1, 2, 4, 8, 12}

// niagaraSetup is a cluster of so many instances that one member leads, as in a local
// network, where cores are what more instances use.
func niagaraSetup(instances int) Setup {
	return Setup{Protocol: "niagara", Instances: instances, Leaders: braid.LeadersTogether}
}

func niagaraSeries(instances int) string { return fmt.Sprintf("niagara, R = %d", instances) }

// niagaraContestants are raft and niagara with each number of instances.
func niagaraContestants() (out []contestant) {
	out = append(out, contestant{seriesRaft, 1, Setup{}})
	for _, r := range instanceCounts {
		out = append(out, contestant{niagaraSeries(r), r, niagaraSetup(r)})
	}
	return out
}

// contestant is a series with its setup.
type contestant struct {
	series    string
	instances int
	setup     Setup
}

// inQuick reports whether a quick run measures it: raft, and niagara with few instances,
// some and many.
func (c *contestant) inQuick() bool { return c.instances != 2 && c.instances != 8 }

// Parts of the experiments.
const (
	byInstances = "instances"
	lone        = "instances, one client"
)

// sharedText is what figures 3 and 4 have in common here.
const sharedText = "All members and the load run in this process, with real fsyncs and TCP over loopback, and share the cores of this machine; in the paper each server had twelve, and its network. What is measured here shows what weaving costs where there is nothing to gain, the cores being busy with one instance already."
