package braid_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/braidlog/braid"
)

// counter is a state machine: it adds up numbers. Apply runs in a goroutine of the log, so a reader of the state
// elsewhere needs a lock.
type counter struct {
	mu  sync.Mutex
	sum uint64
}

// read returns the state. After [braid.Node.ReadBarrier] the read is linearizable.
func (c *counter) read() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sum
}

func (c *counter) Apply(commands []braid.Command) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range commands {
		c.sum += binary.BigEndian.Uint64(commands[i].Data)
		commands[i].Result = c.sum
	}
	return nil
}

func (c *counter) Snapshot() (braid.Snapshot, error) { return view(c.sum), nil }

func (c *counter) Restore(r io.Reader) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return binary.Read(r, binary.BigEndian, &c.sum)
}

type view uint64

func (v view) WriteTo(_ context.Context, w io.Writer) error {
	return binary.Write(w, binary.BigEndian, v)
}
func (v view) Close() error { return nil }

// A cluster of one. With more members, list them all and give each its Listen.
func Example() {
	dir, _ := os.MkdirTemp("", "braid-example-")
	defer os.RemoveAll(dir)
	members := []braid.Member{{ID: 1}}
	node, err := braid.Open(braid.Options{
		Self: 1, Cluster: braid.ClusterIDOf(members, "example"), Dir: dir, Members: members,
		Logger: slog.New(slog.DiscardHandler),
	}, &counter{})
	if err != nil {
		panic(err)
	}
	defer node.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, n := range []uint64{30, 12} {
		sum, err := node.Propose(ctx, binary.BigEndian.AppendUint64(nil, n))
		fmt.Println(sum, err)
	}
	// Output:
	// 30 <nil>
	// 42 <nil>
}
