package server

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/protocol"
)

// TestSetZones: members are given by name or id, and all their zones change in one change, or none.
func TestSetZones(t *testing.T) {
	f := startPublished(t)
	ctx := testContext(t)
	f.fake.set(func(l *fakeLog) { l.members = append(l.members, braid.Member{ID: 0x20, Name: "two"}) })
	set := func(zones map[string]string) error { return SetZones(ctx, f.client.ActiveConnection(), zones) }
	zones := func() [2]string { return [2]string{f.cluster.find(0x10).Zone, f.cluster.find(0x20).Zone} }

	require.NoError(t, set(map[string]string{"one": "a", "20": "b"}))
	require.Equal(t, [2]string{"a", "b"}, zones())
	for name, zone := range map[string]string{"three": "a", "two": ""} {
		require.Equal(t, codes.InvalidArgument, status.Code(set(map[string]string{"one": "c", name: zone})))
	}
	f.fake.set(func(l *fakeLog) {
		l.refuseChange = func(c *braid.Change) protocol.Reason {
			if c.Member.ID == 0x20 {
				return protocol.ReasonZones
			}
			return protocol.ReasonNone
		}
	})
	err := set(map[string]string{"one": "c", "two": "c"})
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.ErrorContains(t, err, "every voter needs one")
	require.Equal(t, [2]string{"a", "b"}, zones())
}
