package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/bench/workload"
	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/testsize"
)

// tuned is a kind of cluster, and the settings that are tuned one after the other while clients use it.
type tuned struct {
	name  string
	flags []string
	tunes []string // NAME=VALUE, several with spaces between
}

var tunings = []tuned{
	{"raft", nil, []string{
		"election-timeout=2s", "lease-reads=true", "election-timeout=500ms", "lease-reads=false",
		"heartbeat-interval=50ms",
		"placement=code", "code-k=1", "code-k=2 extra-whole=1", "trim-whole=true", "placement=copy",
	}},
	{"protocols", nil, []string{ // craft, lcr, niagara and raft
		"placement=code", "placement=copy lanes=true", "lanes=false", "instances=4 leaders=spread",
		"instances=1",
	}},
	{"niagara", []string{"--protocol=niagara", "--instances=3"}, []string{
		"leaders=spread", "election-timeout=2s", "lease-reads=true", "leaders=together", "instances=4", "instances=2",
	}},
	{"multi-paxos", []string{"--protocol=multi-paxos"}, []string{"relays=2", "election-timeout=2s", "relays=0"}},
	{"iss", []string{"--protocol=iss"}, []string{"relays=2", "election-timeout=2s", "relays=0"}},
}

// TestTuneUnderLoad tunes settings while clients write and read. No request fails, the history is linearizable, and no
// leader is lost.
func TestTuneUnderLoad(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	for _, nodes := range []int{3, 5} {
		for _, k := range tunings {
			t.Run(fmt.Sprintf("%s %d", k.name, nodes), func(t *testing.T) {
				c := upWith(t, calm, dataDir(t), append(k.flags, fmt.Sprintf("--nodes=%d", nodes))...)
				c.leader()
				load := c.checked()
				w := write(t, c)
				eventually(t, "writes", func(context.Context) bool { return w.total() > 200 })
				for _, settings := range k.tunes {
					before := c.terms()
					w.forgetPause()
					c.tune(settings)
					more := w.total() + 100
					eventually(t, "writes after "+settings, func(context.Context) bool { return w.total() > more })
					t.Logf("%-24s longest time without an acknowledgement %s", settings,
						w.longestPause().Round(time.Millisecond))
					if !strings.HasPrefix(settings, "instances=") && !strings.HasPrefix(settings, "leaders=") {
						require.Equal(t, before, c.terms(), "a leader was lost by %s", settings)
					}
				}
				w.end()
				w.check(t, c.client())
				load(t)
			})
		}
	}
}

// tune tunes settings by the command, on any member that answers.
func (c *cluster) tune(settings string) {
	c.t.Helper()
	args := []string{"tune", "--endpoints", strings.Join(c.endpoints, ",")}
	out := ok(c.t, append(args, strings.Fields(settings)...)...)
	for _, set := range strings.Fields(settings) {
		name, value, _ := strings.Cut(set, "=")
		require.Regexp(c.t, name+" +"+value+" ", out)
	}
}

// terms are the terms of the instances, as the members that are up know them.
func (c *cluster) terms() (terms []uint64) {
	c.t.Helper()
	eventually(c.t, "all members answer", func(context.Context) bool {
		all := c.members()
		terms = nil
		for _, m := range all {
			for at, i := range m.Instances {
				if at == len(terms) {
					terms = append(terms, 0)
				}
				terms[at] = max(terms[at], i.Term)
			}
		}
		return len(all) == len(c.endpoints)
	})
	return terms
}

// checked starts 20 clients that write and read values which are large in part. The function that it returns ends
// them, and requires that none of their requests failed, and that their history is linearizable.
func (c *cluster) checked() (end func(t *testing.T)) {
	ctx, cancel := context.WithCancel(context.Background())
	type outcome struct {
		result *bench.KVResult
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		r, err := bench.RunKV(ctx, bench.KVConfig{
			Protocol: "braid", API: bench.EtcdAPI, Endpoints: c.endpoints, Clients: 20, Conns: len(c.endpoints),
			Duration: 10 * time.Minute, KeySize: 16, KeyPrefix: "c/", Check: true, CheckLimit: time.Minute,
			Throttle: 500,
			Workload: workload.Spec{Mix: workload.Ratio(0.5), KeySpace: 50, Values: workload.Fixed(8 << 10), Seed: 1},
			Progress: func(bench.Progress) {},
		})
		done <- outcome{r, err}
	}()
	c.t.Cleanup(cancel)
	return func(t *testing.T) {
		t.Helper()
		cancel()
		o := <-done
		require.NoError(t, o.err)
		require.Zero(t, o.result.Errors, o.result.ErrorSample)
		require.NotNil(t, o.result.History)
		require.Equal(t, bench.Linearizable, o.result.History.Verdict, o.result.History.Detail)
		t.Logf("%d requests", o.result.Commands)
	}
}

// forgetPause makes longestPause count from now.
func (w *writers) forgetPause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.longest = 0
}

// TestKillsWhileTuning kills the leader and followers at any time around a change of settings. No acknowledged write
// is lost, and at the end all members have the same profile.
func TestKillsWhileTuning(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	for _, k := range tunings {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			c := up(t, dataDir(t), append(k.flags, "--restart", "--nodes=3")...)
			w := write(t, c)
			random := rand.New(rand.NewPCG(1, 2))
			for round, settings := range k.tunes {
				victim := c.leader()
				for name := range c.pids {
					if round%2 == 1 && name != victim {
						victim = name
						break
					}
				}
				wait := time.Duration(random.IntN(40)) * time.Millisecond
				tune, _ := begin(t, "", append([]string{"tune", "--endpoints", strings.Join(c.endpoints, ",")},
					strings.Fields(settings)...)...)
				time.AfterFunc(wait, func() { kill(t, c.pids[victim]) })
				require.Equal(t, victim, c.next(launch.Serving).Member)
				tune.exit() // it may fail: its member may be the one that crashed
				c.tune(settings)
				more := w.total() + 100
				eventually(t, "writes after "+settings, func(context.Context) bool { return w.total() > more })
			}
			w.end()
			for _, endpoint := range c.endpoints {
				w.check(t, c.client(endpoint))
			}
			eventually(t, "one profile", func(context.Context) bool {
				versions := map[uint64]bool{}
				all := c.members()
				for _, m := range all {
					versions[m.Profile] = true
				}
				return len(all) == 3 && len(versions) == 1
			})
		})
	}
}
