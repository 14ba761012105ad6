package check

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSequenceAgreement(t *testing.T) {
	var s Sequence
	var a, b Cursor
	require.NoError(t, s.Apply(1, &a, 1, "x"))
	require.NoError(t, s.Apply(1, &a, 3, "y"))
	require.Equal(t, 2, s.Behind(b))
	require.NoError(t, s.Apply(2, &b, 1, "x"))
	var differs *AgreementError
	require.ErrorAs(t, s.Apply(2, &b, 3, "z"), &differs)
	require.Equal(t, uint64(1), differs.First)
	require.ErrorAs(t, s.Apply(2, &b, 2, "y"), &differs, "same command, other position")
	require.NoError(t, s.Apply(2, &b, 3, "y"))
	require.Equal(t, 0, s.Behind(b))
}

func TestSequenceAtMostOnce(t *testing.T) {
	var s Sequence
	var a Cursor
	require.NoError(t, s.Apply(1, &a, 1, "x"))
	var twice *TwiceError
	require.ErrorAs(t, s.Apply(1, &a, 2, "x"), &twice)
	require.Equal(t, uint64(1), twice.First)
	require.Error(t, s.Apply(1, &a, 1, "y"), "positions rise")
}

func TestSequenceRestore(t *testing.T) {
	var s Sequence
	var a Cursor
	chain := uint64(0)
	for i, c := range []string{"x", "y", "z"} {
		require.NoError(t, s.Apply(1, &a, uint64(i+1), c))
		if i < 2 {
			chain = Chain(chain, c)
		}
	}
	c, err := s.Restore(2, 2, chain)
	require.NoError(t, err)
	require.Equal(t, 1, s.Behind(c))
	require.NoError(t, s.Apply(2, &c, 3, "z"))

	_, err = s.Restore(2, 2, chain+1)
	require.Error(t, err, "another state")
	_, err = s.Restore(2, 4, chain)
	require.Error(t, err, "more than was ever applied")
	c, err = s.Restore(2, 0, 0)
	require.NoError(t, err)
	require.Equal(t, 3, s.Behind(c))
}
