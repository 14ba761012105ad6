package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// largest are the longest messages of a type that the rules allow: of a common one, or of a
// protocol's own. Of the contents only the
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
	switch t {
	case MsgFetch:
		return []*Message{{Type: t, Holdings: holdings[:1]}}
	case MsgFetchResp:
		return []*Message{{Type: t, Holdings: holdings[:1], Blob: make([]byte, MaxEntryBytes)}}
	case MsgTail:
		return []*Message{{Type: t, Part: Wanted{}}}
	case toyTalk:
		part := toyPart(make([]byte, MaxPartBytes))
		return []*Message{
			{Type: t, Part: part, Entries: []Entry{entry}},
			{Type: t, Part: part, Entries: []Entry{body(1, FormWhole)}},
			{Type: t, Part: part, Entries: []Entry{body(2, RowForm(1))}},
			{Type: t, Part: part, Entries: []Entry{body(2, FormNone)}},
			{Type: t, Part: part, Entries: []Entry{config}},
			{Type: t, Part: part, Entries: half},
			{Type: t, Part: part, Holdings: holdings},
		}
	}
	return nil
}

// TestEveryMessageFitsAFrame: a message that no link takes would be dropped and repeated forever.
func TestEveryMessageFitsAFrame(t *testing.T) {
	for _, typ := range []MessageType{MsgFetch, MsgFetchResp, MsgTail, toyTalk} {
		messages := largest(typ)
		require.NotEmpty(t, messages, "say what the longest %s is", typ)
		for _, m := range messages {
			require.LessOrEqual(t, m.Size(), MaxMessageBytes, "%s with %d entries and %d holdings", typ, len(m.Entries),
				len(m.Holdings))
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
