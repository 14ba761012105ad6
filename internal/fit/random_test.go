package fit_test

import (
	"math"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// TestRandomViews: whatever a view has, a wish is one of the candidates and not excluded, figures are numbers, and
// there are 30 s between two changes.
func TestRandomViews(t *testing.T) {
	changes := 0
	for seed := range int64(30) {
		r := rand.New(rand.NewSource(seed))
		var f fit.Fitter
		v := randomView(r)
		last := -time.Hour
		for range 150 {
			v.Now += time.Second
			v.Wall += 1000
			if r.Intn(20) == 0 {
				next := randomView(r)
				v.Reports, v.Changing = next.Reports, next.Changing
			}
			d := f.Step(&v)
			checkDecision(t, &v, &d)
			if !d.Acts {
				continue
			}
			require.Equal(t, protocol.FitOn, v.Mode)
			require.False(t, v.Changing)
			require.GreaterOrEqual(t, v.Now-last, 30*time.Second)
			last = v.Now
			changes++
			if r.Intn(3) > 0 {
				carryOut(&v, d.Wish)
			}
		}
	}
	require.Greater(t, changes, 10)
}

func checkDecision(t *testing.T, v *fit.View, d *fit.Decision) {
	t.Helper()
	for i := range d.Costs {
		c := &d.Costs[i]
		require.False(t, math.IsNaN(c.Throughput) || math.IsInf(c.Throughput, 0) || c.Throughput < 0)
		require.False(t, math.IsNaN(c.Latency) || math.IsInf(c.Latency, 0) || c.Latency < 0)
	}
	if d.Wish == nil {
		require.Empty(t, d.Waits)
		return
	}
	require.Equal(t, v.Profile.Version, d.Wish.Version)
	require.False(t, math.IsNaN(d.Wish.Gain) || math.IsInf(d.Wish.Gain, 0))
	if d.Wish.TakesBack || d.Wish.Restores {
		return
	}
	require.True(t, slices.ContainsFunc(d.Costs[1:], func(c fit.Cost) bool {
		return c.Excluded == "" && c.Protocol == d.Wish.Protocol && c.Leader == d.Wish.Leader
	}), "%+v", d)
	for i := range v.Members {
		require.True(t, v.Members[i].Present || !d.Acts, "a member is missing")
	}
}

// carryOut makes the profile what a wish says.
func carryOut(v *fit.View, w *fit.Wish) {
	wo := &world{v: *v, wish: w}
	if _, err := wo.carry(); err != nil {
		panic(err)
	}
	*v = wo.v
}

func randomView(r *rand.Rand) fit.View {
	n := 1 + r.Intn(7)
	v := fit.View{Mode: protocol.FitOn, Protocol: "raft", Instances: 1, Wall: 1_800_000_000_000, Now: time.Hour,
		Changing: r.Intn(20) == 0}
	v.Profile.Version = 1
	switch r.Intn(6) {
	case 0:
		v.Mode = protocol.FitAdvise
	case 1:
		v.Protocol = "iss"
	case 2:
		v.Protocol, v.Instances = "niagara", 4
		v.Profile.Values = setting.MustParse("leaders=spread")
	case 3:
		v.Protocol = "craft"
		v.Profile.Values = setting.MustParse("placement=code")
	}
	for i := range n {
		v.Members = append(v.Members, fit.Member{ID: protocol.MemberID(i + 1), Present: r.Intn(30) > 0,
			Zone: []string{"", "a", "b"}[r.Intn(3)]})
	}
	if r.Intn(30) > 0 {
		v.Leaders = []protocol.MemberID{protocol.MemberID(1 + r.Intn(n+1))}
	}
	for i := range n + 1 { // one is no voter
		if r.Intn(50) > 0 {
			v.Reports = append(v.Reports, randomReport(r, protocol.MemberID(i+1), n))
		}
	}
	return v
}

func randomReport(r *rand.Rand, id protocol.MemberID, n int) fit.Report {
	much := func(most float64) float64 { // often nothing, seldom very much
		if r.Intn(4) == 0 {
			return 0
		}
		return math.Exp(r.Float64()*math.Log(most+1)) - 1
	}
	took := func(most time.Duration) time.Duration { return time.Duration(much(float64(most))) }
	m := fit.Report{Member: id, Span: took(2 * time.Second), Apply: r.Float64() * 1.1, CPU: r.Float64(),
		Unapplied: uint64(much(1e6))}
	m.Asked = fit.Load{Commands: uint64(much(1e6)), Bytes: uint64(much(1e9)), Blind: uint64(much(1e6)),
		Early: uint64(much(1e6)), Large: uint64(much(1e3)), LargeBytes: uint64(much(1e10)), Waited: took(time.Hour)}
	m.Disk = fit.Disk{Syncs: uint64(much(1e4)), Time: took(2 * time.Second), Bytes: uint64(much(1e9))}
	for range r.Intn(5) {
		m.Loops = append(m.Loops, r.Float64()*1.1)
	}
	for i := range n {
		if r.Intn(20) > 0 {
			m.Trips = append(m.Trips, fit.Trip{To: protocol.MemberID(i + 1), Time: took(time.Second)})
		}
		m.Links = append(m.Links, fit.Link{To: protocol.MemberID(i + 1), Bytes: uint64(much(1e9)),
			Queued: uint64(much(1e8))})
	}
	return m
}
