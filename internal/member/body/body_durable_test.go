package body

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// TestAnswersWithoutBytesAreOfWhatIsDurable: because of such answers other members cut their whole
// copies to rows.
func TestAnswersWithoutBytesAreOfWhatIsDurable(t *testing.T) {
	h := newHeld()
	h.held[7] = wal.Body{Instance: 1, Index: 7, Term: 2, Form: uint8(protocol.RowForm(1)), K: 2, Size: 10}
	ask := &protocol.Message{Type: protocol.MsgFetch, Instance: 1, From: 2,
		Holdings: []protocol.Holding{{Index: 7, Term: 2}}}
	answer, damaged := AnswerFetch(ask, 1, h)
	require.NoError(t, damaged)
	require.False(t, answer.Reject)
	require.Equal(t, protocol.RowForm(1), answer.Holdings[0].Form)
	h.unsynced[7] = true
	answer, damaged = AnswerFetch(ask, 1, h)
	require.NoError(t, damaged)
	require.True(t, answer.Reject)
}
