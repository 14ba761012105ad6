package braid

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/replica"
	"github.com/braidlog/braid/protocol"
)

// published is a decision of member 1 with everything in it.
func published() *fit.Published {
	iss := fit.Candidate{Protocol: "iss", Settings: map[string]string{"relays": "2"}}
	return &fit.Published{
		By: 1, At: 5000, Mode: protocol.FitOn, Version: 3,
		Decision: fit.Decision{
			Costs: []fit.Cost{
				{Candidate: fit.Candidate{Protocol: "raft", Leader: 1}, Throughput: 100, Limit: "round trips"},
				{Candidate: iss, Throughput: 140},
			},
			Wish:  &fit.Wish{Candidate: iss, Version: 3, Gain: 1.4, Reason: "all members write alike"},
			Waits: "changed 10s ago", Avoids: []fit.Avoided{{Candidate: iss, Until: 9000}},
		},
		Reports: []fit.Report{{Member: 2, Span: time.Second, Loops: []float64{0.5},
			Trips: []fit.Trip{{To: 1, Time: time.Millisecond}}, Links: []fit.Link{{To: 1, Bytes: 7}}}},
	}
}

func TestAdviceIsTheCallersOwn(t *testing.T) {
	s := replica.Status{Lead: order.Lead{Leader: 1}, Fit: published(), Fitted: fit.Done{Changes: 2, TakenBack: 1}}
	a, err := adviceOf(&s, FitOn)
	require.NoError(t, err)
	want := published()
	require.Equal(t, Advice{By: 1, At: time.UnixMilli(want.At), Mode: FitOn, Version: 3, Costs: want.Decision.Costs,
		Wish: want.Decision.Wish, Waits: "changed 10s ago", Avoids: want.Decision.Avoids, Reports: want.Reports}, a)
	short := fitStatus(&s, FitOn)
	require.Equal(t, FitStatus{Mode: FitOn, At: time.UnixMilli(want.At), Wish: want.Decision.Wish,
		Waits: "changed 10s ago", Changes: 2, TakenBack: 1}, short)
	a.Costs[1].Settings["relays"], a.Avoids[0].Settings["relays"], a.Wish.Settings["relays"] = "9", "9", "9"
	short.Wish.Settings["relays"], short.Wish.Gain = "9", 9
	a.Reports[0].Loops[0], a.Reports[0].Trips[0].To, a.Reports[0].Links[0].To = 9, 9, 9
	require.Equal(t, published(), s.Fit)
}

// TestNoAdvice: what an earlier leader decided does not count, and a retry helps while the present one can decide.
func TestNoAdvice(t *testing.T) {
	off := published()
	off.Mode = protocol.FitOff
	for _, c := range []struct {
		leader protocol.MemberID
		known  *fit.Published
		mode   FitMode
		want   string
		retry  bool
	}{
		{1, published(), FitOff, "braid: advise: the setting fit is off", false},
		{0, published(), FitAdvise, "braid: advise: no leader is known", true},
		{2, published(), FitAdvise, "braid: advise: leader 2 has not decided yet, as in the seconds after an election",
			true},
		{1, nil, FitOn, "braid: advise: leader 1 has not decided yet, as in the seconds after an election", true},
		{1, off, FitOn, "braid: advise: leader 1 has not decided yet, as in the seconds after an election", true},
	} {
		s := replica.Status{Lead: order.Lead{Leader: c.leader}, Fit: c.known}
		_, err := adviceOf(&s, c.mode)
		var why *AdviceError
		require.ErrorAs(t, err, &why)
		require.Equal(t, c.want, why.Error())
		require.Equal(t, c.retry, why.Retry)
		require.Equal(t, FitStatus{Mode: c.mode}, fitStatus(&s, c.mode))
	}
}
