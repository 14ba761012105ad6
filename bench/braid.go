package bench

import (
	"bytes"
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
	// bodyFrom is the size from which on a command's bytes beyond MinPayload are its body;
	// 0: never.
	bodyFrom int
}

// openBraid opens clusters of one of braid's own protocols. With copies, commands are what
// they are for every contestant: bytes that each member hands to its state machine. Only
// bodies can be coded, so the others get large commands as such.
func openBraid(protocol string) opener {
	return func(c ClusterConfig) (Cluster, error) { return openBraidAs(protocol, c) }
}

// bodyFrom is what the library's own server takes for large, by default.
const bodyFrom = 16 << 10

func openBraidAs(protocol string, c ClusterConfig) (Cluster, error) {
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
	if protocol != "raft" {
		cl.bodyFrom = bodyFrom
	}
	cl.leader.Store(-1)
	for i, machine := range c.Machines {
		o := braidOptions(c)
		err := Place(&o, protocol, c.Settings.CodeK)
		o.Self, o.Members, o.Cluster = members[i].ID, slices.Clone(members), braid.ClusterIDOf(members, "bench")
		o.Dir = filepath.Join(c.Dir, members[i].Name)
		o.PeerListeners = []net.Listener{listeners[i]}
		var node *braid.Node
		if err == nil {
			node, err = braid.Open(o, machine)
		}
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
	head, body := c.split(command)
	_, err := c.node().ProposeBody(ctx, head, body)
	return err
}

func (c *braidCluster) ProposeAsync(command []byte, done func(any, error)) error {
	head, body := c.split(command)
	return c.node().ProposeBodyAsync(head, body, done)
}

// split parts a command from its body, which must be a copy because the log keeps it.
func (c *braidCluster) split(command []byte) (head, body []byte) {
	if c.bodyFrom == 0 || len(command) < c.bodyFrom {
		return command, nil
	}
	return command[:MinPayload], bytes.Clone(command[MinPayload:])
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
