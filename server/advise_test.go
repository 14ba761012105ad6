package server

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/server/internal/page"
)

// advice is one with everything in it. Ids are such that no float64 has them.
func advice() braid.Advice {
	const far = braid.MemberID(1<<63 + 1)
	iss := braid.FitCandidate{Protocol: "iss", Settings: map[string]string{"relays": "2"}}
	niagara := braid.FitCandidate{Protocol: "niagara", Leader: far}
	return braid.Advice{
		By: 0x10, At: time.UnixMilli(1_800_000_000_123), Mode: braid.FitOn, Version: 3,
		Costs: []braid.FitCost{
			{Candidate: braid.FitCandidate{Protocol: "raft", Leader: 0x10}, Throughput: 200, Latency: 0.05,
				Limit: "round trips"},
			{Candidate: iss, Throughput: 280, Latency: 0.025},
			{Candidate: braid.FitCandidate{Protocol: "craft"}, Excluded: "a member is missing"},
		},
		Wish: &braid.FitWish{Candidate: iss, Version: 3, Gain: 1.4, Reason: "all members write alike",
			Restores: true},
		Waits:  "changed 10s ago",
		Avoids: []braid.FitAvoided{{Candidate: niagara, Until: 1_800_000_600_000}},
		Reports: []braid.FitReport{{
			Member: 0x10, Span: 2 * time.Second,
			Asked: braid.FitLoad{Commands: 400, Bytes: 4000, Blind: 100, Large: 4, LargeBytes: 3000,
				Waited: 8 * time.Second},
			Trips: []braid.FitTrip{{To: far, Time: 80 * time.Millisecond}},
			Links: []braid.FitLink{{To: 0x20, Bytes: 100}, {To: far, Bytes: 6000, Queued: 7}},
			Loops: []float64{0.5, 0.25}, Apply: 0.125, CPU: 0.75,
			Disk: braid.FitDisk{Syncs: 100, Time: time.Second, Bytes: 5000}, Unapplied: 9,
		}},
	}
}

func TestAdvise(t *testing.T) {
	f := start(t)
	ctx, conn := testContext(t), f.client.ActiveConnection()
	eventually(t, "the name", func() bool { return f.view(ctx).Members[0].Name == "one" })
	f.fake.set(func(l *fakeLog) { l.advice = advice() })
	got, err := Advise(ctx, conn)
	require.NoError(t, err)
	iss := AdvisedCandidate{Protocol: "iss", Settings: map[string]string{"relays": "2"}}
	require.True(t, got.At.Equal(time.UnixMilli(1_800_000_000_123)))
	require.True(t, got.Avoids[0].Until.Equal(time.UnixMilli(1_800_000_600_000)))
	got.At, got.Avoids[0].Until = time.Time{}, time.Time{}
	require.Equal(t, Advised{
		By: "10", Mode: "on", Profile: 3, Names: map[string]string{"10": "one"}, Waits: "changed 10s ago",
		Members: []AdvisedMember{{
			ID: "10", Seconds: 2, Commands: 200, Bytes: 2000, Blind: 0.25, Large: 0.75, Latency: 0.02, Waiting: 4,
			Loops: []float64{0.5, 0.25}, Apply: 0.125, CPU: 0.75, Disk: 0.5, Syncs: 50, Unapplied: 9,
			Links: []AdvisedLink{{To: "8000000000000001", Trip: 0.08, Bytes: 3000, Queued: 7}, {To: "20", Bytes: 50}},
		}},
		Costs: []AdvisedCost{
			{AdvisedCandidate{Protocol: "raft", Leader: "10"}, 200, 0.05, 1, "round trips", ""},
			{iss, 280, 0.025, 1.4, "", ""},
			{AdvisedCandidate{Protocol: "craft"}, 0, 0, 0, "", "a member is missing"},
		},
		Wish:   &AdvisedWish{iss, 1.4, "all members write alike", false, true},
		Avoids: []AdvisedAvoid{{AdvisedCandidate: AdvisedCandidate{Protocol: "niagara", Leader: "8000000000000001"}}},
	}, got)
	f.fake.set(func(l *fakeLog) { l.advice = braid.Advice{Reports: []braid.FitReport{{}}, Costs: []braid.FitCost{{}}} })
	_, err = Advise(ctx, conn)
	require.NoError(t, err, "nothing was measured")
	for code, none := range map[codes.Code]error{
		codes.Unavailable:        &braid.AdviceError{Reason: "not yet", Retry: true},
		codes.FailedPrecondition: &braid.AdviceError{Reason: "the setting fit is off"},
	} {
		f.fake.set(func(l *fakeLog) { l.unadvised = none })
		_, err = Advise(ctx, conn)
		require.Equal(t, code, status.Code(err), "%v", err)
	}
}

// TestFitInTheStatus: JSON and metrics show the wish.
func TestFitInTheStatus(t *testing.T) {
	f := start(t)
	eventually(t, "the name", func() bool { return f.view(testContext(t)).Members[0].Name == "one" })
	f.fake.set(func(l *fakeLog) { l.amend = func(st *braid.Status) { st.Fit.Mode = braid.FitAdvise } })
	require.Nil(t, f.view(testContext(t)).Fit.Wish)
	_, body := f.fetch(t, "/metrics")
	require.Contains(t, body, `braid_fit_mode{mode="advise"} 1`)
	require.Contains(t, body, `braid_fit_mode{mode="on"} 0`)
	require.NotContains(t, body, "braid_fit_wish{")

	a := advice()
	a.Wish.Leader, a.Wish.Restores = 0x10, false
	f.fake.set(func(l *fakeLog) {
		l.amend = func(st *braid.Status) {
			st.Fit = braid.FitStatus{Mode: braid.FitOn, At: a.At, Wish: a.Wish, Waits: a.Waits, Changes: 3,
				TakenBack: 1}
		}
	})
	code, body := f.fetch(t, "/braid/status")
	require.Equal(t, http.StatusOK, code)
	var v page.View
	require.NoError(t, json.Unmarshal([]byte(body), &v))
	at := a.At.UTC()
	require.Equal(t, page.Fit{Mode: "on", At: &at, Waits: "changed 10s ago", Changes: 3, TakenBack: 1, Wish: &page.Wish{
		Protocol: "iss", Settings: map[string]string{"relays": "2"}, Leader: "10", Gain: 1.4,
		Reason: "all members write alike"}}, v.Fit)
	_, body = f.fetch(t, "/metrics")
	for _, want := range []string{`braid_fit_mode{mode="on"} 1`, `braid_fit_wish{protocol="iss"} 1.4`,
		"braid_fit_changes_total 3", "braid_fit_taken_back_total 1"} {
		require.Contains(t, body, want)
	}

	f.fake.set(func(*fakeLog) { a.Wish.TakesBack, a.Waits = true, "" })
	fit := f.view(testContext(t)).Fit
	require.True(t, fit.Wish.TakesBack)
	require.Empty(t, fit.Waits)
}
