package braid_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/testsize"
)

// ofClient has a row for each method of Client.
var ofClient = map[string]call{
	"Propose": func(ctx context.Context, n *braid.Node) error {
		_, err := n.Client().Propose(ctx, []byte("x"), nil)
		return err
	},
	"ProposeAsync": func(_ context.Context, n *braid.Node) error {
		return n.Client().ProposeAsync([]byte("x"), nil, func(any, error) {})
	},
	"ProposeWithAsync": func(_ context.Context, n *braid.Node) error {
		return n.Client().ProposeWithAsync([]byte("x"), nil, braid.ProposeOptions{}, func(any, error) {})
	},
}

// withContext are the methods of Node and Client that have a context.
func withContext() map[string]call {
	all := maps.Clone(methods)
	all["Client.Propose"] = ofClient["Propose"]
	return all
}

// withoutError are the methods of never that a state machine may call, and Close and HandOver, which do nothing then.
var withoutError = map[string]func(n *braid.Node) error{
	"AnswersEarly":   func(n *braid.Node) error { n.AnswersEarly(); return nil },
	"MayAnswerEarly": func(n *braid.Node) error { n.MayAnswerEarly(); return nil },
	"Client":         func(n *braid.Node) error { n.Client(); return nil },
	"ReleaseBody":    func(n *braid.Node) error { n.ReleaseBody(braid.BodyRef{}); return nil },
	"CheckState":     func(n *braid.Node) error { n.CheckState(); return nil },
	"DiskNeed":       func(n *braid.Node) error { n.DiskNeed(); return nil },
	"Done":           func(n *braid.Node) error { n.Done(); return nil },
	"Err":            func(n *braid.Node) error { return n.Err() },
	"Status":         func(n *braid.Node) error { n.Status(); return nil },
	"Tunables":       func(n *braid.Node) error { n.Tunables(); return nil },
	"Drain":          func(n *braid.Node) error { n.Drain(false); return nil },
	"HandOver":       func(n *braid.Node) error { n.HandOver(context.Background()); return nil },
	"Close":          func(n *braid.Node) error { return n.Close() },
	"Changes": func(n *braid.Node) error {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		n.Changes(ctx)
		return nil
	},
}

// TestEveryMethodOfAClientHasARow is TestEveryMethodHasARow of Client, and of the methods that do not fail.
func TestEveryMethodOfAClientHasARow(t *testing.T) {
	client := reflect.TypeFor[*braid.Client]()
	require.Equal(t, client.NumMethod(), len(ofClient))
	for i := range client.NumMethod() {
		require.Contains(t, ofClient, client.Method(i).Name)
	}
	require.Len(t, withoutError, len(never))
	for name := range never {
		require.Contains(t, withoutError, name)
	}
}

// everyCall calls every method of Node and Client, without a deadline.
func everyCall(n *braid.Node) map[string]error {
	got := map[string]error{}
	for name, call := range methods {
		got[name] = call(context.Background(), n)
	}
	for name, call := range ofClient {
		got["Client."+name] = call(context.Background(), n)
	}
	for name, call := range without {
		got[name] = call(n)
	}
	for name, call := range withoutError {
		got[name] = call(n)
	}
	return got
}

// requireWithinApply checks what everyCall got in a call of the state machine. In Snapshot all may be applied that a
// read waits for.
func requireWithinApply(t *testing.T, got map[string]error, inSnapshot bool) {
	t.Helper()
	for name, err := range got {
		switch name {
		case "ReadBarrier", "WaitReady", "Tune", "Switch", "PlanSwitch", "Advise":
			if inSnapshot && (err == nil || errors.As(err, new(*braid.AdviceError))) {
				continue
			}
		}
		switch name {
		case "Propose", "ProposeBody", "ProposeWith", "Client.Propose":
			require.ErrorIs(t, err, braid.ErrWithinApply, name) // it had been sent
			require.ErrorIs(t, err, braid.ErrMaybeCommitted, name)
		case "ReadBarrier", "WaitReady", "ChangeMembers", "TransferLeader", "Reshape", "Tune", "Switch", "PlanSwitch",
			"Advise", "Snapshot", "Close":
			require.Equal(t, braid.ErrWithinApply, err, name)
		case "Body": // no one has it
			require.ErrorAs(t, err, new(*braid.BodyError), name)
		case "Ask":
			require.ErrorContains(t, err, "answers no requests")
		default: // Read is local
			require.NoError(t, err, name)
		}
	}
}

// caller is a state machine that calls its own node once, in Apply or in Snapshot.
type caller struct {
	*counts
	node       chan *braid.Node // the node, once Open has returned
	inSnapshot bool
	got        chan map[string]error
}

func newCaller(inSnapshot bool) *caller {
	return &caller{counts: newCounts(), node: make(chan *braid.Node, 1), inSnapshot: inSnapshot, got: make(chan map[string]error, 1)}
}

func (c *caller) call() {
	if c.got != nil {
		c.got <- everyCall(<-c.node)
		c.got = nil
	}
}

func (c *caller) Apply(commands []braid.Command) error {
	if !c.inSnapshot {
		c.call()
	}
	return c.counts.Apply(commands)
}

func (c *caller) Snapshot() (braid.Snapshot, error) {
	if c.inSnapshot {
		c.call()
	}
	return c.counts.Snapshot()
}

func openCaller(t *testing.T, c *caller) *braid.Node {
	testsize.Long(t)
	t.Helper()
	n, err := braid.Open(braid.Options{
		Self: 1, Cluster: 42, Dir: t.TempDir(), Members: []braid.Member{{ID: 1}}, Listen: []string{"127.0.0.1:0"}, Limits: braid.Limits{SnapshotBytes: 1},
		Heartbeat: 10 * time.Millisecond, ElectionTimeout: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	}, c)
	require.NoError(t, err)
	t.Cleanup(func() { n.Close() })
	return n
}

// TestMethodsWithinTheStateMachine calls every method without a deadline from Apply, and from Snapshot. None waits for
// itself: each that would says so. The member continues.
func TestMethodsWithinTheStateMachine(t *testing.T) {
	t.Parallel()
	for name, inSnapshot := range map[string]bool{"Apply": false, "Snapshot": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCaller(inSnapshot)
			n, got := openCaller(t, c), c.got
			require.NoError(t, n.ProposeAsync([]byte("first"), func(any, error) {}))
			c.node <- n
			select {
			case errs := <-got:
				requireWithinApply(t, errs, inSnapshot)
			case <-time.After(testTimeout):
				require.Fail(t, "a call hangs")
			}
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			require.NoError(t, n.ReadBarrier(ctx), "the member goes on")
			require.Equal(t, 1, c.count("first"))
		})
	}
}

// TestOthersWaitWhileTheStateMachineIsBusy: who only waits for a state machine that does not return, from another
// goroutine or at another node, is not refused.
func TestOthersWaitWhileTheStateMachineIsBusy(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	other := sole(t, []braid.Member{{ID: 1}})
	sm := newCounts()
	n, err := braid.Open(braid.Options{
		Self: 1, Cluster: 42, Dir: t.TempDir(), Members: []braid.Member{{ID: 1}}, Listen: []string{"127.0.0.1:0"},
		Heartbeat: 10 * time.Millisecond, ElectionTimeout: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	}, sm)
	require.NoError(t, err)
	defer n.Close()
	busy, release := make(chan struct{}), make(chan struct{})
	sm.mu.Lock()
	sm.before = func(command string) {
		if command == "slow" {
			_, err := other.Propose(ctx, []byte("of another node's state machine"))
			assert.NoError(t, err)
			close(busy)
			<-release
		}
	}
	sm.mu.Unlock()
	answers := make(chan error, 4)
	go func() { _, err := n.Propose(ctx, []byte("slow")); answers <- err }()
	<-busy
	go func() { _, err := n.Propose(ctx, []byte("behind")); answers <- err }()
	go func() { answers <- n.ReadBarrier(ctx) }()
	brief, end := context.WithTimeout(ctx, 300*time.Millisecond) // longer than it takes to find out
	defer end()
	_, err = n.Propose(brief, []byte("patience"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, braid.ErrWithinApply)
	require.Empty(t, answers)
	close(release)
	for range 3 {
		require.NoError(t, <-answers)
	}
}

// TestMethodsBeforeTheMemberIsReady calls every method as soon as Open has returned, when no leader is known.
// Each waits for one.
func TestMethodsBeforeTheMemberIsReady(t *testing.T) {
	t.Parallel()
	for name, call := range methods {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := sole(t, []braid.Member{{ID: 1}})
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			err := call(ctx, n)
			require.NoError(t, ctx.Err(), "it returns")
			switch name {
			case "Body":
				require.ErrorAs(t, err, new(*braid.BodyError))
			case "Ask":
				require.ErrorContains(t, err, "answers no requests")
			case "Advise": // the leader has hardly decided yet
				if why := new(braid.AdviceError); errors.As(err, &why) {
					require.True(t, why.Retry)
					break
				}
				require.NoError(t, err)
			default:
				require.NoError(t, err)
			}
			require.NoError(t, n.ReadBarrier(ctx))
			require.NoError(t, braid.Ready(ctx, n))
		})
	}
	silent := sole(t, []braid.Member{{ID: 1, PeerURLs: []string{"http://127.0.0.1:9"}}, {ID: 2, PeerURLs: []string{"http://127.0.0.1:9"}}})
	require.ErrorIs(t, braid.Ready(t.Context(), silent), braid.ErrNoLeader)
}

// TestMethodsOfAMemberThatWasRemoved say that it is stopped, and why. Nothing was sent.
func TestMethodsOfAMemberThatWasRemoved(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	leader := c.leader()
	leaves := leader%3 + 1
	n := c.nodes[leaves]
	changed(t, c.nodes[leader], remove(leaves))
	c.expelled(leaves)
	defer n.Close()
	for name, err := range everyCall(n) {
		if _, ok := withoutError[name]; ok && name != "Err" && name != "Close" {
			require.NoError(t, err, name)
			continue
		}
		var expelled *braid.ExpelledError
		require.ErrorAs(t, err, &expelled, name)
		require.Equal(t, leaves, expelled.Member)
		require.NotErrorIs(t, err, braid.ErrMaybeCommitted, name)
		require.True(t, name == "Err" || name == "Close" || errors.Is(err, braid.ErrStopped), name)
	}
}
