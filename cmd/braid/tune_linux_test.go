package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/bench"
	"github.com/braidlog/braid/bench/workload"
	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/server"
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
	{"multi-paxos", []string{"--protocol=multi-paxos"}, []string{
		"relays=2", "election-timeout=2s", "fit=off", "relays=0",
	}},
	{"iss", []string{"--protocol=iss"}, []string{"relays=2", "election-timeout=2s", "fit=off", "relays=0"}},
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
					c.follow(settings)
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

// follow waits until leaders are where the settings have them.
func (c *cluster) follow(settings string) {
	c.t.Helper()
	_, where, given := strings.Cut(settings, "leaders=")
	if !given {
		return
	}
	began := time.Now()
	names := c.leaders("leaders "+where, func(names []string) bool {
		leading := len(slices.Compact(slices.Sorted(slices.Values(names))))
		if where == "spread" {
			return leading == min(len(names), len(c.endpoints))
		}
		return leading == 1
	})
	c.t.Logf("%-24s leaders after %s: %v", settings, time.Since(began).Round(time.Millisecond), names)
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

// killSteps are times, in milliseconds, after which members that are 20 ms apart are at one of the steps of a change of
// settings: the leader alone holds it, a majority holds it and the leader does not know, the leader has applied it, all
// members have, and the same of a second change, which follows a fence or a plan.
var killSteps = []time.Duration{5, 30, 50, 70, 90, 130}

// killRuns counts runs of TestKillsWhileTuning: with -count=12 each change meets each kill.
var killRuns atomic.Int32

// TestKillsWhileTuning kills the leader, or a follower, at a step of a change of settings. No acknowledged write is
// lost, and at the end all members have the same profile.
func TestKillsWhileTuning(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	first := int(killRuns.Add(1)) - 1
	for _, k := range tunings {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			c := up(t, dataDir(t), append(k.flags, "--restart", "--nodes=3", "--net=latency=20ms")...)
			w := write(t, c)
			for round, settings := range k.tunes {
				turn := round + first
				leader := c.leader()
				victim := leader
				for name := range c.pids {
					if turn%2 == 1 && name != leader {
						victim = name
						break
					}
				}
				c.tuneAndKill(settings, leader, victim, killSteps[turn/2%len(killSteps)]*time.Millisecond)
				c.tune(settings)
				more := w.total() + 100
				eventually(t, "writes after "+settings, func(context.Context) bool { return w.total() > more })
			}
			w.end()
			for _, endpoint := range c.endpoints {
				w.check(t, c.client(endpoint))
			}
			c.oneProfile()
		})
	}
}

// tuneAndKill asks the leader for a change, kills the victim after some time, and waits until the victim serves again.
// The change may fail: the leader may be the one that crashed.
func (c *cluster) tuneAndKill(settings, leader, victim string, after time.Duration) {
	c.t.Helper()
	set, err := parsePairs(strings.Fields(settings), "NAME=VALUE")
	require.NoError(c.t, err)
	conn := c.client(strings.TrimPrefix(c.clients[leader], "http://")).ActiveConnection()
	ctx, cancel := context.WithTimeout(c.t.Context(), testTimeout)
	defer cancel()
	_, err = server.Tune(ctx, conn, braid.Tuning{}) // the connection is made
	require.NoError(c.t, err)
	asked := make(chan error, 1)
	pid := c.pids[victim]
	time.AfterFunc(after, func() { kill(c.t, pid) })
	go func() {
		_, err := server.Tune(ctx, conn, braid.Tuning{Set: set})
		asked <- err
	}()
	require.Equal(c.t, victim, c.next(launch.Serving).Member)
	cancel()
	if err := <-asked; err != nil {
		c.t.Logf("%s, %s killed after %s: %v", settings, victim, after, err)
	}
}

// oneProfile waits until all members have applied the same profile and have the same instances.
func (c *cluster) oneProfile() {
	c.t.Helper()
	type profile struct {
		version   uint64
		instances int
	}
	eventually(c.t, "one profile", func(context.Context) bool {
		profiles, all := map[profile]bool{}, c.members()
		for _, m := range all {
			profiles[profile{m.Profile, len(m.Instances)}] = true
		}
		return len(all) == len(c.endpoints) && len(profiles) == 1
	})
}

// TestTuneWithAMemberAwayAndAJoiner changes settings while one member is down, adds one in the middle of it, and starts
// the first one again, whose log ends before all changes.
func TestTuneWithAMemberAwayAndAJoiner(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	for _, k := range tunings {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			c := unstarted(t)
			c.more = append([]string{"--snapshot-bytes=20000", "--strict-reconfig-check=false"}, k.flags...)
			c.start(1, 2, 3)
			for i := 1; i <= 3; i++ {
				c.healthy(i)
			}
			running := &cluster{invocation: c.running[1], endpoints: []string{c.flags[1].client, c.flags[2].client}}
			w := write(t, running)
			eventually(t, "writes", func(context.Context) bool { return w.total() > 200 })
			c.kill(3)
			joiner := newServeFlags(t)
			joiner.name = "m4"
			for i, settings := range k.tunes {
				if i == len(k.tunes)/2 {
					ok(t, "ctl", "--endpoints", c.flags[1].client, "member", "add", "m4",
						"--peer-urls", "http://"+joiner.peer)
					begin(t, "", joiner.args(append([]string{"--initial-cluster-state=existing", "--join",
						"http://" + c.flags[1].client}, k.flags...)...)...)
				}
				running.tune(settings)
				more := w.total() + 100
				eventually(t, "writes after "+settings, func(context.Context) bool { return w.total() > more })
			}
			eventually(t, "health of the joiner", func(ctx context.Context) bool { return healthy(ctx, joiner.client) })
			c.start(3)
			c.healthy(3)
			w.end()
			running.endpoints = append(running.endpoints, c.flags[3].client, joiner.client)
			running.oneProfile()
			for _, endpoint := range running.endpoints {
				w.check(t, running.client(endpoint))
			}
		})
	}
}
