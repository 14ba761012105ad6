package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/status"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
)

// letters makes a unique value of n bytes, in lines that pass through a terminal.
func letters(n int, seed uint64) string {
	const line = 32 << 10
	b := make([]byte, n)
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	for i := range b {
		b[i] = "0123456789abcdef"[random.IntN(16)]
		if i%line == line-1 && i != n-1 {
			b[i] = '\n'
		}
	}
	return string(b)
}

// largeClient is a client that sends large requests.
func (c *cluster) largeClient(endpoints ...string) *clientv3.Client {
	c.t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, Logger: zap.NewNop(), DialTimeout: testTimeout, MaxCallSendMsgSize: 64 << 20,
	})
	require.NoError(c.t, err)
	c.t.Cleanup(func() { client.Close() })
	return client
}

// alive are the client addresses of members by name, without those that are down.
func (c *cluster) alive(down ...string) map[string]string {
	out := map[string]string{}
	for name, url := range c.clients {
		if !slices.Contains(down, name) {
			out[name] = strings.TrimPrefix(url, "http://")
		}
	}
	return out
}

// reads requires that members have these values. A member may not answer for a while, but never with anything else.
func (c *cluster) reads(members map[string]string, values map[string]string) {
	c.t.Helper()
	for name, endpoint := range members {
		client := c.client(endpoint)
		for key, want := range values {
			eventually(c.t, "an answer of "+name+" about "+key, func(ctx context.Context) bool {
				r, err := client.Get(ctx, key)
				if err != nil {
					return false
				}
				require.Len(c.t, r.Kvs, 1, "%s of %s", key, name)
				require.True(c.t, string(r.Kvs[0].Value) == want, "%s of %s is not what was put", key, name)
				return true
			})
		}
	}
}

// onDisk are the bodies in a member's files, by index.
func (c *cluster) onDisk(name string) map[uint64]wal.BodyInfo {
	c.t.Helper()
	last := map[uint64]wal.BodyInfo{} // later records replace earlier ones
	dir := filepath.Join(c.dir, name, logDir, "bodies")
	require.NoError(c.t, wal.InspectBodies(vfs.OS, dir, func(wal.SegmentInfo) error { return nil },
		func(b wal.BodyInfo) error {
			if b.Kind == "body" && b.Number >= last[b.Body.Index].Number {
				last[b.Body.Index] = b
			}
			return nil
		}))
	return last
}

// The forms of bodies on disk: nothing, whole, then rows.
const (
	formWhole    = 1
	formFirstRow = 2
)

// fragments returns the index of a body of that size that one member holds whole and all others in rows of half its
// size, and its records in their files; 0 if there is none. On a busy machine a leader may have had to use fewer
// members.
func (c *cluster) fragments(size int) (index uint64, holders map[string]wal.BodyInfo) {
	c.t.Helper()
	byIndex := map[uint64]map[string]wal.BodyInfo{}
	for name := range c.clients {
		for i, b := range c.onDisk(name) {
			if byIndex[i] == nil {
				byIndex[i] = map[string]wal.BodyInfo{}
			}
			byIndex[i][name] = b
		}
	}
	for i, holders := range byIndex {
		forms, bytes := map[uint8]bool{}, 0
		for _, b := range holders {
			if int(b.Body.Size) == size && b.Body.K == 2 && b.Err == nil {
				forms[b.Body.Form] = true
				bytes += b.Length
			}
		}
		if len(forms) == len(c.clients) && forms[formWhole] && bytes == size+(len(forms)-1)*((size+1)/2) {
			return i, holders
		}
	}
	return 0, nil
}

// putCut puts a value until members hold fragments of it, and returns the body.
func (c *cluster) putCut(size int, put func(context.Context) bool) (index uint64, holders map[string]wal.BodyInfo) {
	c.t.Helper()
	eventually(c.t, "a value in fragments", func(ctx context.Context) bool {
		if !put(ctx) {
			return false
		}
		index, holders = c.fragments(size)
		return index > 0
	})
	return index, holders
}

// logged is the number of bytes of the records in a member's log, without bodies.
func (c *cluster) logged(name string) (bytes int) {
	c.t.Helper()
	dir := filepath.Join(c.dir, name, logDir, "log")
	require.NoError(c.t, wal.Inspect(vfs.OS, dir, func(wal.SegmentInfo) error { return nil },
		func(r wal.RecordInfo) error {
			bytes += r.Length
			return nil
		}))
	return bytes
}

func TestCraftReadsEveryValueEverywhere(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := up(t, dataDir(t), "--nodes=5", "--protocol=craft")
	one, sixteen := letters(1<<20, 1), letters(16<<20, 2)
	all := c.alive()
	client := c.largeClient(c.endpoints...)
	c.putCut(len(one), func(ctx context.Context) bool {
		_, err := client.Put(ctx, "one", one)
		return err == nil
	})
	c.putCut(len(sixteen), func(context.Context) bool {
		_, stderr, code := do(t, sixteen, "ctl", "--endpoints", c.endpoints[0], "--max-request-bytes=33554432",
			"--command-timeout=20s", "put", "sixteen")
		if code != 0 {
			t.Logf("put: %s", stderr)
		}
		return code == 0
	})
	for name := range all {
		require.Less(t, c.logged(name), 256<<10, "%s has values in its log", name)
	}
	values := map[string]string{"one": one, "sixteen": sixteen}
	c.reads(all, values)
	require.True(t, ok(t, "ctl", "--endpoints", c.endpoints[4], "--command-timeout=20s", "get", "one",
		"--print-value-only") == one)

	leader := c.leader()
	kill(t, c.pids[leader])
	c.next(launch.Died)
	c.reads(c.alive(leader), values)

	second := map[bool]string{true: "m2", false: "m1"}[leader == "m1"]
	kill(t, c.pids[second])
	c.next(launch.Died)
	rest := c.alive(leader, second)
	c.reads(rest, values)
	values["two"] = letters(1<<20, 3)
	writer := c.largeClient(slices.Collect(maps.Values(rest))...)
	eventually(t, "a write with two of five members down", func(ctx context.Context) bool {
		_, err := writer.Put(ctx, "two", values["two"])
		return err == nil
	})
	c.reads(rest, values)
}

// largeWriters put values of 100 KiB under separate keys until they are stopped.
type largeWriters struct {
	stop  context.CancelFunc
	all   sync.WaitGroup
	mu    sync.Mutex
	acked map[string]string
}

func (c *cluster) writeLarge() *largeWriters {
	ctx, stop := context.WithCancel(c.t.Context())
	w := &largeWriters{stop: stop, acked: map[string]string{}}
	for i := range 4 {
		client := c.largeClient(c.endpoints...)
		w.all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				key, value := fmt.Sprintf("w%d %d", i, n), letters(100<<10, uint64(1000*i+n))
				if w.put(ctx, client, key, value) {
					w.mu.Lock()
					w.acked[key] = value
					w.mu.Unlock()
				}
			}
		})
	}
	c.t.Cleanup(w.end)
	return w
}

func (w *largeWriters) put(ctx context.Context, client *clientv3.Client, key, value string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, err := client.Put(ctx, key, value)
	return err == nil
}

func (w *largeWriters) total() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

func (w *largeWriters) end() {
	w.stop()
	w.all.Wait()
}

func TestCraftLosesNothing(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	c := up(t, dir, "--nodes=5", "--protocol=craft")
	w := c.writeLarge()
	eventually(t, "writes", func(context.Context) bool { return w.total() > 20 })
	leader := c.leader()
	kill(t, c.pids[leader])
	c.next(launch.Died)
	before := w.total()
	eventually(t, "writes after the crash", func(context.Context) bool { return w.total() > before+20 })
	for name, pid := range c.pids {
		if name != leader {
			kill(t, pid)
		}
	}
	code, stderr := c.exit()
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "no member is left")
	w.end()

	again := up(t, dir)
	again.reads(again.alive(), w.acked)
}

func TestCraftRepairsDamage(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := up(t, dataDir(t), "--nodes=5", "--protocol=craft", "--scrub-rate=268435456")
	value := letters(1<<20, 4)
	client := c.largeClient(c.endpoints...)
	index, holders := c.putCut(len(value), func(ctx context.Context) bool {
		_, err := client.Put(ctx, "a", value)
		return err == nil
	})
	victim, body := "", wal.BodyInfo{}
	for name, b := range holders {
		if b.Body.Form >= formFirstRow {
			victim, body = name, b
		}
	}
	flip(t, body)
	var state status.Member
	eventually(t, "repair", func(ctx context.Context) bool {
		answers := status.Ask(ctx, status.Options{Endpoints: []string{c.alive()[victim]}, Only: true,
			Timeout: 5 * time.Second})
		state = answers[0]
		return state.Bodies.Corrupt > 0 && state.Bodies.Repaired > 0 && state.Bodies.Missing == 0
	})
	require.Equal(t, "code", state.Placement)
	require.Empty(t, state.Bodies.Failing)
	again := c.onDisk(victim)[index]
	require.NoError(t, again.Err)
	require.Equal(t, body.Body.Form, again.Body.Form)
	require.Equal(t, body.Length, again.Length)
	require.Greater(t, again.Number, body.Number)
	log, err := os.ReadFile(filepath.Join(c.dir, victim+".log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "a body on disk is damaged; restoring it from other members")
	metrics := fetch(t, c.alive()[victim], "/metrics")
	require.Contains(t, metrics, "\nbraid_bodies_corrupt_total 1\n")
	require.Contains(t, metrics, "\nbraid_bodies_repaired_total 1\n")

	// The restored rows are needed now: two others are gone, and the remaining members hold rows.
	var down []string
	for _, name := range []string{c.leader(), "m1", "m2", "m3"} {
		if name != victim && !slices.Contains(down, name) && len(down) < 2 {
			kill(t, c.pids[name])
			down = append(down, name)
		}
	}
	c.reads(c.alive(down...), map[string]string{"a": value})
}

// TestCraftJoin adds a member, which makes its own fragments of earlier values.
func TestCraftJoin(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := up(t, dataDir(t), "--nodes=3", "--protocol=craft", "--code-k=2")
	values := map[string]string{"a": letters(1<<20, 7)}
	client := c.largeClient(c.endpoints...)
	index, _ := c.putCut(1<<20, func(ctx context.Context) bool {
		_, err := client.Put(ctx, "a", values["a"])
		return err == nil
	})
	f := newServeFlags(t)
	f.name, f.dir = "m4", filepath.Join(c.dir, "m4")
	ok(t, "ctl", "--endpoints", c.endpoints[0], "member", "add", "m4", "--peer-urls", "http://"+f.peer)
	serving(t, f, "--initial-cluster-state=existing", "--join", "http://"+c.endpoints[0], "--placement=code", "--code-k=2")
	c.clients["m4"] = "http://" + f.client
	c.reads(c.alive(), values)
	eventually(t, "a row of its own", func(context.Context) bool {
		b := c.onDisk("m4")[index]
		return b.Body.Form == formFirstRow+3 && b.Length == 1<<19 && b.Err == nil
	})
	eventually(t, "nothing missing anywhere", func(ctx context.Context) bool {
		for _, m := range status.Ask(ctx, status.Options{Endpoints: c.endpoints, Timeout: 5 * time.Second}) {
			if m.Error != "" || m.Bodies.Missing > 0 || m.Bodies.Held == 0 || m.Instances[0].Lacking {
				return false
			}
		}
		return true
	})
	table := ""
	eventually(t, "its name, which it publishes itself", func(context.Context) bool {
		table = ok(t, "status", "--endpoints", c.endpoints[0])
		return strings.Contains(table, "m4")
	})
	for _, want := range []string{"PLACEMENT", " code ", "complete"} {
		require.Contains(t, table, want)
	}
}

func TestCraftSnapshotAndRestore(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c := up(t, dataDir(t), "--nodes=3", "--protocol=craft", "--code-k=2")
	values := map[string]string{"a": letters(1<<20, 5), "b": "small"}
	client := c.largeClient(c.endpoints...)
	c.putCut(1<<20, func(ctx context.Context) bool {
		_, err := client.Put(ctx, "a", values["a"])
		return err == nil
	})
	ok(t, "ctl", "--endpoints", c.endpoints[0], "put", "b", "small")
	file := filepath.Join(t.TempDir(), "backup.db")
	ok(t, "ctl", "--endpoints", c.endpoints[1], "snapshot", "save", file)
	c.stop()

	again := up(t, dataDir(t), "--protocol=craft", "--code-k=2", "--restore", file)
	again.reads(again.alive(), values)
	client = again.largeClient(again.endpoints...)
	again.putCut(1<<20+1, func(ctx context.Context) bool {
		values["a"] = letters(1<<20+1, 6)
		_, err := client.Put(ctx, "a", values["a"])
		return err == nil
	})
	again.reads(again.alive(), values)
}

// flip changes a bit of a body on disk.
func flip(t *testing.T, body wal.BodyInfo) {
	t.Helper()
	f, err := os.OpenFile(body.File, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	var b [1]byte
	at := body.Offset + int64(body.Length)/2
	_, err = f.ReadAt(b[:], at)
	require.NoError(t, err)
	b[0] ^= 1
	_, err = f.WriteAt(b[:], at)
	require.NoError(t, err)
}

// fetch reads a page of a member.
func fetch(t *testing.T, addr, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(content)
}
