package server

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// TestRoundTripsAreCounted: of members that are connected, once they are known.
func TestRoundTripsAreCounted(t *testing.T) {
	f := start(t)
	f.fake.set(func(l *fakeLog) {
		l.amend = func(s *braid.Status) {
			s.Links.Peers = []braid.PeerStats{{ID: 0x20, Connected: true, RoundTrip: 3 * time.Millisecond, Breaks: 2, Drops: 4,
				Failures: 5}, {ID: 0x30, RoundTrip: time.Second}}
		}
	})
	eventually(t, "a round trip", func() bool {
		_, body := f.fetch(t, "/metrics")
		return strings.Contains(body, `etcd_network_peer_round_trip_time_seconds_bucket{To="20",le="0.0032"} 1`)
	})
	_, body := f.fetch(t, "/metrics")
	for _, want := range []string{
		`etcd_network_active_peers{Local="10",Remote="20"} 1`, `etcd_network_active_peers{Local="10",Remote="30"} 0`,
		`etcd_network_disconnected_peers_total{Local="10",Remote="20"} 2`,
		`etcd_network_peer_sent_failures_total{To="20"} 9`,
	} {
		require.Contains(t, body, want)
	}
	require.NotContains(t, body, `round_trip_time_seconds_count{To="30"}`)
}
