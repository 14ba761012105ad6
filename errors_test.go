package braid_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/protocol"
)

// errorRow says where a test shows that what the documentation of an error promises is true: whether a retry is
// safe, and what took effect.
type errorRow struct{ file, test string }

// errorRows has a row for each error of this package.
var errorRows = map[string]errorRow{
	"ErrMaybeCommitted":   {"errors_test.go", "TestARetryAfterMaybeCommittedTakesEffectAgain"},
	"ErrNotSent":          {"errors_test.go", "TestARetryOfWhatDidNotHappenTakesEffectOnce"},
	"ErrOverloaded":       {"errors_test.go", "TestARetryOfWhatDidNotHappenTakesEffectOnce"},
	"ErrNoLeader":         {"internal/replica/transfer_test.go", "TestACommandThatFoundNoLeaderDidNotHappen"},
	"ErrNotTunable":       {"tune_test.go", "TestWhatCannotBeTuned"},
	"ErrProfileReplaced":  {"tune_test.go", "TestWhatCannotBeTuned"},
	"TuneError":           {"tune_test.go", "TestWhatCannotBeTuned"},
	"SwitchError":         {"switch_test.go", "TestWhatCannotBeSwitched"},
	"ErrResultUnknown":    {"internal/member/apply/applier_test.go", "TestApplierAppliesOnceAndAnswers"},
	"ErrTooLarge":         {"errors_test.go", "TestWhatIsRefusedIsRefusedAgain"},
	"ErrStopped":          {"errors_test.go", "TestARetryAfterTheStop"},
	"ErrReadTimeout":      {"errors_test.go", "TestARetryOfWhatDidNotHappenTakesEffectOnce"},
	"ErrWithinApply":      {"methods_within_test.go", "TestMethodsWithinTheStateMachine"},
	"ErrNotAdded":         {"join_test.go", "TestAJoinerFindsItsCluster"},
	"AdviceError":         {"advise_internal_test.go", "TestNoAdvice"},
	"BodyError":           {"body_test.go", "TestTooFewFragmentsAreReported"},
	"BrokenError":         {"errors_test.go", "TestARetryOfWhatDidNotHappenTakesEffectOnce"},
	"DirError":            {"epochs_test.go", ""},
	"ExpelledError":       {"removed_test.go", "TestARemovedMemberStops"},
	"ForgottenError":      {"internal/datadir/condemn_test.go", ""},
	"GroupError":          {"keyed_test.go", "TestGroupsRefuseWhatHasNoGroup"},
	"LineageError":        {"internal/member/cluster/lineage_test.go", "TestLineagesAreTold"},
	"LogKindError":        {"logkind_test.go", "TestNoProtocolOpensTheLogOfAnother"},
	"MachineError":        {"errors_test.go", "TestAStartAfterAMachineErrorAppliesTheCommand"},
	"OptionError":         {"methods_test.go", "TestOptionsThatMakeNoSense"},
	"ProposeOptionsError": {"errors_test.go", "TestWhatIsRefusedIsRefusedAgain"},
	"RefusedError":        {"methods_test.go", "TestLeadershipDoesNotGoToWhoIsDown"},
	"SettingError":        {"protocol/setting/setting_test.go", "TestWhatIsRefused"},
	"StateAheadError":     {"internal/replica/ahead_test.go", "TestAStateOfAnotherLogStopsItsMember"},
	"TokenError":          {"errors_test.go", "TestARetryOfWhatDidNotHappenTakesEffectOnce"},
}

// TestEveryErrorHasARow: an added error must show what it promises.
func TestEveryErrorHasARow(t *testing.T) {
	for _, name := range errorNames(t) {
		row, ok := errorRows[name]
		require.True(t, ok, "%s has no row", name)
		text, err := os.ReadFile(row.file)
		require.NoError(t, err)
		require.Contains(t, string(text), "func "+row.test, name)
		if row.test == "" {
			require.Contains(t, string(text), "."+name)
		}
	}
	require.Len(t, errorRows, len(errorNames(t)))
}

// errorNames are the errors that this package exports.
func errorNames(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, d := range f.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range decl.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() && strings.HasSuffix(s.Name.Name, "Error") {
						names = append(names, s.Name.Name)
					}
				case *ast.ValueSpec:
					if strings.HasPrefix(s.Names[0].Name, "Err") {
						names = append(names, s.Names[0].Name)
					}
				}
			}
		}
	}
	return names
}

// retrying is one of two members. The other one is started later, when a test lets it. Until then there is no leader,
// and none was: of a leader that stops the last messages may still be on their way.
type retrying struct {
	*cluster
	n *braid.Node
}

func newRetrying(t *testing.T) *retrying {
	c := newMembers(t, 2, func(o *braid.Options) {
		o.Limits.PendingBytes, o.Limits.CommandBytes = 1000, 800
		o.Heartbeat, o.ElectionTimeout = 20*time.Millisecond, 200*time.Millisecond
	})
	c.start(c.members[0], false)
	return &retrying{c, c.nodes[1]}
}

// brief is a context that ends soon.
func brief(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// TestARetryOfWhatDidNotHappenTakesEffectOnce gets each of the errors that say that nothing happened, and repeats what
// failed until it succeeds. It takes effect once.
func TestARetryOfWhatDidNotHappenTakesEffectOnce(t *testing.T) {
	t.Parallel()
	ignore := func(any, error) {}
	later := braid.ProposeOptions{After: []braid.Token{{Session: protocol.NewSession(1, protocol.LogID{}, 1, false), Seq: 1}}}
	for name, c := range map[string]struct {
		before func(r *retrying) // what brings about the error
		try    call
		is     func(error) bool
	}{
		"ErrNotSent": {nil, methods["Propose"], func(err error) bool { return errors.Is(err, braid.ErrNotSent) }},
		"ErrOverloaded": {
			func(r *retrying) { require.NoError(r.t, r.n.ProposeAsync(make([]byte, 700), ignore)) },
			func(ctx context.Context, n *braid.Node) error {
				_, err := n.Propose(ctx, append([]byte("x"), make([]byte, 700)...))
				return err
			},
			func(err error) bool { return errors.Is(err, braid.ErrOverloaded) },
		},
		"ErrReadTimeout": {nil, methods["ReadBarrier"], func(err error) bool { return errors.Is(err, braid.ErrReadTimeout) }},
		"TokenError": {nil, func(ctx context.Context, n *braid.Node) error {
			_, err := n.ProposeWith(ctx, []byte("x"), nil, later)
			return err
		}, func(err error) bool { return errors.As(err, new(*braid.TokenError)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRetrying(t)
			if c.before != nil {
				c.before(r)
			}
			err := c.try(brief(t), r.n)
			require.True(t, c.is(err), "%v", err)
			require.NotErrorIs(t, err, braid.ErrMaybeCommitted)
			r.start(r.members[1], false)
			if name == "TokenError" { // the command of this token never comes, so without it
				require.NoError(t, methods["Propose"](r.ctx(), r.n))
			} else {
				require.Eventually(t, func() bool { return c.try(r.ctx(), r.n) == nil }, testTimeout, time.Millisecond)
			}
			require.NoError(t, r.n.ReadBarrier(r.ctx()))
			r.once("x")
		})
	}
	t.Run("BrokenError", func(t *testing.T) {
		t.Parallel()
		r := newRetrying(t)
		client, failed := r.n.Client(), make(chan error, 3)
		require.NoError(t, client.ProposeAsync([]byte("fails"), nil, func(_ any, err error) { failed <- err }))
		require.NoError(t, client.ProposeAsync([]byte("x"), nil, func(_ any, err error) { failed <- err }))
		require.NoError(t, r.n.Close())
		require.ErrorIs(t, <-failed, braid.ErrStopped)
		require.ErrorIs(t, <-failed, braid.ErrStopped)
		require.ErrorAs(t, client.ProposeAsync([]byte("x"), nil, ignore), new(*braid.BrokenError))
		r.start(r.members[0], false)
		r.start(r.members[1], false)
		_, err := r.nodes[1].Client().Propose(r.ctx(), []byte("x"), nil)
		require.NoError(t, err)
		r.once("x")
		require.Zero(t, r.counts[1].count("fails"))
	})
}

// once demands that no command that begins with a name took effect more than once.
func (r *retrying) once(name string) {
	r.t.Helper()
	sm := r.counts[1]
	sm.mu.Lock()
	defer sm.mu.Unlock()
	for command, count := range sm.applied {
		if strings.HasPrefix(command, name) {
			require.Equal(r.t, 1, count, "%.9q", command)
		}
	}
}

// TestWhatIsRefusedIsRefusedAgain: with these errors a retry does not help, and nothing happens.
func TestWhatIsRefusedIsRefusedAgain(t *testing.T) {
	t.Parallel()
	sm := newCounts()
	n, err := braid.Open(braid.Options{
		Self: 1, Cluster: 42, Dir: t.TempDir(), Members: []braid.Member{{ID: 1}}, Listen: []string{"127.0.0.1:0"},
		Limits: braid.Limits{CommandBytes: 10}, Logger: slog.New(slog.DiscardHandler), ElectionTimeout: 100 * time.Millisecond, Heartbeat: 10 * time.Millisecond,
	}, sm)
	require.NoError(t, err)
	defer n.Close()
	require.NoError(t, n.ReadBarrier(t.Context()))
	for range 2 {
		_, err := n.Propose(t.Context(), []byte("more than ten"))
		require.ErrorIs(t, err, braid.ErrTooLarge)
		_, err = n.ProposeBody(t.Context(), []byte("x"), []byte("more than ten"))
		require.ErrorIs(t, err, braid.ErrTooLarge)
		_, err = n.ProposeWith(t.Context(), []byte("x"), nil, braid.ProposeOptions{Wait: -1})
		require.ErrorAs(t, err, new(*braid.ProposeOptionsError))
	}
	require.NoError(t, n.ReadBarrier(t.Context()))
	require.Empty(t, sm.applied)
}

// TestARetryAfterMaybeCommittedTakesEffectAgain, as each proposal is one of its own.
func TestARetryAfterMaybeCommittedTakesEffectAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	c.leader()
	applying, release := make(chan struct{}, 2), make(chan struct{})
	c.counts[1].mu.Lock()
	c.counts[1].before = func(string) { applying <- struct{}{}; <-release }
	c.counts[1].mu.Unlock()
	ctx, cancel := context.WithCancel(c.ctx())
	answer := make(chan error, 1)
	go func() { _, err := c.nodes[1].Propose(ctx, []byte("x")); answer <- err }()
	<-applying
	cancel()
	err := <-answer
	require.ErrorIs(t, err, braid.ErrMaybeCommitted)
	require.ErrorIs(t, err, context.Canceled)
	close(release)
	_, err = c.nodes[1].Propose(c.ctx(), []byte("x"))
	require.NoError(t, err)
	require.Equal(t, 2, c.counts[1].count("x"))
}

// TestARetryAfterTheStop: what is proposed to a member that has stopped does not happen.
func TestARetryAfterTheStop(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, nil)
	c.leader()
	n := c.nodes[1]
	c.stop(1)
	_, err := n.Propose(c.ctx(), []byte("x"))
	require.ErrorIs(t, err, braid.ErrStopped)
	c.start(c.members[0], false)
	_, err = c.nodes[1].Propose(c.ctx(), []byte("x"))
	require.NoError(t, err)
	require.Equal(t, 1, c.counts[1].count("x"))
}

// failing is a state machine that cannot continue.
type failing struct{ *counts }

var errDisk = errors.New("the disk is gone")

func (failing) Apply([]braid.Command) error { return errDisk }

// TestAStartAfterAMachineErrorAppliesTheCommand once, which the log has.
func TestAStartAfterAMachineErrorAppliesTheCommand(t *testing.T) {
	t.Parallel()
	o := braid.Options{
		Self: 1, Cluster: 42, Dir: t.TempDir(), Members: []braid.Member{{ID: 1}}, Listen: []string{"127.0.0.1:0"},
		Heartbeat: 10 * time.Millisecond, ElectionTimeout: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	}
	n, err := braid.Open(o, failing{newCounts()})
	require.NoError(t, err)
	_, err = n.Propose(t.Context(), []byte("x"))
	require.ErrorIs(t, err, braid.ErrStopped)
	require.NotErrorIs(t, err, errDisk, "which might look as if nothing had happened")
	<-n.Done()
	_, err = n.Propose(t.Context(), []byte("y"))
	require.ErrorIs(t, err, braid.ErrStopped)
	require.ErrorIs(t, err, errDisk, "why it stopped")
	var machine *braid.MachineError
	require.ErrorAs(t, n.Err(), &machine)
	require.ErrorIs(t, n.Err(), errDisk)
	sm := newCounts()
	again, err := braid.Open(o, sm)
	require.NoError(t, err)
	defer again.Close()
	require.NoError(t, again.ReadBarrier(t.Context()))
	require.Equal(t, 1, sm.count("x"))
}
