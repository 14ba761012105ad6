package bench

import (
	"context"

	"github.com/braidlog/braid/bench/limit"
)

// Limit is the contestant that is no rival: it does the least work that a log, or a server, can do. The others are
// measured by their share of its figures. See package limit for the log, and server.ServeBare for the server.
const Limit = "limit"

// limitCluster is a cluster of package limit.
type limitCluster struct{ *limit.Cluster }

// limitLogBytes is the least size of a member's log, which is overwritten in a circle.
const limitLogBytes = 64 << 20

func openLimit(c ClusterConfig) (Cluster, error) {
	listeners, err := ListenLoopback(len(c.Machines))
	if err != nil {
		return nil, err
	}
	command := c.PendingBytes / max(1, c.Concurrency)
	config := limit.Config{Dir: c.Dir, Listeners: listeners, CommitInterval: Heartbeat, CommandBytes: command,
		LogBytes: max(limitLogBytes, 2*(limit.MaxBatch+int64(command)))}
	for _, m := range c.Machines {
		config.Apply = append(config.Apply, m.ApplyAll)
	}
	cluster, err := limit.Open(config)
	if err != nil {
		return nil, err
	}
	return limitCluster{cluster}, nil
}

func (c limitCluster) Propose(ctx context.Context, command []byte) error {
	return ProposeAndWait(ctx, c.ProposeAsync, command)
}

// Leader returns the first member, which always leads.
func (limitCluster) Leader() int { return 0 }

func (c limitCluster) Stats() (s Stats) {
	s.EgressBytes, s.Fsyncs = c.Totals()
	return s
}
