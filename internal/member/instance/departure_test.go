package instance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// TestWhoIsBehindIsNotExpelled: what is committed and not applied may begin instances that count
// on the member, also where there was one instance from the beginning on.
func TestWhoIsBehindIsNotExpelled(t *testing.T) {
	left := []*protocol.Status{{Self: 5, Instance: 1, Removed: true, Commit: 30}}
	at := order.Begin(1, true)
	at.Points[0].Index = 29
	require.Nil(t, Expelled(&at, left))
	at.Points[0].Index = 30
	require.NotNil(t, Expelled(&at, left))
	single := order.Begin(1, false)
	single.Points[0].Index = 29
	require.Nil(t, Expelled(&single, left))
	single.Points[0].Index = 30
	require.NotNil(t, Expelled(&single, left))
}
