package main

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// A member was removed, and another one added at its URLs. A member that lags reports the removed one to the joiner.
func TestAJoinerBelievesTheLatestAnswer(t *testing.T) {
	never := func() <-chan time.Time { return nil }
	at := func(id braid.MemberID, position braid.Position, index braid.Index) joinAnswer {
		return joinAnswer{who: identity{self: id, told: braid.Running{Position: position, Index: index}}}
	}
	none := errors.New("does not answer")
	for _, all := range [][]joinAnswer{
		{at(1, 5, 9), at(2, 7, 12), {err: none}},
		{{err: none}, at(2, 7, 12), at(1, 5, 9)},
		{at(1, 5, 9), at(2, 5, 11)},
		{at(2, 5, 11), at(1, 5, 9)},
	} {
		answers := make(chan joinAnswer, len(all))
		for _, a := range all {
			answers <- a
		}
		who, err := latest(answers, len(all), never)
		require.NoError(t, err)
		require.EqualValues(t, 2, who.self)
	}

	answers := make(chan joinAnswer, 2) // the second one never comes
	answers <- at(1, 5, 9)
	over := make(chan time.Time)
	close(over)
	who, err := latest(answers, 2, func() <-chan time.Time { return over })
	require.NoError(t, err)
	require.EqualValues(t, 1, who.self)
	answers <- joinAnswer{err: none}
	_, err = latest(answers, 1, never)
	require.ErrorIs(t, err, none)
}
