package store

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"go.etcd.io/etcd/server/v3/auth"
)

func TestPositions(t *testing.T) {
	var p positions
	require.Nil(t, p.wait(0))
	r := rand.New(rand.NewPCG(1, 2))
	waits := map[*positionWait]bool{} // whether a caller waits
	for step := range uint64(1000) {
		w := p.wait(step + 1 + r.Uint64N(100))
		waits[w] = r.IntN(2) == 0
		if !waits[w] {
			p.leave(w)
		}
		p.reach(step)
		for w, waiting := range waits {
			select {
			case <-w.reached:
				require.True(t, waiting && w.position <= step)
				p.leave(w)
				delete(waits, w)
			default:
				require.True(t, !waiting || w.position > step)
			}
		}
	}
	p.reach(2000)
	require.Empty(t, p.waits)
	require.Nil(t, p.wait(2000))
}

// A token that names a position that does not come is refused, and leaves nothing behind.
func TestMadeUpTokensLeaveNothing(t *testing.T) {
	n := openTemp(t)
	enableAuth(n)
	for range 100 {
		ctx, cancel := context.WithCancel(withToken("abcdefghijklmnop.123456789"))
		cancel()
		require.Error(t, n.Rights().RequireAuth(ctx))
	}
	require.Empty(t, n.positions.waits)
	require.Zero(t, n.rights.tokens.Load())
	require.ErrorIs(t, n.Rights().RequireAuth(withToken("abcdefghijklmnop.99999999999999999999")),
		auth.ErrInvalidAuthToken)

	n.rights.tokens.Store(mostTokens)
	require.ErrorIs(t, n.Rights().RequireAuth(withToken("abcdefghijklmnop.123456789")), auth.ErrInvalidAuthToken,
		"it does not wait")
	require.EqualValues(t, uint64(math.MaxUint64), tokenPosition(withToken("a.99999999999999999999")))
	require.Zero(t, tokenPosition(withToken("ey.x.y")))
}
