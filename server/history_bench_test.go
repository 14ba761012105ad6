package server

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/sys"
)

// BenchmarkSample is the cost of a second of history, which each member has whether or not it is watched.
func BenchmarkSample(b *testing.B) {
	c := startReal(b, 3)
	s := c.servers[c.leader()]
	b.ReportAllocs()
	for b.Loop() {
		st := s.log.Status()
		s.observe(&st)
		s.history.Record(s.reading(&st))
	}
}

// BenchmarkWatchers is the cost of a second with five watchers of five members. All run in one process, so its
// processor time is that of all members and of the watchers: the watched member has a part of it.
func BenchmarkWatchers(b *testing.B) {
	c := startReal(b, 5)
	s := c.servers[c.leader()]
	var cursors [5]string
	url := "http://" + c.addrs[s.id] + "/braid/cluster?cursor="
	look := func() {
		s.gatherer.mu.Lock()
		s.gatherer.began = time.Time{}
		s.gatherer.mu.Unlock()
		for i := range cursors {
			cursors[i] = watchCluster(b, c.addrs[s.id], cursors[i]).Cursor
		}
	}
	for _, other := range c.servers { // as after an hour
		for range 600 {
			st := other.log.Status()
			other.history.Record(other.reading(&st))
		}
	}
	look()
	before := sys.CPUTime()
	for b.Loop() {
		for _, other := range c.servers {
			st := other.log.Status()
			other.history.Record(other.reading(&st))
			other.reporter.mu.Lock()
			other.reporter.at = time.Time{} // a second has passed
			other.reporter.mu.Unlock()
		}
		look()
	}
	b.ReportMetric(float64((sys.CPUTime()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
	response, err := http.Get(url + cursors[0])
	require.NoError(b, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(b, err)
	b.Log(fmt.Sprint(len(body), " bytes follow a cursor"))
}
