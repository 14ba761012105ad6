package store

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// Turns go around the clients, however many each has waiting; those of a client are in order.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(1, 7, 5)
		require.NoError(t, turns.begin(t.Context(), "flood"))
		got := make(chan string, 10)
		wait := func(ctx context.Context, client, name string) {
			go func() {
				if turns.begin(ctx, client) == nil {
					got <- name
				}
			}()
			synctest.Wait()
		}
		gone, leave := context.WithCancel(t.Context())
		for _, name := range []string{"f1", "f2", "f3", "f4"} {
			wait(t.Context(), "flood", name)
		}
		wait(gone, "flood", "gone")
		require.ErrorIs(t, turns.begin(t.Context(), "flood"), ErrTooManyPasswords, "a client's share")
		wait(t.Context(), "a", "a1")
		wait(gone, "b", "gone")
		require.ErrorIs(t, turns.begin(t.Context(), "c"), ErrTooManyPasswords, "in all")
		leave()
		synctest.Wait()
		wait(t.Context(), "b", "b1")
		var order []string
		for range 6 {
			turns.end()
			order = append(order, <-got)
		}
		require.Equal(t, []string{"f1", "a1", "b1", "f2", "f3", "f4"}, order)
		turns.end()
		require.Equal(t, 1, turns.free)
		require.Zero(t, turns.waiting)
		require.Empty(t, turns.queues)
		require.Empty(t, turns.order)
	})
}
