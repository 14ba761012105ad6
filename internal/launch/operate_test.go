package launch

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// operated is a cluster that is ready and can be operated.
func operated(t *testing.T, change func(*Options)) (*harness, *Cluster) {
	t.Helper()
	h := launchMembers(t, "healthy", filepath.Join(t.TempDir(), "data"), change)
	h.next(Ready)
	return h, <-h.opened
}

// becomes waits until a member is in a state.
func becomes(t *testing.T, c *Cluster, name string, s State) Condition {
	t.Helper()
	deadline, tick := time.After(testTimeout), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		for _, m := range c.Conditions() {
			if m.Name == name && m.State == s {
				return m
			}
		}
		select {
		case <-tick.C:
		case <-deadline:
			require.Fail(t, "the member is not in the state", "%s %s: %v", name, s, c.Conditions())
		}
	}
}

// netOf asks a member how it emulates its links.
func netOf(t *testing.T, m Member) string {
	t.Helper()
	client := &http.Client{Timeout: testTimeout}
	defer client.CloseIdleConnections()
	answer, err := client.Get(m.ClientURL())
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}

// processState is the state of a process as Linux shows it; T: stopped.
func processState(t *testing.T, pid int) string {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	return strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))[0]
}

func TestKillAndStart(t *testing.T) {
	h, c := operated(t, nil)
	before := becomes(t, c, "m2", IsRunning)
	require.NoError(t, c.Kill(t.Context(), "m2"))
	require.Equal(t, "was killed by signal 9 (killed)", h.next(Died).How)
	becomes(t, c, "m2", IsDead)
	require.True(t, gone(before.PID))
	var state *StateError
	require.ErrorAs(t, c.Kill(t.Context(), "m2"), &state)
	require.ErrorAs(t, c.Pause("m2"), &state)
	require.EqualError(t, c.Start("m1"), "m1 has a process already")

	require.NoError(t, c.Start("m2"))
	require.NotEqual(t, before.PID, h.next(Started).PID)
	require.Equal(t, "m2", h.next(Serving).Member.Name)
	becomes(t, c, "m2", IsRunning)

	var unknown *UnknownError
	require.ErrorAs(t, c.Start("m4"), &unknown)
	require.NoError(t, h.end())
	require.ErrorIs(t, c.Kill(t.Context(), "m1"), ErrNotRunning)
}

// If Kill ended all members, the cluster waits until one is started.
func TestAllKilled(t *testing.T) {
	h, c := operated(t, nil)
	for _, m := range c.Conditions() {
		require.NoError(t, c.Kill(t.Context(), m.Name))
		h.next(Died)
	}
	require.NoError(t, c.Start("m3"))
	require.Equal(t, "m3", h.next(Serving).Member.Name)
	require.NoError(t, h.end())
}

func TestKilledMembersRestart(t *testing.T) {
	h, c := operated(t, func(o *Options) { o.Restart = true })
	require.NoError(t, c.Kill(t.Context(), "m1"))
	h.next(Died)
	require.Equal(t, "m1", h.next(Serving).Member.Name)
	becomes(t, c, "m1", IsRunning)
	require.NoError(t, h.end())
}

// A member that is restarted on its own while Start is called does not start a second time when it ends.
func TestStartOfAMemberThatRestarts(t *testing.T) {
	m := &member{Member: Member{Name: "m1"}, wake: make(chan struct{}, 1)}
	c := &Cluster{members: []*member{m}, phase: isReady}
	m.c = c
	require.NoError(t, c.Start("m1"))
	require.Len(t, m.wake, 1)
	m.recordStart(&process{}, "")
	require.Empty(t, m.wake)
}

func TestPauseAndResume(t *testing.T) {
	h, c := operated(t, nil)
	require.NoError(t, c.Pause("m1"))
	require.Equal(t, "m1", h.next(Paused).Member.Name)
	pid := becomes(t, c, "m1", IsPaused).PID
	require.Eventually(t, func() bool { return processState(t, pid) == "T" }, testTimeout, time.Millisecond)
	require.EqualError(t, c.Pause("m1"), "m1 is paused already")
	require.EqualError(t, c.Resume("m2"), "m2 is not paused")
	require.NoError(t, c.Resume("m1"))
	require.Equal(t, pid, h.next(Resumed).PID)
	becomes(t, c, "m1", IsRunning)
	require.Eventually(t, func() bool { return processState(t, pid) != "T" }, testTimeout, time.Millisecond)

	// A paused member is killed and ends with the others.
	require.NoError(t, c.Pause("m1"))
	require.NoError(t, c.Pause("m2"))
	require.NoError(t, c.Kill(t.Context(), "m1"))
	h.next(Died)
	becomes(t, c, "m1", IsDead)
	left := becomes(t, c, "m2", IsPaused).PID
	require.NoError(t, h.end())
	require.True(t, gone(left))
}

// All members have a new emulation of links, also those that were paused or dead when it changed.
func TestRelink(t *testing.T) {
	h, c := operated(t, func(o *Options) { o.Spec.Net = "latency=1ms" })
	require.NoError(t, c.Pause("m2"))
	require.NoError(t, c.Kill(t.Context(), "m3"))
	require.NoError(t, c.Relink("m1", "latency=2ms", "is slow"))
	e := h.next(Relinked)
	require.Equal(t, "m1 is slow", e.Member.Name+" "+e.How)
	require.NoError(t, c.Resume("m2"))
	require.NoError(t, c.Start("m3"))
	for _, m := range c.Conditions() {
		becomes(t, c, m.Name, IsRunning)
		slow := func() bool { return netOf(t, m.Member) == "latency=2ms" }
		require.Eventually(t, slow, testTimeout, 10*time.Millisecond)
	}
	require.NoError(t, h.end())
	kept, err := ReadManifest(h.dir)
	require.NoError(t, err)
	require.Equal(t, "latency=1ms", kept.Net)
}

// A process that does not read delays its launcher for a bounded time.
func TestOrderToAProcessThatDoesNotRead(t *testing.T) {
	theirs, ours, err := os.Pipe()
	require.NoError(t, err)
	defer theirs.Close()
	p := &process{alive: ours}
	long := strings.Repeat("x", 1<<20)
	require.ErrorIs(t, p.send(order{Net: &long}), os.ErrDeadlineExceeded)
	require.NoError(t, ours.Close())
	require.NoError(t, p.send(order{Net: &long}))
}

// The tail of a member's log is text, also if the member wrote other bytes.
func TestTailIsText(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(name, []byte("fine: é\tx\n\x1b[31mred\x07 \xff\x00\n"), 0o600))
	log, err := os.Open(name)
	require.NoError(t, err)
	defer log.Close()
	p := &process{log: log}
	require.Equal(t, []string{"fine: é\tx", `\x1b[31mred\a \xff\x00`}, p.tail(10))
}
