package protocol

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// largest is the longest message of each type that the rules allow. Of the contents only the
// sizes matter, so they are not made.
func largest(t MessageType) []*Message {
	entry := Entry{Kind: EntryBatch, Size: MaxEntryBytes - HeadSize}
	body := func(k uint8, form Form) Entry {
		return Entry{Kind: EntryBatch, Size: 1 << 10, BodySize: MaxEntryBytes - HeadSize - 1<<10, K: k, Form: form}
	}
	half := make([]Entry, MaxEntryBytes/2/(HeadSize+1)) // as small as entries with a body are
	for i := range half {
		half[i] = Entry{Kind: EntryBatch, BodySize: 1, K: 1, Form: FormWhole}
	}
	config := Entry{Kind: EntryConfig, Size: MaxConfigBytes}
	holdings := make([]Holding, MaxHoldings)
	entries := []*Message{
		{Type: t, Entries: []Entry{entry}},
		{Type: t, Entries: []Entry{body(1, FormWhole)}},
		{Type: t, Entries: []Entry{body(2, RowForm(1))}},
		{Type: t, Entries: []Entry{body(2, FormNone)}},
		{Type: t, Entries: []Entry{config}},
		{Type: t, Entries: half},
	}
	switch t {
	case MsgAppend, MsgBodies, MsgPropose:
		return entries
	case MsgAppendResp, MsgHeartbeatResp, MsgHoldings, MsgHoldingsResp:
		return []*Message{{Type: t, Holdings: holdings}}
	case MsgFetch:
		return []*Message{{Type: t, Holdings: holdings[:1]}}
	case MsgFetchResp:
		return []*Message{{Type: t, Holdings: holdings[:1], Blob: make([]byte, MaxEntryBytes)}}
	case MsgPreVote, MsgPreVoteResp, MsgVote, MsgVoteResp, MsgHeartbeat, MsgProposeResp, MsgRead, MsgReadResp, MsgTimeoutNow, MsgTail:
		return []*Message{{Type: t}}
	}
	return nil
}

func sequence(from, to MessageType) (types []MessageType) {
	for typ := from; typ < to; typ++ {
		types = append(types, typ)
	}
	return types
}

// TestEveryMessageFitsAFrame: a message that no link takes would be dropped and repeated for ever.
func TestEveryMessageFitsAFrame(t *testing.T) {
	for _, typ := range slices.Concat(sequence(1, commonTypes), sequence(FirstOwnType, MsgBodies+1)) {
		messages := largest(typ)
		require.NotEmpty(t, messages, "say what the longest %s is", typ)
		for _, m := range messages {
			require.LessOrEqual(t, m.Size(), MaxMessageBytes, "%s with %d entries and %d holdings", typ, len(m.Entries), len(m.Holdings))
		}
	}
}

func TestFittingTakesAtLeastOne(t *testing.T) {
	entries := []Entry{{Size: 1000}, {Size: 10}, {Size: 10}, {Size: 1000}}
	require.Equal(t, 1, Fitting(entries, 1))
	require.Equal(t, 1, Fitting(entries, 1000+HeadSize))
	require.Equal(t, 2, Fitting(entries[1:], 2*(10+HeadSize)))
	require.Equal(t, 4, Fitting(entries, 1<<20))
	require.Zero(t, Fitting(nil, 1))
}
