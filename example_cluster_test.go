package braid_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/braidlog/braid"
)

// exampleMember is one member of an example: it has a directory and a state, and runs in this process.
type exampleMember struct {
	braid.Member
	dir     string
	listen  net.Listener
	machine *counter
	*braid.Node
}

// newMember makes a member with an address. Programs of your own give each member a fixed one.
func newMember(id braid.MemberID, dir string) *exampleMember {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	return &exampleMember{
		Member: braid.Member{ID: id, PeerURLs: []string{"http://" + l.Addr().String()}},
		dir:    filepath.Join(dir, id.String()), listen: l, machine: &counter{},
	}
}

// open starts the member.
func (m *exampleMember) open(cluster uint64, members []braid.Member) {
	var err error
	m.Node, err = braid.Open(braid.Options{
		Self: m.ID, Cluster: cluster, Dir: m.dir, Members: members, Listeners: []net.Listener{m.listen},
		Heartbeat: 20 * time.Millisecond, ElectionTimeout: 200 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	}, m.machine)
	if err != nil {
		panic(err)
	}
}

// startThree starts three members with directories below dir. On a new cluster members are all there will be at first;
// on one that stopped they say where each is now.
func startThree(dir string) (nodes []*exampleMember) {
	var members []braid.Member
	for id := braid.MemberID(1); id <= 3; id++ {
		m := newMember(id, dir)
		nodes, members = append(nodes, m), append(members, m.Member)
	}
	cluster := braid.ClusterIDOf(members, "example")
	for _, m := range nodes {
		m.open(cluster, members)
	}
	return nodes
}

// startAt42 starts a new cluster of three members below a directory, whose state is 42. end stops it.
func startAt42() (ctx context.Context, dir string, nodes []*exampleMember, end func()) {
	dir, err := os.MkdirTemp("", "braid-example-")
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	nodes = startThree(dir)
	if _, err := nodes[0].Propose(ctx, add(42)); err != nil {
		panic(err)
	}
	return ctx, dir, nodes, func() {
		stop(nodes)
		cancel()
		os.RemoveAll(dir)
	}
}

func stop(nodes []*exampleMember) {
	for _, m := range nodes {
		m.Close()
	}
}

func add(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// Three members, which all stop and start again. The state is in memory, so it comes from the log.
func ExampleOpen() {
	dir, _ := os.MkdirTemp("", "braid-example-")
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()

	nodes := startThree(dir)
	sum, err := nodes[0].Propose(ctx, add(30)) // at any member: it knows who leads
	fmt.Println(sum, err)
	stop(nodes)

	nodes = startThree(dir)
	defer stop(nodes)
	sum, err = nodes[2].Propose(ctx, add(12))
	fmt.Println(sum, err)
	// Output:
	// 30 <nil>
	// 42 <nil>
}

// A fourth member joins a cluster that runs. It is added first, by its peer URLs. It needs no ids: it has the URL of
// any member, which tells it the rest.
func ExampleOpen_join() {
	ctx, dir, nodes, end := startAt42()
	defer end()

	joiner := newMember(4, dir)
	if err := nodes[0].ChangeMembers(ctx, braid.Change{Kind: braid.AddVoter, Member: joiner.Member}); err != nil {
		panic(err)
	}
	var err error
	joiner.Node, err = braid.Open(braid.Options{
		Join: true, Members: []braid.Member{{PeerURLs: nodes[1].PeerURLs}}, Dir: joiner.dir, Listeners: []net.Listener{joiner.listen},
		Heartbeat: 20 * time.Millisecond, ElectionTimeout: 200 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	}, joiner.machine)
	if err != nil {
		panic(err)
	}
	defer joiner.Close()

	fmt.Println(joiner.WaitReady(ctx), len(joiner.Status().Members), "members")
	fmt.Println(joiner.machine.read())
	for range joiner.Changes(ctx) { // it votes when it has caught up: only then another member may be removed
		if !slices.ContainsFunc(joiner.Status().Members, func(m braid.Member) bool { return m.Learner }) {
			fmt.Println("it votes")
			break
		}
	}
	// Output:
	// <nil> 4 members
	// 42
	// it votes
}

// A read that sees everything that was acknowledged before it, at any member: first the barrier, then the state.
func ExampleNode_ReadBarrier() {
	ctx, _, nodes, end := startAt42()
	defer end()
	for _, m := range nodes {
		if err := m.ReadBarrier(ctx); err != nil {
			panic(err) // nothing is known of the state: the caller may retry
		}
		fmt.Println(m.machine.read())
	}
	// Output:
	// 42
	// 42
	// 42
}

// A backup of the state: what Snapshot writes is what Restore reads.
func ExampleNode_Snapshot() {
	ctx, _, nodes, end := startAt42()
	defer end()
	if err := nodes[1].ReadBarrier(ctx); err != nil { // so that the backup has it
		panic(err)
	}
	r, w := io.Pipe()
	go func() {
		_, err := nodes[1].Snapshot(ctx, w)
		w.CloseWithError(err)
	}()
	var restored counter
	err := restored.Restore(r)
	fmt.Println(restored.sum, err)
	// Output:
	// 42 <nil>
}

// A new cluster begins with the state in a backup. Each of its first members is restored from the same file; here it is
// one, and others may join it.
func ExampleRestoreFile() {
	ctx, dir, nodes, end := startAt42()
	defer end()
	backup, err := os.Create(filepath.Join(dir, "backup"))
	if err != nil {
		panic(err)
	}
	defer backup.Close()
	if err := nodes[1].ReadBarrier(ctx); err != nil { // so that the backup has everything
		panic(err)
	}
	if _, err := nodes[1].Snapshot(ctx, backup); err != nil {
		panic(err)
	}
	members := []braid.Member{{ID: 1}}
	o := braid.Options{
		Self: 1, Cluster: braid.ClusterIDOf(members, "restored"), Dir: filepath.Join(dir, "restored"), Members: members,
		Logger: slog.New(slog.DiscardHandler),
	}
	if err := braid.RestoreFile(o, backup.Name()); err != nil {
		panic(err)
	}
	node, err := braid.Open(o, &counter{})
	if err != nil {
		panic(err)
	}
	defer node.Close()
	fmt.Println(node.Propose(ctx, add(8)))
	// Output:
	// 50 <nil>
}

// Two of three members are lost permanently. A new cluster begins with everything that the third one has.
func ExampleRecoverAlone() {
	ctx, dir, nodes, end := startAt42()
	defer end()
	if err := nodes[2].ReadBarrier(ctx); err != nil {
		panic(err)
	}
	stop(nodes)
	members := []braid.Member{{ID: 4}}
	o := braid.Options{
		Self: 4, Cluster: braid.ClusterIDOf(members, "after"), Dir: filepath.Join(dir, "after"), Members: members,
		Logger: slog.New(slog.DiscardHandler),
	}
	if _, err := braid.RecoverAlone(ctx, nodes[2].dir, o, &counter{}); err != nil {
		panic(err)
	}
	node, err := braid.Open(o, &counter{})
	if err != nil {
		panic(err)
	}
	defer node.Close()
	fmt.Println(node.Propose(ctx, add(8)))
	// Output:
	// 50 <nil>
}

// gallery keeps large values: its state has only their names.
type gallery struct {
	counter
	last braid.BodyRef
}

func (g *gallery) Apply(commands []braid.Command) error {
	for i := range commands {
		if ref := commands[i].Body; ref != nil {
			g.last = *ref
			commands[i].Result = *ref
		}
	}
	return nil
}

// LiveBodies makes it a [braid.BodyKeeper].
func (g *gallery) LiveBodies(yield func(braid.BodyRef)) error {
	if g.last != (braid.BodyRef{}) {
		yield(g.last)
	}
	return nil
}

// A large value goes alongside the command, as its body. Apply gets its name, and with the name a member reads the
// bytes.
func ExampleNode_ProposeBody() {
	dir, _ := os.MkdirTemp("", "braid-example-")
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	members := []braid.Member{{ID: 1}}
	node, err := braid.Open(braid.Options{
		Self: 1, Cluster: braid.ClusterIDOf(members, "gallery"), Dir: dir, Members: members,
		Logger: slog.New(slog.DiscardHandler),
	}, &gallery{})
	if err != nil {
		panic(err)
	}
	defer node.Close()
	name, err := node.ProposeBody(ctx, []byte("cover.png"), make([]byte, 1<<20))
	if err != nil {
		panic(err)
	}
	body, err := node.Body(ctx, name.(braid.BodyRef))
	fmt.Println(len(body), err)
	// Output:
	// 1048576 <nil>
}
