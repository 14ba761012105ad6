package limit

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const testTimeout = 30 * time.Second

// recorder is a state machine that keeps its commands.
type recorder struct {
	mu       sync.Mutex
	commands []string
	want     int
	complete chan struct{} // closed when there are as many commands as wanted
}

func (r *recorder) apply(commands [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range commands {
		if r.commands = append(r.commands, string(c)); len(r.commands) == r.want {
			close(r.complete)
		}
	}
}

// open starts a cluster whose members will apply a number of commands.
func open(t *testing.T, members, want int, logBytes int64) (c *Cluster, dir string, all []*recorder) {
	t.Helper()
	dir = t.TempDir()
	config := Config{Dir: dir, LogBytes: logBytes, CommandBytes: 100, CommitInterval: 5 * time.Millisecond}
	for range members {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		r := &recorder{want: want, complete: make(chan struct{})}
		all = append(all, r)
		config.Listeners, config.Apply = append(config.Listeners, l), append(config.Apply, r.apply)
	}
	c, err := Open(config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c, dir, all
}

// wait receives from a channel within testTimeout.
func wait[T any](t *testing.T, what string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(testTimeout):
		t.Fatalf("%s: not in %v", what, testTimeout)
	}
	return v
}

// propose proposes a command, and returns a channel for its outcome.
func propose(t *testing.T, c *Cluster, command string) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	require.NoError(t, c.ProposeAsync([]byte(command), func(_ any, err error) { done <- err }))
	return done
}

// logged returns the commands in a member's log from its first byte on, and the number of the first batch.
func logged(t *testing.T, dir string, member int) (commands []string, first uint64) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("m%d", member), "log"))
	require.NoError(t, err)
	r := bytes.NewReader(data)
	for next := uint64(0); ; next++ {
		b, err := readBatch(r, 1)
		if err != nil || next > 0 && b.seq != next {
			return commands, first // zeros, or batches of an earlier round
		}
		if next == 0 {
			next, first = b.seq, b.seq
		}
		for _, c := range b.split(nil) {
			commands = append(commands, string(c))
		}
	}
}

// Concurrent clients: every member logs and applies each command once, all in the same order, and the commands of each
// client in the order in which it proposed them.
func TestEachCommandIsLoggedOnceAndInOrder(t *testing.T) {
	t.Parallel()
	const clients, each = 8, 500
	for _, members := range []int{1, 3, 5} {
		c, dir, all := open(t, members, clients*each, 1<<20)
		var running sync.WaitGroup
		for client := range clients {
			running.Go(func() {
				for i := range each {
					done := make(chan error, 1)
					err := c.ProposeAsync(fmt.Appendf(nil, "%d %d", client, i), func(_ any, err error) { done <- err })
					if err == nil {
						err = <-done
					}
					if err != nil {
						t.Errorf("client %d: %v", client, err)
						return
					}
				}
			})
		}
		running.Wait()
		for i, r := range all {
			wait(t, fmt.Sprintf("member %d applies everything", i+1), r.complete)
		}
		sent, syncs := c.Totals()
		require.NoError(t, c.Close())
		order, first := logged(t, dir, 1)
		require.Len(t, order, clients*each)
		require.Equal(t, uint64(1), first)
		next := make([]int, clients)
		for _, command := range order {
			var client, i int
			_, err := fmt.Sscanf(command, "%d %d", &client, &i)
			require.NoError(t, err)
			require.Equal(t, next[client], i, "client %d", client)
			next[client]++
		}
		for i, r := range all {
			commands, _ := logged(t, dir, i+1)
			require.Equal(t, order, commands, "the log of member %d", i+1)
			require.Equal(t, order, r.commands, "member %d", i+1)
		}
		require.Len(t, sent, members)
		require.GreaterOrEqual(t, syncs, int64(members))
		if members > 1 {
			require.Greater(t, sent[0], int64((members-1)*clients*each))
		}
	}
}

// A log that is full is overwritten from its beginning on.
func TestALogIsOverwritten(t *testing.T) {
	t.Parallel()
	const want, size = 400, 8 << 10
	c, dir, all := open(t, 3, want, size)
	for i := range want {
		require.NoError(t, wait(t, "an answer", propose(t, c, fmt.Sprintf("command %06d", i))))
	}
	for _, r := range all {
		wait(t, "everything is applied", r.complete)
	}
	require.NoError(t, c.Close())
	for member := 1; member <= 3; member++ {
		commands, first := logged(t, dir, member)
		require.Greater(t, first, uint64(1), "member %d", member)
		require.NotEmpty(t, commands)
		require.Equal(t, fmt.Sprintf("command %06d", want-1), commands[len(commands)-1], "member %d", member)
		info, err := os.Stat(filepath.Join(dir, fmt.Sprintf("m%d", member), "log"))
		require.NoError(t, err)
		require.Equal(t, int64(size), info.Size())
	}
}

// A batch is applied when two of three members have it on their disks, and not before.
func TestAMajorityCommits(t *testing.T) {
	r := &recorder{want: 2, complete: make(chan struct{})}
	l := &leader{member: &member{apply: r.apply}, wake: make(chan struct{}, 1), onDisk: make([]uint64, 3)}
	answers := 0
	answer := func(any, error) { answers++ }
	require.NoError(t, l.propose([]byte("a"), answer))
	require.NoError(t, l.propose([]byte("b"), answer))
	b := l.next()
	require.Equal(t, uint64(1), b.seq)
	require.Nil(t, l.next())
	l.acknowledge(0, 1)
	require.Empty(t, r.commands)
	require.NoError(t, l.propose([]byte("c"), answer))
	require.Nil(t, l.next(), "a small batch waits for the one before it")
	l.acknowledge(2, 1)
	require.Equal(t, []string{"a", "b"}, r.commands)
	require.Equal(t, 2, answers)
	l.acknowledge(1, 1)
	require.Equal(t, 2, answers)
	require.Equal(t, uint64(1), l.next().committed)
}

// A full batch does not wait for the one before it, and no third one is sent.
func TestAFullBatchIsSent(t *testing.T) {
	l := &leader{wake: make(chan struct{}, 1), onDisk: make([]uint64, 3)}
	large := make([]byte, MaxBatch)
	for range 3 {
		require.NoError(t, l.propose(large, nil))
	}
	require.NotNil(t, l.next())
	require.NotNil(t, l.next())
	require.Nil(t, l.next())
}

// Without a majority of disks a command is not answered with success.
func TestABrokenDiskEndsTheCluster(t *testing.T) {
	t.Parallel()
	c, _, _ := open(t, 2, 2, 1<<20)
	require.NoError(t, wait(t, "an answer", propose(t, c, "a")))
	require.NoError(t, c.followers[0].log.file.Close())
	err := wait(t, "an answer", propose(t, c, "b"))
	var broken *BrokenError
	require.ErrorAs(t, err, &broken)
	require.Equal(t, 1, broken.Member)
	require.ErrorIs(t, err, os.ErrClosed)
	require.ErrorAs(t, c.ProposeAsync([]byte("c"), nil), &broken)
	require.ErrorAs(t, c.Close(), &broken)
}

// A command that has no answer when the cluster is closed gets an error.
func TestClose(t *testing.T) {
	t.Parallel()
	c, _, _ := open(t, 3, 1, 1<<20)
	c.leader.mu.Lock()
	c.leader.proposed = append(c.leader.proposed, newBatch()) // run is not notified of it
	done := make(chan error, 1)
	c.leader.proposed[0].add([]byte("a"), func(_ any, err error) { done <- err })
	c.leader.sent = make([]*batch, inFlight) // and would not send it
	for i := range c.leader.sent {
		c.leader.sent[i] = newBatch()
	}
	c.leader.mu.Unlock()
	require.NoError(t, c.Close())
	require.ErrorIs(t, wait(t, "the answer", done), ErrClosed)
	require.ErrorIs(t, c.ProposeAsync([]byte("b"), nil), ErrClosed)
}

func TestOpenRefuses(t *testing.T) {
	_, err := Open(Config{Dir: t.TempDir()})
	require.ErrorContains(t, err, "0 members")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	apply := []func([][]byte){func([][]byte) {}}
	_, err = Open(Config{Dir: filepath.Join(os.DevNull, "x"), Listeners: []net.Listener{l}, Apply: apply})
	var broken *BrokenError
	require.ErrorAs(t, err, &broken)
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

// A batch that changed on its way, or on a disk, is refused.
func TestDamage(t *testing.T) {
	b := newBatch()
	b.add([]byte("one"), nil)
	b.add(nil, nil)
	b.seal(7, 6, 1)
	whole := bytes.Clone(b.frame)
	got, err := readBatch(bytes.NewReader(whole), 1)
	require.NoError(t, err)
	require.Equal(t, head{seq: 7, committed: 6, commands: 2}, got.head)
	require.Equal(t, [][]byte{[]byte("one"), {}}, got.split(nil))
	for i := 4; i < len(whole); i++ {
		bad := bytes.Clone(whole)
		bad[i] ^= 1
		_, err := readBatch(bytes.NewReader(bad), 1)
		require.ErrorIs(t, err, errSum, "byte %d", i)
	}
	binary.LittleEndian.PutUint32(whole, uint32(len(whole)))
	_, err = readBatch(bytes.NewReader(whole), 1)
	require.Error(t, err)
}
