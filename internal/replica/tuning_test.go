package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
)

// The line about a change of settings does not have the text of the fitter's note.
func TestChangesLeaveOutTheNoteOfTheFitter(t *testing.T) {
	var was, note, both protocol.Profile
	note.Values = common.FitAvoid.Set(note.Values, "raft:1@1796005691")
	both.Values = common.Fit.Set(note.Values, protocol.FitOn)
	require.Equal(t, "fit=on (was default)", changes(&was, &both))
	require.Equal(t, "fit=default (was on)", changes(&both, &note))
	require.Equal(t, "fit-avoid (a note of the fitter)", changes(&was, &note))
}
