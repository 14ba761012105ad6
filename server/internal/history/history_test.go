package history

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// bound makes distributions whose elements are milliseconds.
func bound(i int) time.Duration { return time.Duration(i+1) * time.Millisecond }

func reading(at int, applied uint64, writes ...uint64) *Reading {
	return &Reading{
		At: time.Unix(int64(at), 0), Applied: applied, Writes: Distribution{writes, bound}, DiskFree: -1,
		DB: int64(100 * at), Syncs: Distribution{[]uint64{0, 0}, bound}, Reads: Distribution{[]uint64{0, 0}, bound},
	}
}

// value is a figure of a sample by its name.
func value(t *testing.T, s *Sample, name string) float64 {
	for i := range columns {
		if columns[i].name == name {
			return s.Values[i]
		}
	}
	t.Fatal(name)
	return 0
}

// A sample has rates, levels, and the quantiles of what came between the two readings alone.
func TestASampleFollowsFromTwoReadings(t *testing.T) {
	s := between(reading(10, 100, 5, 0, 90, 0), reading(12, 300, 5, 50, 140, 0))
	require.Equal(t, 12.0, s.At)
	require.Equal(t, 2.0, s.Seconds)
	require.Equal(t, 100.0, value(t, &s, "applied"))
	require.Equal(t, 50.0, value(t, &s, "writes"))
	require.Equal(t, 2.0, value(t, &s, "write_p50_ms"), "half of them are in the second element")
	require.InDelta(t, 2.98, value(t, &s, "write_p99_ms"), 1e-9)
	require.Equal(t, 1200.0, value(t, &s, "db_bytes"))
	for _, name := range []string{"read_p50_ms", "cpu_cores", "memory_bytes", "disk_free_bytes", "slots"} {
		require.True(t, math.IsNaN(value(t, &s, name)), name)
	}
	s = between(reading(10, 100), reading(11, 50))
	require.True(t, math.IsNaN(value(t, &s, "applied")), "a counter that is less than before has no rate")
}

func TestQuantilesBeyondTheLastBound(t *testing.T) {
	require.Equal(t, 2.0, Distribution{[]uint64{0, 0, 7}, bound}.quantile(0.5))
	require.True(t, math.IsNaN(Distribution{[]uint64{0, 0}, bound}.quantile(0.5)))
	require.Equal(t, 0.5, Distribution{[]uint64{8, 0}, bound}.quantile(0.5))
}

// fill records a number of seconds.
func fill(h *History, seconds int) {
	for at := range seconds + 1 {
		h.Record(reading(at, uint64(at)))
	}
}

// Ten minutes are held by seconds and an hour by ten seconds, and no more.
func TestTheRingsAreBounded(t *testing.T) {
	h := New("b")
	fill(h, 4000)
	p := h.Since(Position{})
	require.True(t, p.Reset)
	require.Len(t, p.Fine, mostFine)
	require.Equal(t, 3401.0, p.Fine[0].At)
	require.Equal(t, 4000.0, p.Fine[mostFine-1].At)
	require.Len(t, p.Coarse, mostCoarse)
	require.Equal(t, 4000.0, p.Coarse[mostCoarse-1].At)
	require.Equal(t, 10.0, p.Coarse[0].Seconds)
	merged := p.Merged()
	for i := 1; i < len(merged); i++ {
		require.Less(t, merged[i-1].At, merged[i].At)
	}
	require.Equal(t, 410.0, merged[0].At)
	require.Len(t, merged, mostFine+300, "ten seconds each from 410 to 3400")
}

// The parts after positions have each sample and event once. After a restart, or a gap, the part has all.
func TestSinceAPosition(t *testing.T) {
	h := New("b")
	fill(h, 20)
	h.Add(Event{Kind: "started"})
	at := h.Since(Position{}).Next
	next := h.Since(at)
	require.False(t, next.Reset)
	require.Empty(t, next.Fine)
	require.Empty(t, next.Events)
	for second := 21; second <= 23; second++ {
		h.Record(reading(second, 0))
	}
	h.Add(Event{Kind: "stopping"})
	next = h.Since(at)
	require.False(t, next.Reset)
	require.Len(t, next.Fine, 3)
	require.Equal(t, next.Fine, next.Merged(), "coarse samples belong to the beginning alone")
	require.Equal(t, []Event{{Kind: "stopping"}}, next.Events)

	require.True(t, h.Since(Position{Boot: "a", Fine: 22}).Reset)
	for second := range mostFine + 1 {
		h.Record(reading(24+second, 0))
	}
	require.True(t, h.Since(at).Reset, "samples between are gone")
}

// An event that repeats does not displace others.
func TestEventsDoNotFlood(t *testing.T) {
	h := New("b")
	for at := range int64(2000) {
		h.Add(Event{At: 100 * at, Kind: "link-down", About: "1"})
	}
	h.Add(Event{At: 200_000, Kind: "link-down", About: "2"})
	events := h.Since(Position{}).Events
	require.Len(t, events, 4*eventsBurst+1, "2000 in 200 s, and one about another member")
	require.Equal(t, int64(180_400), events[4*eventsBurst-1].At)
}

// A copy of a history that goes through JSON, in parts, has what the history has.
func TestACopyFollows(t *testing.T) {
	h, copied := New("b"), New("")
	follow := func() {
		text, err := json.Marshal(h.Since(copied.End()))
		require.NoError(t, err)
		var p Part
		require.NoError(t, json.Unmarshal(text, &p))
		copied.Extend(&p)
	}
	same := func() {
		want, err := json.Marshal(h.Since(Position{}))
		require.NoError(t, err)
		got, err := json.Marshal(copied.Since(Position{}))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
	for round := range 9 {
		for second := range 100 {
			h.Record(reading(100*round+second, uint64(round)))
			if second%40 == 0 {
				h.Add(Event{At: int64(round) * 60_000, Kind: "started"})
			}
		}
		follow()
		same()
	}
	h = New("c") // it has started again
	fill(h, 7)
	follow()
	same()
}

// A member of another version may have other figures.
func TestColumnsOfAnotherVersion(t *testing.T) {
	var s Samples
	require.NoError(t, json.Unmarshal([]byte(`{"t":[1,2],"seconds":[1,1],"writes":[5,null],"later":[7,8]}`), &s))
	require.Len(t, s, 2)
	require.Equal(t, 5.0, value(t, &s[0], "writes"))
	require.True(t, math.IsNaN(value(t, &s[1], "writes")))
	require.True(t, math.IsNaN(value(t, &s[0], "reads")))
	require.Error(t, json.Unmarshal([]byte(`{"t":[1,2],"writes":[5]}`), &s))
}
