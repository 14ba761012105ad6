package bench

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/braidlog/braid"
)

// braidCluster is braid, embedded in a program.
type braidCluster struct {
	nodes   []*braid.Node
	members []braid.Member
	// index of the member that leads the first instance; -1: none, or leaders are not where they should be
	leader atomic.Int64
	watch  sync.WaitGroup
	shape  Shape
	spread bool // shape.Spread()
	// sticky: with leaders on all members, a sender keeps to one of them.
	sticky bool
	// bodyFrom is the size of a command from which on its bytes after MinPayload are its body; 0: never.
	bodyFrom int
	// leaders are the members that lead the groups of keys, by group, as far as member 1 knows; -1: none
	// is known. Empty if there is one order.
	leaders []atomic.Int64
}

// openBraid opens clusters of one of braid's own protocols. With placement copy a command is the same as for every
// contestant: bytes that each member passes to its state machine. Only bodies can be coded, so the other placements
// get large commands as bodies.
func openBraid(protocol string) Opener {
	return func(c ClusterConfig) (Cluster, error) { return openBraidAs(protocol, c) }
}

// bodyFrom is the size from which on braid's own server makes a value a body, by default.
const bodyFrom = 16 << 10

func openBraidAs(protocol string, c ClusterConfig) (Cluster, error) {
	listeners, members, err := listenMembers(len(c.Machines), max(1, c.Settings.Cards))
	if err != nil {
		return nil, err
	}
	cl := &braidCluster{shape: c.Settings.shape(protocol), sticky: c.ClosedLoop}
	cl.spread, cl.members = cl.shape.Spread(), members
	cl.leader.Store(-1)
	cl.leaders = make([]atomic.Int64, cl.shape.Groups(len(c.Machines)))
	for i, machine := range c.Machines {
		o := braidOptions(c)
		o.Members = slices.Clone(members)
		err := c.Settings.Apply(protocol, &o)
		if o.Coded() {
			cl.bodyFrom = bodyFrom
		}
		o.Self, o.Cluster = members[i].ID, braid.ClusterIDOf(members, "bench")
		o.Dir = filepath.Join(c.Dir, members[i].Name)
		o.Listeners = listeners[i]
		var node *braid.Node
		if err == nil {
			node, err = openGroups(o, machine, len(cl.leaders))
		}
		if err != nil {
			closeAll(slices.Concat(listeners[i:]...))
			return nil, errors.Join(err, cl.Close())
		}
		cl.nodes = append(cl.nodes, node)
	}
	for i, node := range cl.nodes {
		cl.watch.Go(func() { cl.follow(i, node) })
	}
	return cl, nil
}

// openGroups opens a member, with one state machine for each group if keys are in groups.
func openGroups(o braid.Options, machine *Machine, groups int) (*braid.Node, error) {
	if groups == 0 {
		return braid.Open(o, machine)
	}
	parts := machine.Split(groups)
	sm, err := braid.NewGroups(groups, func(group int) braid.StateMachine { return parts[group] })
	if err != nil {
		return nil, err
	}
	return braid.Open(o, sm)
}

// listenMembers opens the listeners of members, one for each of their network cards.
func listenMembers(n, cards int) (listeners [][]net.Listener, members []braid.Member, err error) {
	all, err := ListenLoopback(n * cards)
	if err != nil {
		return nil, nil, err
	}
	for i := range n {
		of := all[i*cards : (i+1)*cards : (i+1)*cards]
		name := fmt.Sprintf("m%d", i+1)
		m := braid.Member{ID: braid.MemberIDOf(name, "bench"), Name: name}
		for _, l := range of {
			m.PeerURLs = append(m.PeerURLs, "http://"+l.Addr().String())
		}
		listeners, members = append(listeners, of), append(members, m)
	}
	return listeners, members, nil
}

// ListenLoopback opens n listeners on free loopback ports.
func ListenLoopback(n int) (listeners []net.Listener, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			closeAll(listeners)
			return nil, err
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
	}
}

// CardsNet returns the link emulation with this number of network cards (0: the emulation's own, or one).
func CardsNet(emulation string, cards int) (string, error) {
	if cards < 2 {
		return emulation, nil
	}
	if strings.Contains(emulation, "nics=") {
		return "", fmt.Errorf("%d network cards, and links %q: say it once", cards, emulation)
	}
	if emulation == "" {
		return "", nil // the cards are as fast as can be
	}
	nics := "nics=" + strconv.Itoa(cards)
	if strings.ContainsAny(emulation, ":;") {
		return nics + ";" + emulation, nil // it is of several parts, and the last may be about a pair
	}
	return emulation + "," + nics, nil
}

// braidOptions returns the options that all members share.
func braidOptions(c ClusterConfig) braid.Options {
	const perCommand = 512 // the cost of a small command alongside its bytes
	commands := c.Concurrency
	return braid.Options{
		Heartbeat: Heartbeat, ElectionTimeout: ElectionTimeout,
		Limits: braid.Limits{PendingBytes: max(256<<20, 2*c.PendingBytes+commands*perCommand)},
		Logger: slog.New(slog.DiscardHandler),
	}
}

// follow updates the leader as one member sees it. There is no leader while members lead instances that others should
// lead.
func (c *braidCluster) follow(i int, n *braid.Node) {
	changes := n.Changes(context.Background())
	for {
		s := n.Status()
		if i == 0 {
			c.followGroups(&s)
		}
		if c.leads(&s) {
			c.leader.Store(int64(i))
		} else if c.leader.CompareAndSwap(int64(i), -1) {
			c.another(i)
		}
		select {
		case <-changes:
		case <-n.Done():
			c.leader.CompareAndSwap(int64(i), -1)
			return
		}
	}
}

func (c *braidCluster) leads(s *braid.Status) bool { return s.IsLeader() && c.shape.LeadersInPlace(s) }

// another records another leader in place of a member that lost the role. With EPaxos two members may have taken the
// role at the start, before they exchanged messages, and the other one does not report it again.
func (c *braidCluster) another(than int) {
	for i, n := range c.nodes {
		if s := n.Status(); i != than && c.leads(&s) {
			c.leader.CompareAndSwap(-1, int64(i))
		}
	}
}

// followGroups records the leaders of the groups of keys.
func (c *braidCluster) followGroups(s *braid.Status) {
	for g := range c.leaders {
		leads := func(m braid.Member) bool { return m.ID == s.Instances[g].Leader }
		c.leaders[g].Store(int64(slices.IndexFunc(c.members, leads)))
	}
}

func (c *braidCluster) Leader() int { return int(c.leader.Load()) }

// node returns the member at which a command is proposed: the leader, or while there is none any member, which
// forwards. If leaders are spread, each member gets a share of the commands. With groups of keys it is the group's
// leader, but a client in a closed loop keeps to its member.
func (c *braidCluster) node(command []byte) *braid.Node {
	if !c.spread {
		return c.nodes[max(0, c.leader.Load())]
	}
	sender, seq := identity(command)
	if len(c.leaders) > 0 && !c.sticky {
		group, _ := braid.GroupOf(keysOf(command), len(c.leaders))
		return c.nodes[max(0, c.leaders[group].Load())]
	}
	if c.sticky {
		seq = 0
	}
	return c.nodes[(uint64(sender)+seq)%uint64(len(c.nodes))]
}

func (c *braidCluster) Propose(ctx context.Context, command []byte) error {
	head, body := c.split(command)
	if len(c.leaders) > 0 {
		_, err := c.node(command).ProposeWith(ctx, command, nil, braid.ProposeOptions{Keys: keysOf(command)})
		return err
	}
	_, err := c.node(command).ProposeBody(ctx, head, body)
	return err
}

func (c *braidCluster) ProposeAsync(command []byte, done func(any, error)) error {
	if len(c.leaders) > 0 {
		return c.node(command).ProposeWithAsync(command, nil, braid.ProposeOptions{Keys: keysOf(command)}, done)
	}
	head, body := c.split(command)
	return c.node(command).ProposeBodyAsync(head, body, done)
}

// keysOf returns the key of a command, which is unique.
func keysOf(command []byte) []uint64 {
	return []uint64{KeyOf(binary.LittleEndian.Uint64(command))}
}

// split separates the command from its body, which must be a copy because the log keeps it.
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
