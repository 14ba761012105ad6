package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAVerdictIsAlsoOfEntriesThatComeLater: a member may learn it from a snapshot before its log has the entries.
func TestAVerdictIsAlsoOfEntriesThatComeLater(t *testing.T) {
	var s Seals
	note := func(i Index) { s.Note(&Entry{Kind: EntrySeal, Index: i}) }
	note(4)
	require.True(t, s.Proposed())
	s.Judge(Sealed{Index: 7})
	note(6)
	require.False(t, s.Proposed())
	note(8)
	require.Equal(t, Index(8), s.First())
	s.Judge(Sealed{Index: 5})
	note(7)
	require.Equal(t, Index(8), s.First(), "an earlier verdict changes nothing")
}
