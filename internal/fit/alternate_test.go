package fit_test

import (
	"math/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// TestLeadershipDoesNotAlternate: clients send at a fixed rate, so the number of their commands in progress depends on
// the round trip to the leader. All changes except handovers are refused.
func TestLeadershipDoesNotAlternate(t *testing.T) {
	for name, c := range map[string]struct {
		rates  []float64
		jitter float64
		most   int
	}{
		"two regions alike":              {[]float64{100, 0, 0, 100}, 0, 0},
		"with jitter":                    {[]float64{100, 0, 0, 100}, 0.05, 0},
		"four members that are asked":    {[]float64{100, 100, 100, 100}, 0.05, 0},
		"a little more in the other one": {[]float64{100, 0, 0, 110}, 0.05, 0},
		"most in the other one":          {[]float64{20, 0, 0, 100}, 0.05, 1},
		"most in the other one, alike":   {[]float64{20, 0, 100, 100}, 0.15, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := regions(c.rates)
			r := rand.New(rand.NewSource(1))
			handovers := 0
			for range 20 * 60 {
				w.answer(c.rates, func() float64 { return 1 + c.jitter*(2*r.Float64()-1) })
				w.v.Now += time.Second
				w.v.Wall += 1000
				w.report()
				d := w.f.Step(&w.v)
				if d.Acts && d.Wish.Protocol == "raft" && d.Wish.Leader != w.v.Leaders[0] {
					w.lead(d.Wish.Leader)
					handovers++
				}
			}
			require.LessOrEqual(t, handovers, c.most)
			require.Equal(t, c.most > 0, handovers > 0)
		})
	}
}

// regions is a cluster led by m1, the first half of whose members is in one region, and the other half in another.
func regions(rates []float64) *world {
	w := &world{trips: map[[2]protocol.MemberID]time.Duration{}}
	w.v = fit.View{Mode: protocol.FitOn, Protocol: "raft", Instances: 1, Now: time.Minute, Wall: 1_800_000_000_000,
		Leaders: []protocol.MemberID{1}}
	w.v.Profile = protocol.Profile{Version: 1, Values: setting.MustParse("lease-reads=true")}
	for i := range rates {
		id, zone := protocol.MemberID(i+1), "a"
		if i >= len(rates)/2 {
			zone = "b"
		}
		w.v.Members = append(w.v.Members, fit.Member{ID: id, Name: id.String(), Zone: zone, Present: true})
		w.v.Reports = append(w.v.Reports, fit.Report{Member: id, Span: time.Second,
			Disk: fit.Disk{Syncs: 100, Time: 100 * time.Millisecond, Bytes: 100 << 10}})
	}
	return w
}

// answer sets what clients asked for and waited for, and the round trips, each with jitter.
func (w *world) answer(rates []float64, jitter func() float64) {
	trip := func(i, j int) time.Duration {
		d := 50 * time.Millisecond
		if w.v.Members[i].Zone == w.v.Members[j].Zone {
			d = time.Millisecond
		}
		return time.Duration(jitter() * float64(d))
	}
	leader := int(w.v.Leaders[0]) - 1
	for i, rate := range rates {
		for j := range rates {
			if i != j {
				w.trips[[2]protocol.MemberID{protocol.MemberID(i + 1), protocol.MemberID(j + 1)}] = trip(i, j)
			}
		}
		took := 52 * time.Millisecond // a quorum has a member of the other region
		if i != leader {
			took += trip(i, leader)
		}
		a := &w.v.Reports[i].Asked
		a.Commands = uint64(rate * jitter())
		a.Bytes, a.Waited = 100*a.Commands, time.Duration(a.Commands)*took
	}
}
