package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/braidlog/braid"
)

// braidCluster is braid, as a program embeds it.
type braidCluster struct {
	nodes  []*braid.Node
	leader atomic.Int64 // index of the leading member as it says itself; -1 none
	watch  sync.WaitGroup
}

func openBraid(c ClusterConfig) (Cluster, error) {
	listeners, err := listenLoopback(len(c.Machines))
	if err != nil {
		return nil, err
	}
	var members []braid.Member
	for i, l := range listeners {
		name := fmt.Sprintf("m%d", i+1)
		members = append(members, braid.Member{ID: braid.MemberIDOf(name, "bench"), Name: name, PeerURLs: []string{"http://" + l.Addr().String()}})
	}
	cl := &braidCluster{}
	cl.leader.Store(-1)
	for i, machine := range c.Machines {
		o := braidOptions(c)
		o.Self, o.Members, o.Cluster = members[i].ID, slices.Clone(members), braid.ClusterIDOf(members, "bench")
		o.Dir = filepath.Join(c.Dir, members[i].Name)
		o.PeerListeners = []net.Listener{listeners[i]}
		node, err := braid.Open(o, machine)
		if err != nil {
			for _, l := range listeners[i:] {
				_ = l.Close()
			}
			return nil, errors.Join(err, cl.Close())
		}
		cl.nodes = append(cl.nodes, node)
		cl.watch.Go(func() { cl.follow(i, node) })
	}
	return cl, nil
}

// braidOptions are the options that all members share.
func braidOptions(c ClusterConfig) braid.Options {
	s := c.Settings
	const perCommand = 512 // what a small command may cost beside its bytes
	commands := c.Concurrency
	return braid.Options{
		Heartbeat: heartbeat, ElectionTimeout: electionTimeout,
		NoBatching: s.NoBatching, NoPipeline: s.NoPipeline, NoParallelAppend: s.NoParallelAppend, NoAsyncApply: s.NoAsyncApply,
		MaxBatchBytes: s.MaxBatchBytes, PipelineDepth: s.PipelineDepth,
		MaxPendingBytes: max(256<<20, 2*c.PendingBytes+commands*perCommand),
		Logger:          slog.New(slog.DiscardHandler),
	}
}

// follow keeps the leader up to date as one member sees it.
func (c *braidCluster) follow(i int, n *braid.Node) {
	for {
		s := n.Status()
		if s.IsLeader() {
			c.leader.Store(int64(i))
		} else {
			c.leader.CompareAndSwap(int64(i), -1)
		}
		select {
		case <-n.Changes():
		case <-n.Done():
			c.leader.CompareAndSwap(int64(i), -1)
			return
		}
	}
}

func (c *braidCluster) Leader() int { return int(c.leader.Load()) }

// node is the leader, or while there is none any member, which forwards.
func (c *braidCluster) node() *braid.Node { return c.nodes[max(0, c.leader.Load())] }

func (c *braidCluster) Propose(ctx context.Context, command []byte) error {
	_, err := c.node().Propose(ctx, command)
	return err
}

func (c *braidCluster) ProposeAsync(command []byte, done func(any, error)) error {
	return c.node().ProposeAsync(command, done)
}

func (c *braidCluster) Stats() Stats {
	var out Stats
	for _, n := range c.nodes {
		s := n.Status()
		out.EgressBytes = append(out.EgressBytes, s.Links.EgressBytes)
		out.Fsyncs += int64(s.Log.Syncs)
	}
	return out
}

func (c *braidCluster) Close() error {
	errs := make([]error, len(c.nodes))
	var closing sync.WaitGroup
	for i, n := range c.nodes {
		closing.Go(func() { errs[i] = errors.Join(n.Err(), n.Close()) })
	}
	closing.Wait()
	c.watch.Wait()
	return errors.Join(errs...)
}
