package braid

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/replica"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
)

const fittedWithin = time.Minute

// fitted are three members in this process whose leader's fitter is quick, and weighs what the model says as the test
// wants. Clients write at each of them.
type fitted struct {
	t     *testing.T
	nodes []*Node
	mu    sync.Mutex
	weigh func(*fit.View, []fit.Cost) // guarded by mu
}

func newFitted(t *testing.T, with func(*Options)) *fitted {
	testsize.Long(t)
	f := &fitted{t: t}
	var members []Member
	var listeners []net.Listener
	for i := range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		listeners = append(listeners, l)
		members = append(members, Member{ID: MemberID(i + 1), Name: fmt.Sprint("m", i+1),
			PeerURLs: []string{"http://" + l.Addr().String()}})
	}
	for i, m := range members {
		o := Options{Self: m.ID, Cluster: 42, Dir: t.TempDir(), Members: members, Listeners: listeners[i : i+1],
			Heartbeat: 50 * time.Millisecond, ElectionTimeout: 500 * time.Millisecond,
			Logger: slog.New(slog.NewTextHandler(fittedLog{t}, nil))}
		with(&o)
		f.open(&o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	for _, n := range f.nodes {
		for range 4 {
			clients.Go(func() {
				for ctx.Err() == nil {
					_, _ = n.Propose(ctx, []byte("x"))
				}
			})
		}
	}
	t.Cleanup(func() {
		cancel()
		clients.Wait()
		for _, n := range f.nodes {
			n.Close()
		}
	})
	return f
}

// open is Open with other times of the fitter.
func (f *fitted) open(o *Options) {
	sm := &nothing{}
	c, err := o.toOpen(sm)
	require.NoError(f.t, err)
	opt := c.replica(c.Listeners)
	opt.Fitting.Every = 100 * time.Millisecond
	opt.Fitting.Fitter = func() *fit.Fitter {
		return &fit.Fitter{Patience: fit.Patience{Lasts: 300 * time.Millisecond, Waits: 2 * time.Second},
			Weigh: func(v *fit.View, costs []fit.Cost) {
				f.mu.Lock()
				defer f.mu.Unlock()
				if f.weigh != nil {
					f.weigh(v, costs)
				}
			}}
	}
	r, err := replica.Open(opt, sm)
	require.NoError(f.t, err)
	f.nodes = append(f.nodes, &Node{r: r, opt: c})
}

// wish has the fitter wish for one candidate, whatever the load is.
func (f *fitted) wish(is func(*fit.Cost) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.weigh = func(_ *fit.View, costs []fit.Cost) {
		for i := range costs[1:] {
			c := &costs[1+i]
			if c.Throughput, c.Excluded = 0, "the test does not want it"; is(c) {
				c.Throughput, c.Excluded = 3*costs[0].Throughput, ""
			}
		}
	}
}

func (f *fitted) until(what string, ok func(s *Status) bool) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		return !slices.ContainsFunc(f.nodes, func(n *Node) bool {
			s := n.Status()
			return !ok(&s)
		})
	}, fittedWithin, 10*time.Millisecond, what)
}

func (f *fitted) leader() MemberID {
	leader := MemberID(0)
	f.until("there is a leader", func(s *Status) bool {
		if s.Self == 1 {
			leader = s.Leader()
		}
		return s.Leader() != 0 && s.Leader() == leader
	})
	return leader
}

// nothing is a state machine without a state.
type nothing struct{}

func (nothing) Apply([]Command) error                    { return nil }
func (nothing) Snapshot() (Snapshot, error)              { return nothing{}, nil }
func (nothing) WriteTo(context.Context, io.Writer) error { return nil }
func (nothing) Close() error                             { return nil }

func (nothing) Restore(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

type fittedLog struct{ t *testing.T }

func (w fittedLog) Write(b []byte) (int, error) {
	defer func() { _ = recover() }() // the test may have ended
	w.t.Log(string(bytes.TrimSpace(b)))
	return len(b), nil
}

// TestMembersAdvise: by default each member knows what the leader makes of what all of them measured.
func TestMembersAdvise(t *testing.T) {
	f := newFitted(t, func(*Options) {})
	for _, n := range f.nodes {
		var a Advice
		require.Eventually(t, func() bool {
			var err error
			a, err = n.Advise(t.Context())
			return err == nil && len(a.Reports) == 3 && !slices.ContainsFunc(a.Reports, func(r FitReport) bool {
				return len(r.Trips) != 2 || r.Asked.Commands == 0
			})
		}, fittedWithin, 10*time.Millisecond)
		require.Equal(t, FitAdvise, a.Mode)
		require.NotEmpty(t, a.Costs)
		require.Equal(t, "raft", a.Costs[0].Protocol)
		for _, r := range a.Reports {
			require.Positive(t, r.Asked.Bytes)
			require.Positive(t, r.Asked.Waited)
			require.Positive(t, r.Disk.Syncs)
			require.Positive(t, r.Disk.Bytes)
			require.Len(t, r.Loops, 1)
			require.Positive(t, r.Loops[0])
			require.Positive(t, r.Apply)
			require.Positive(t, r.CPU)
			require.Len(t, r.Links, 2)
			for _, trip := range r.Trips {
				require.Positive(t, trip.Time)
				require.NotEqual(t, r.Member, trip.To)
			}
		}
	}
	// A wish is told, and nothing else happens.
	leader := f.leader()
	f.wish(func(c *fit.Cost) bool { return c.Protocol == "raft" && c.Leader != leader })
	f.until("all know the wish", func(s *Status) bool { return s.Fit.Wish != nil && s.Fit.Waits == "" })
	require.Equal(t, leader, f.leader())

	_, err := f.nodes[0].Tune(t.Context(), Tuning{Set: map[string]string{"fit": "off"}})
	require.NoError(t, err)
	f.until("nothing is decided", func(s *Status) bool { return s.Fit.Mode == FitOff && s.Fit.At.IsZero() })
}

// TestALogFitsItself: what the fitter wishes for is done: another leader, of all instances, another protocol of the
// same core, and one of another core. The settings are kept.
func TestALogFitsItself(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"raft", ""}, {"niagara", ""}, {"multi-paxos", ""}, {"raft", "niagara"}, {"raft", "iss"}, {"iss", "raft"},
	} {
		t.Run(c.from+" "+c.to, func(t *testing.T) {
			f := newFitted(t, func(o *Options) { o.Protocol, o.Fit = Named(c.from), FitOn })
			next := f.leader()%3 + 1
			if c.to == "" {
				f.wish(func(w *fit.Cost) bool { return w.Protocol == c.from && w.Leader == next })
				f.until("another member leads all instances", func(s *Status) bool {
					return !slices.ContainsFunc(s.Instances, func(i InstanceStatus) bool { return i.Leader != next })
				})
			} else {
				f.wish(func(w *fit.Cost) bool { return w.Protocol == c.to })
				f.until("it is another protocol", func(s *Status) bool { return s.Protocol == c.to && s.Fit.Mode == FitOn })
			}
			require.Eventually(t, func() bool {
				return slices.ContainsFunc(f.nodes, func(n *Node) bool { return n.Status().Fit.Changes > 0 })
			}, fittedWithin, 10*time.Millisecond)
		})
	}
}

// TestAFittersChangeUndoesNoOther: a wish that was computed on another profile than the active one is not carried out.
func TestAFittersChangeUndoesNoOther(t *testing.T) {
	f := newFitted(t, func(*Options) {})
	n := f.nodes[f.leader()-1]
	p, err := n.Tune(t.Context(), Tuning{Set: map[string]string{"heartbeat-interval": "60"}})
	require.NoError(t, err)
	w := fit.Wish{Candidate: fit.Candidate{Protocol: "niagara",
		Settings: map[string]string{common.FitAvoid.Name: "iss:1@5"}}, Version: p.Version - 1}
	require.ErrorIs(t, n.fulfil(t.Context(), &w), ErrProfileReplaced)
	require.Equal(t, "raft", n.Status().Protocol)
	w.Version++
	require.NoError(t, n.fulfil(t.Context(), &w))
	s := n.r.Status()
	require.Equal(t, "iss:1@5", common.FitAvoid.In(s.Config.Profile.Values), "in the same change")
	require.Equal(t, p.Version+1, s.Config.Profile.Version)
	require.Len(t, s.Instances, common.DefaultInstances)
	require.Equal(t, protocol.FitAdvise, common.Fit.In(s.Config.Profile.Values))
}
