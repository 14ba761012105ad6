package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/ports"
)

// TestMain makes this binary act as a member: one that serves /readyz on its client port, or one that fails.
func TestMain(m *testing.M) {
	switch os.Getenv("LAUNCH_TEST_MEMBER") {
	case "healthy":
		os.Exit(healthyMember(os.Args[1]))
	case "failing":
		fmt.Println("the disk is on fire")
		os.Exit(3)
	}
	os.Exit(m.Run())
}

func healthyMember(addr string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var links atomic.Value
	links.Store(os.Args[2])
	WatchParent(func() { os.Exit(4) }, func(spec string) { links.Store(spec) })
	l, err := net.Listen("tcp", addr)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	go http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, links.Load()) }))
	<-ctx.Done()
	return 0
}

// testTimeout limits waits for events that should be immediate.
const testTimeout = time.Minute

// harness runs a cluster in the background and returns its events one by one.
type harness struct {
	t      *testing.T
	dir    string
	events chan Event
	stop   context.CancelFunc
	ended  chan error
	opened chan *Cluster // has it once it was opened
}

func launchMembers(t *testing.T, kind, dir string, change func(*Options)) *harness {
	t.Helper()
	t.Setenv("LAUNCH_TEST_MEMBER", kind)
	ctx, cancel := context.WithCancel(t.Context())
	h := &harness{t: t, dir: dir, events: make(chan Event, 100), stop: cancel, ended: make(chan error, 1),
		opened: make(chan *Cluster, 1)}
	o := Options{
		Dir: dir, Spec: Spec{Nodes: 3, BasePort: AnyPort, Protocol: "raft", Placement: "copy", Instances: 1},
		Command: func(all *Manifest, m Member, _ string) []string {
			return []string{os.Args[0], m.ClientAddr(), all.Net}
		},
		Report: func(e Event) { h.events <- e }, ReadyTimeout: testTimeout, StopTimeout: 10 * time.Second,
	}
	if change != nil {
		change(&o)
	}
	go func() {
		c, err := Open(ctx, o)
		if err == nil {
			h.opened <- c
			err = c.Run(ctx)
		}
		h.ended <- err
	}()
	t.Cleanup(cancel)
	return h
}

// next returns the next event of a kind.
func (h *harness) next(kind EventKind) Event {
	h.t.Helper()
	deadline := time.After(testTimeout)
	for {
		select {
		case e := <-h.events:
			if e.Kind == kind {
				return e
			}
		case <-deadline:
			require.Fail(h.t, "no event", "%s", kind)
		}
	}
}

func (h *harness) end() error {
	h.t.Helper()
	h.stop()
	return h.result()
}

func (h *harness) result() error {
	h.t.Helper()
	select {
	case err := <-h.ended:
		return err
	case <-time.After(testTimeout):
		require.Fail(h.t, "the cluster did not end")
		return nil
	}
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestRunUntilStopped(t *testing.T) {
	h := launchMembers(t, "healthy", t.TempDir(), nil)
	pids := []int{h.next(Started).PID, h.next(Started).PID, h.next(Started).PID}
	h.next(Ready)
	require.NoError(t, h.end())
	for _, pid := range pids {
		require.True(t, gone(pid), "process %d", pid)
	}
}

func TestResumeKeepsNamesAndPorts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	craft := Spec{Nodes: 3, BasePort: AnyPort, Protocol: "craft", Placement: "code", CodeK: 2, Instances: 1}
	h := launchMembers(t, "healthy", dir, func(o *Options) { o.Spec = craft })
	first := h.next(Prepared)
	require.False(t, first.Resumed)
	require.Equal(t, 2, first.Manifest.CodeK)
	h.next(Ready)
	require.NoError(t, h.end())

	h = launchMembers(t, "healthy", dir, func(o *Options) { o.Spec = Spec{BasePort: AnyPort, CodeK: 2} })
	again := h.next(Prepared)
	require.True(t, again.Resumed)
	require.Equal(t, first.Manifest, again.Manifest)
	h.next(Ready)
	require.NoError(t, h.end())

	for want, change := range map[string]func(*Spec){
		"nodes 3, not 5":           func(s *Spec) { s.Nodes = 5 },
		"protocol craft, not raft": func(s *Spec) { s.Protocol = "raft" },
		"placement code, not copy": func(s *Spec) { s.Placement = "copy" },
		"code-k 2, not 3":          func(s *Spec) { s.CodeK = 3 },
	} {
		h = launchMembers(t, "healthy", dir, func(o *Options) { o.Spec = craft; change(&o.Spec) })
		var conflict *ConflictError
		require.ErrorAs(t, h.result(), &conflict)
		require.Contains(t, conflict.Error(), want)
	}
}

// With other settings the log would have other epochs.
func TestResumeKeepsTheEpochs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	iss := Spec{Nodes: 1, BasePort: AnyPort, Protocol: "iss", Placement: "copy", Instances: 1, Epochs: "--epoch-slots=32"}
	for _, said := range []string{iss.Epochs, iss.Epochs, ""} {
		h := launchMembers(t, "healthy", dir, func(o *Options) { o.Spec = iss; o.Spec.Epochs = said })
		require.Equal(t, "--epoch-slots=32", h.next(Prepared).Manifest.Epochs)
		h.next(Ready)
		require.NoError(t, h.end())
	}
	h := launchMembers(t, "healthy", dir, func(o *Options) { o.Spec = iss; o.Spec.Epochs = "--epoch-slots=64" })
	var conflict *ConflictError
	require.ErrorAs(t, h.result(), &conflict)
	require.Contains(t, conflict.Error(), "epochs --epoch-slots=32, not --epoch-slots=64")
}

func TestCards(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	woven := Spec{Nodes: 2, BasePort: AnyPort, Cards: 3, Protocol: "niagara", Placement: "copy", Instances: 4}
	h := launchMembers(t, "healthy", dir, func(o *Options) { o.Spec = woven })
	first := h.next(Prepared).Manifest
	h.next(Ready)
	require.NoError(t, h.end())
	seen := map[int]bool{}
	for _, m := range first.Members {
		require.Len(t, m.PeerURLs(), 3)
		for _, p := range append([]int{m.ClientPort, m.PeerPort}, m.MorePeerPorts...) {
			require.False(t, seen[p])
			seen[p] = true
		}
	}
	require.Equal(t, fmt.Sprintf("m1=http://127.0.0.1:%d,m1=http://127.0.0.1:%d", first.Members[0].PeerPort,
		first.Members[0].MorePeerPorts[0]),
		strings.Join(strings.Split(first.InitialCluster(), ",")[:2], ","))

	h = launchMembers(t, "healthy", dir, func(o *Options) { o.Spec = Spec{BasePort: AnyPort} })
	require.Equal(t, first, h.next(Prepared).Manifest)
	h.next(Ready)
	require.NoError(t, h.end())
	for want, change := range map[string]func(*Spec){
		"cards 3, not 1": func(s *Spec) { s.Cards = 1 },
		"began with instances 4, not 8: leave the flag out to resume it with those that it has now": func(s *Spec) {
			s.Instances = 8
		},
	} {
		h = launchMembers(t, "healthy", dir, func(o *Options) { o.Spec = woven; change(&o.Spec) })
		require.ErrorContains(t, h.result(), want)
	}

	ports, err := choosePorts(Spec{Nodes: 2, BasePort: 100, Cards: 2})
	require.NoError(t, err)
	require.Equal(t, []int{100, 101, 102, 110, 111, 112}, ports)
	_, err = choosePorts(Spec{Nodes: 1, BasePort: 65535})
	require.ErrorContains(t, err, "port 65536 of member 1 does not exist")
}

func TestDeathIsReported(t *testing.T) {
	h := launchMembers(t, "healthy", t.TempDir(), nil)
	victim := h.next(Started)
	h.next(Ready)
	require.NoError(t, syscall.Kill(victim.PID, syscall.SIGKILL))
	died := h.next(Died)
	require.Equal(t, victim.Member, died.Member)
	require.Equal(t, victim.PID, died.PID)
	require.Equal(t, "was killed by signal 9 (killed)", died.How)
	require.NoError(t, h.end())
}

func TestRestart(t *testing.T) {
	h := launchMembers(t, "healthy", t.TempDir(), func(o *Options) { o.Restart = true })
	victim := h.next(Started)
	h.next(Ready)
	require.NoError(t, syscall.Kill(victim.PID, syscall.SIGKILL))
	h.next(Died)
	again := h.next(Started)
	require.Equal(t, victim.Member, again.Member)
	require.NotEqual(t, victim.PID, again.PID)
	require.Equal(t, again.PID, h.next(Serving).PID)
	require.NoError(t, h.end())
	require.True(t, gone(again.PID))
}

func TestFailureBeforeReady(t *testing.T) {
	h := launchMembers(t, "failing", t.TempDir(), nil)
	err := h.result()
	require.ErrorContains(t, err, "ended with exit code 3 before the cluster was ready")
	require.ErrorContains(t, err, "the disk is on fire")
}

func TestAllDead(t *testing.T) {
	h := launchMembers(t, "healthy", t.TempDir(), nil)
	pids := []int{h.next(Started).PID, h.next(Started).PID, h.next(Started).PID}
	h.next(Ready)
	for _, pid := range pids {
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	require.ErrorContains(t, h.result(), "no member is left")
}

func TestTakenPort(t *testing.T) {
	l, err := net.Listen("tcp", host+":0")
	require.NoError(t, err)
	defer l.Close()
	dir := t.TempDir()
	h := launchMembers(t, "healthy", dir, func(o *Options) { o.Spec.BasePort = l.Addr().(*net.TCPAddr).Port })
	err = h.result()
	require.ErrorContains(t, err, l.Addr().String()+" is taken by launch.test (process ")
	require.NoFileExists(t, manifestFile(dir))
}

func TestForeignDirectory(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o600))
	require.ErrorContains(t, launchMembers(t, "healthy", dir, nil).result(), `has "thesis.tex"`)

	dir = t.TempDir()
	require.NoError(t, os.WriteFile(manifestFile(dir), []byte("{"), 0o600))
	require.ErrorContains(t, launchMembers(t, "healthy", dir, nil).result(), "not a manifest of braid")
}

func TestDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	h := launchMembers(t, "healthy", dir, nil)
	h.next(Ready)
	_, err := lock(dir)
	require.ErrorContains(t, err, fmt.Sprintf("is in use by another running cluster (process %d)", os.Getpid()))
	require.NoError(t, h.end())
}

func TestMembersEndWithTheirLauncher(t *testing.T) {
	t.Setenv("LAUNCH_TEST_MEMBER", "healthy")
	free, err := ports.Free(host, 1)
	require.NoError(t, err)
	addr := net.JoinHostPort(host, strconv.Itoa(free[0]))
	runtime.LockOSThread() // see start
	defer runtime.UnlockOSThread()
	p, err := start([]string{os.Args[0], addr, ""}, filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	require.NoError(t, p.alive.Close()) // what the end of the launcher does
	how, _, _ := p.wait()
	require.Equal(t, "ended with exit code 4", how)
}

// The zones of a new cluster's members are recorded, in turns.
func TestZonesOfANewCluster(t *testing.T) {
	m, err := create(t.TempDir(), Spec{Nodes: 4, BasePort: AnyPort, Protocol: "raft", Zones: []string{"a", "b", "c"}})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c", "a"}, m.Zones())
	require.Equal(t, "m1=a,m2=b,m3=c,m4=a", m.InitialZones())
	m, err = create(t.TempDir(), Spec{Nodes: 2, BasePort: AnyPort, Protocol: "raft"})
	require.NoError(t, err)
	require.Empty(t, m.Zones())
	require.Empty(t, m.InitialZones())
}
