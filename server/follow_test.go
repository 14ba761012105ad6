package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
)

// TestLeasesAreExtendedByTheLog: members with different flags extend leases by the same time, and by no less than an
// earlier profile promised.
func TestLeasesAreExtendedByTheLog(t *testing.T) {
	profile := func(timeout string, earlier ...braid.Profile) braid.Profile {
		p := braid.Profile{Settings: map[string]string{}, Earlier: earlier}
		if timeout != "" {
			p.Settings["election-timeout"] = timeout
		}
		return p
	}
	for _, c := range []struct {
		profile           braid.Profile
		election, longest time.Duration
	}{
		{braid.Profile{}, time.Minute, time.Minute}, // the log has none: flags count
		{profile("2s"), 2 * time.Second, 2 * time.Second},
		{profile("2s", profile("1s"), profile("")), 2 * time.Second, 2 * time.Second},
		{profile("1s", profile("3s"), profile("2s"), profile("")), time.Second, 3 * time.Second},
	} {
		election, longest := timeoutsOf(&c.profile, time.Minute)
		require.Equal(t, c.election, election)
		require.Equal(t, c.longest, longest)
	}
}

// TestLargeValuesFollowThePlacement: a tune of the placement changes from which size on a value is kept apart.
func TestLargeValuesFollowThePlacement(t *testing.T) {
	require.Equal(t, largeWholeBytes, largeFrom(braid.PlacementCopy))
	require.Equal(t, store.DefaultLargeValueBytes, largeFrom(braid.PlacementCode))
}
