package braid_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// call is what a method of Node does when it is called in some situation.
type call func(ctx context.Context, n *braid.Node) error

// methods has a row for each method of Node that may fail. A method with a context must look at that first, and each
// must say ErrStopped after Close.
var methods = map[string]call{
	"Propose": func(ctx context.Context, n *braid.Node) error {
		_, err := n.Propose(ctx, []byte("x"))
		return err
	},
	"ProposeBody": func(ctx context.Context, n *braid.Node) error {
		_, err := n.ProposeBody(ctx, []byte("x"), []byte("body"))
		return err
	},
	"ProposeWith": func(ctx context.Context, n *braid.Node) error {
		_, err := n.ProposeWith(ctx, []byte("x"), nil, braid.ProposeOptions{})
		return err
	},
	"Body": func(ctx context.Context, n *braid.Node) error {
		_, err := n.Body(ctx, braid.BodyRef{Instance: 1, Index: 9, Term: 1, Size: 10, K: 1})
		return err
	},
	"ReadBarrier": func(ctx context.Context, n *braid.Node) error { return n.ReadBarrier(ctx) },
	"WaitReady":   func(ctx context.Context, n *braid.Node) error { return n.WaitReady(ctx) },
	"Read":        func(ctx context.Context, n *braid.Node) error { return n.Read(ctx, braid.ReadOptions{Local: true}) },
	"ChangeMembers": func(ctx context.Context, n *braid.Node) error {
		return n.ChangeMembers(ctx, braid.Change{Kind: braid.AddLearner, Member: braid.Member{ID: 9, PeerURLs: []string{"http://127.0.0.1:9"}}})
	},
	"Snapshot": func(ctx context.Context, n *braid.Node) error {
		_, err := n.Snapshot(ctx, io.Discard)
		return err
	},
	"TransferLeader": func(ctx context.Context, n *braid.Node) error { return n.TransferLeader(ctx, 1) },
	"Reshape":        func(ctx context.Context, n *braid.Node) error { return n.Reshape(ctx, 2) },
	"Tune": func(ctx context.Context, n *braid.Node) error {
		_, err := n.Tune(ctx, braid.Tuning{Set: map[string]string{"lease-reads": "true"}})
		return err
	},
	"Switch": func(ctx context.Context, n *braid.Node) error {
		_, err := n.Switch(ctx, braid.Switch{Protocol: "raft"})
		return err
	},
	"Advise": func(ctx context.Context, n *braid.Node) error {
		_, err := n.Advise(ctx)
		return err
	},
	"PlanSwitch": func(ctx context.Context, n *braid.Node) error {
		_, err := n.PlanSwitch(ctx, braid.Switch{Protocol: "iss"})
		return err
	},
	"Ask": func(ctx context.Context, n *braid.Node) error {
		_, err := n.Ask(ctx, 1, []byte("x"))
		return err
	},
}

// without are methods that take no context and fail only after Close.
var without = map[string]func(n *braid.Node) error{
	"ProposeAsync":     func(n *braid.Node) error { return n.ProposeAsync([]byte("x"), func(any, error) {}) },
	"ProposeBodyAsync": func(n *braid.Node) error { return n.ProposeBodyAsync([]byte("x"), nil, func(any, error) {}) },
	"ProposeWithAsync": func(n *braid.Node) error {
		return n.ProposeWithAsync([]byte("x"), nil, braid.ProposeOptions{}, func(any, error) {})
	},
	"SetNet": func(n *braid.Node) error { return n.SetNet("") },
}

// never are methods that do not fail.
var never = map[string]bool{
	"AnswersEarly": true, "MayAnswerEarly": true, "Client": true, "ReleaseBody": true, "CheckState": true, "DiskNeed": true, "Changes": true, "Done": true,
	"Err": true, "Drain": true, "HandOver": true, "Close": true, "Status": true, "Tunables": true,
}

// sole is a member of its own.
func sole(t testing.TB, members []braid.Member) *braid.Node {
	t.Helper()
	n, err := braid.Open(braid.Options{
		Self: 1, Cluster: 42, Dir: t.TempDir(), Members: members, Listen: []string{"127.0.0.1:0"},
		Heartbeat: 10 * time.Millisecond, ElectionTimeout: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	}, newCounts())
	require.NoError(t, err)
	t.Cleanup(func() { n.Close() })
	return n
}

// TestEveryMethodHasARow: a method that is added to Node must have a row for its failures.
func TestEveryMethodHasARow(t *testing.T) {
	node := reflect.TypeFor[*braid.Node]()
	for i := range node.NumMethod() {
		name := node.Method(i).Name
		rows := 0
		for _, has := range []bool{methods[name] != nil, without[name] != nil, never[name]} {
			if has {
				rows++
			}
		}
		require.Equal(t, 1, rows, "%s is in one of the tables", name)
	}
	require.Equal(t, node.NumMethod(), len(methods)+len(without)+len(never))
}

// TestMethodsWithAContextThatEnded do nothing, and say so.
func TestMethodsWithAContextThatEnded(t *testing.T) {
	t.Parallel()
	n := sole(t, []braid.Member{{ID: 1}})
	require.NoError(t, n.ReadBarrier(t.Context()))
	before := n.Status().Applied
	ended, end := context.WithCancel(t.Context())
	end()
	for name, call := range withContext() {
		err := call(ended, n)
		require.ErrorIs(t, err, context.Canceled, name)
		require.NotErrorIs(t, err, braid.ErrMaybeCommitted, name)
		require.True(t, isAny(err, braid.ErrNotSent, braid.ErrReadTimeout), "%s: %v", name, err)
	}
	require.NoError(t, n.ReadBarrier(t.Context()))
	require.Equal(t, before, n.Status().Applied, "nothing took effect")
	require.Len(t, n.Status().Members, 1)
}

// TestMethodsWithoutALeader end with their context. Nothing was sent, and nothing takes effect later.
func TestMethodsWithoutALeader(t *testing.T) {
	t.Parallel()
	n := sole(t, []braid.Member{{ID: 1, PeerURLs: []string{"http://127.0.0.1:9"}}, {ID: 2, PeerURLs: []string{"http://127.0.0.1:9"}}})
	for name, call := range withContext() {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := call(ctx, n)
		cancel()
		switch name {
		case "Body", "Ask": // they ask no leader
			require.Error(t, err, name)
		case "Read", "Snapshot": // they are local
			require.NoError(t, err, name)
		default:
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
			require.NotErrorIs(t, err, braid.ErrMaybeCommitted, name)
			require.True(t, isAny(err, braid.ErrNotSent, braid.ErrReadTimeout), "%s: %v", name, err)
		}
	}
}

// TestWhatIsTakenWithoutALeader and never answered by one is answered when the member stops. What does not fail
// returns.
func TestWhatIsTakenWithoutALeader(t *testing.T) {
	t.Parallel()
	n := sole(t, []braid.Member{{ID: 1, PeerURLs: []string{"http://127.0.0.1:9"}}, {ID: 2, PeerURLs: []string{"http://127.0.0.1:9"}}})
	for name, call := range without {
		require.NoError(t, call(n), name)
	}
	for name, call := range withoutError {
		if name != "Close" {
			require.NoError(t, call(n), name)
		}
	}
	told := make(chan error, 1)
	require.NoError(t, n.ProposeAsync([]byte("x"), func(_ any, err error) { told <- err }))
	require.NoError(t, n.Close())
	require.ErrorIs(t, <-told, braid.ErrStopped)
}

// TestMethodsAfterClose say that the member is stopped.
func TestMethodsAfterClose(t *testing.T) {
	t.Parallel()
	n := sole(t, []braid.Member{{ID: 1}})
	require.NoError(t, n.ReadBarrier(t.Context()))
	changes := n.Changes(t.Context())
	require.NoError(t, n.Close())
	for name, call := range withContext() {
		err := call(t.Context(), n)
		require.ErrorIs(t, err, braid.ErrStopped, name)
		require.NotErrorIs(t, err, braid.ErrMaybeCommitted, name)
	}
	for name, call := range without {
		require.ErrorIs(t, call(n), braid.ErrStopped, name)
	}
	for name, call := range withoutError {
		require.NoError(t, call(n), name)
	}
	n.HandOver(t.Context())
	n.CheckState()
	_ = n.Status().Leader()
	for range changes { // it ends
	}
	_, more := <-n.Changes(t.Context())
	require.False(t, more)
}

// TestChangesBeginWithAToken: what changed before a caller asked for the channel is not missed.
func TestChangesBeginWithAToken(t *testing.T) {
	t.Parallel()
	n := sole(t, []braid.Member{{ID: 1}})
	require.NoError(t, n.ReadBarrier(t.Context())) // it leads: nothing changes any more
	for range 2 {
		select {
		case _, more := <-n.Changes(t.Context()):
			require.True(t, more)
		case <-time.After(10 * time.Second):
			require.Fail(t, "no token")
		}
	}
}

// TestWhatIsRefusedSaysWhy asks for what makes no sense. Each refusal has its own reason, and nothing changes.
func TestWhatIsRefusedSaysWhy(t *testing.T) {
	t.Parallel()
	n := sole(t, []braid.Member{{ID: 1, PeerURLs: []string{"http://127.0.0.1:9"}}})
	url := []string{"http://127.0.0.1:10"}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	change := func(kind braid.Change) error { return n.ChangeMembers(ctx, kind) }
	require.NoError(t, change(braid.Change{Kind: braid.AddLearner, Member: braid.Member{ID: 7, PeerURLs: url}}))
	require.NoError(t, change(remove(7)))
	require.NoError(t, change(remove(7)), "it is in effect already")
	require.NoError(t, change(braid.Change{Kind: braid.AddLearner, Member: braid.Member{ID: 8, PeerURLs: url}}))
	require.Eventually(t, func() bool { return !n.Status().Members[0].Log.IsZero() }, testTimeout, time.Millisecond,
		"the member's own log is recorded while the test goes on")
	changed := n.Status().Members
	for what, refusal := range map[string]struct {
		err  error
		text string
	}{
		"an unknown id":            {change(braid.Change{Kind: braid.UpdateMember, Member: braid.Member{ID: 9, PeerURLs: url}}), "no member with this id"},
		"a removal of no member":   {change(remove(9)), "no member with this id"},
		"a removed id":             {change(braid.Change{Kind: braid.AddLearner, Member: braid.Member{ID: 7, PeerURLs: []string{"http://127.0.0.1:11"}}}), "ids never come back"},
		"the last voter":           {change(remove(1)), "nobody would vote"},
		"a voter with another URL": {change(braid.Change{Kind: braid.AddVoter, Member: braid.Member{ID: 1, PeerURLs: []string{"http://127.0.0.1:12"}}}), "is one already"},
		"nothing":                  {n.ChangeMembers(ctx), "there is no change"},
		"no id":                    {change(braid.Change{Kind: braid.AddVoter, Member: braid.Member{PeerURLs: url}}), "has no id"},
		"a removal without an id":  {change(remove(0)), "has no id"},
		"no kind":                  {change(braid.Change{Member: braid.Member{ID: 1, PeerURLs: url}}), "no such kind"},
		"instances":                {n.Reshape(ctx, braid.MaxInstances+1), "not merged from instances"},
		"no URL":                   {change(braid.Change{Kind: braid.AddVoter, Member: braid.Member{ID: 9}}), "needs peer URLs"},
		"an empty URL":             {change(braid.Change{Kind: braid.AddVoter, Member: braid.Member{ID: 9, PeerURLs: []string{""}}}), "needs peer URLs"},
		"another scheme":           {change(braid.Change{Kind: braid.AddVoter, Member: braid.Member{ID: 9, PeerURLs: []string{"ftp://127.0.0.1:9"}}}), "needs peer URLs"},
		"a bad host":               {change(braid.Change{Kind: braid.UpdateMember, Member: braid.Member{ID: 1, PeerURLs: []string{"http://bad host:xx"}}}), "needs peer URLs"},
		"a transfer to a learner":  {n.TransferLeader(ctx, 8), "does not vote"},
		"a transfer to nobody":     {n.TransferLeader(ctx, 99), "no member with this id"},
	} {
		var refused *braid.RefusedError
		require.ErrorAs(t, refusal.err, &refused, what)
		require.ErrorContains(t, refusal.err, refusal.text, what)
		require.False(t, refused.Retryable() && what != "a transfer to a learner", what)
	}
	require.Equal(t, changed, n.Status().Members)
}

// TestLeadershipDoesNotGoToWhoIsDown: the leader knows that, and refuses. Package replica has a test of how soon.
func TestLeadershipDoesNotGoToWhoIsDown(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil)
	leader := c.leader()
	down, asked := leader%3+1, (leader+1)%3+1
	c.stop(down)
	c.unlinked(down)
	err := c.nodes[asked].TransferLeader(c.ctx(), down)
	var refused *braid.RefusedError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "down or cut off")
	require.True(t, refused.Retryable())
	require.Equal(t, leader, c.leader())
	c.start(c.members[down-1], false)
	require.Eventually(t, func() bool { return c.nodes[asked].TransferLeader(c.ctx(), down) == nil }, testTimeout, 10*time.Millisecond, "a retry")
	require.Equal(t, down, c.leader())
}

// TestAMemberThatJoinedLaterOpensAgain with the list of members that the cluster began with, or with none.
func TestAMemberThatJoinedLaterOpensAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	c.leader()
	second := braid.Member{ID: 4, PeerURLs: []string{freeURL(t)}}
	c.dirs[4] = t.TempDir()
	changed(t, c.any(), braid.Change{Kind: braid.AddLearner, Member: second})
	c.start(second, true)
	acked := c.fill("x", 3)
	c.verify(acked)
	for _, members := range [][]braid.Member{c.members, nil} {
		c.stop(4)
		c.members = members
		c.start(second, false)
		require.NoError(t, c.nodes[4].ReadBarrier(c.ctx()))
	}
}

// TestOptionsThatMakeNoSense are named, before anything is started.
func TestOptionsThatMakeNoSense(t *testing.T) {
	one, two := braid.Member{ID: 1, PeerURLs: []string{"http://127.0.0.1:9"}}, braid.Member{ID: 2, PeerURLs: []string{"http://127.0.0.1:10"}}
	for what, c := range map[string]struct {
		members []braid.Member
		listen  []string
		text    string
	}{
		"nobody connects": {[]braid.Member{one, two}, nil, "option Listen: is required"},
		"no scheme":       {[]braid.Member{{ID: 1, PeerURLs: []string{"127.0.0.1:9"}}}, nil, `option Members: member 1: peer URL "127.0.0.1:9"`},
		"twice":           {[]braid.Member{one, two, two}, []string{"127.0.0.1:0"}, "option Members: name member 2 twice"},
	} {
		_, err := braid.Open(braid.Options{Self: 1, Cluster: 42, Dir: t.TempDir(), Members: c.members, Listen: c.listen}, newCounts())
		require.ErrorAs(t, err, new(*braid.OptionError), what)
		require.ErrorContains(t, err, c.text, what)
	}
	_, err := braid.Open(braid.Options{Self: 1, Cluster: 42, Dir: t.TempDir(), Members: []braid.Member{one}}, nil)
	require.ErrorAs(t, err, new(*braid.OptionError))
}

// TestAMemberThatHasOthersListens: no other member could connect to it, so it neither adds one nor starts with a log
// that has some.
func TestAMemberThatHasOthersListens(t *testing.T) {
	t.Parallel()
	url := func(port string) []string { return []string{"http://127.0.0.1:" + port} }
	o := braid.Options{
		Self: 1, Cluster: 42, Dir: t.TempDir(), Members: []braid.Member{{ID: 1, PeerURLs: url("9")}},
		Heartbeat: 10 * time.Millisecond, ElectionTimeout: 100 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	}
	n, err := braid.Open(o, newCounts())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	add := braid.Change{Kind: braid.AddLearner, Member: braid.Member{ID: 7, PeerURLs: url("10")}}
	var refused *braid.RefusedError
	require.ErrorAs(t, n.ChangeMembers(ctx, add), &refused)
	require.Equal(t, braid.ReasonNoListener, refused.Reason)
	require.False(t, refused.Retryable())
	require.Len(t, n.Status().Members, 1)
	require.NoError(t, n.ChangeMembers(ctx, braid.Change{Kind: braid.UpdateMember, Member: o.Members[0]}))
	require.NoError(t, n.Close())

	o.Members, o.Listen = nil, []string{"127.0.0.1:0"}
	n, err = braid.Open(o, newCounts())
	require.NoError(t, err)
	require.NoError(t, n.ChangeMembers(ctx, add))
	require.NoError(t, n.Close())

	o.Listen = nil
	_, err = braid.Open(o, newCounts())
	var bad *braid.OptionError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, "Listen", bad.Option)
	o.Listen = []string{"127.0.0.1:0"}
	n, err = braid.Open(o, newCounts())
	require.NoError(t, err, "the directory is free again")
	require.NoError(t, n.Close())
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
