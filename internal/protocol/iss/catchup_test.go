package iss

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
)

// tellRuns tells one slot a message, as far as the window allows, up to a last slot.
func (t *sending) tellRuns(after, last protocol.Index, now time.Duration, most int) (told []protocol.Index) {
	from, again := t.request(after, now, time.Second, most)
	if again {
		return nil
	}
	t.after, t.sentAt, t.retryAfter = after, now, min(max(2*t.retryAfter, time.Second), 8*time.Second)
	for ; from < last && len(t.flights) < t.window; from++ {
		t.flights, t.bytes = append(t.flights, paxos.Flight{Last: from + 1, Bytes: 10}), t.bytes+10
		told = append(told, from+1)
	}
	return told
}

// TestATellingOpensItsWindow: who is behind is told more at a time the further it comes. One that asks again for the same
// has perhaps lost all: it is told little, and not at once.
func TestATellingOpensItsWindow(t *testing.T) {
	var l sending
	tell := func(after protocol.Index, now time.Duration, want ...protocol.Index) {
		t.Helper()
		require.Equal(t, want, l.tellRuns(after, 100, now, 4))
		require.NoError(t, l.check())
	}
	tell(10, 1, 11)
	tell(11, 2, 12, 13)
	tell(12, 3, 14, 15)
	tell(13, 4, 16, 17)
	tell(14, 5, 18) // four at most: 15 to 18
	tell(16, 6, 19, 20)
	tell(16, 7)           // it asked twice, and is told once
	tell(16, time.Second) // still
	tell(16, 2*time.Second, 17)
	tell(16, 3*time.Second)
	tell(16, 5*time.Second, 17)
	tell(17, 6*time.Second, 18, 19)
	tell(40, 7*time.Second, 41, 42, 43) // others told it more
	tell(30, 7*time.Second+1)           // an old question, overtaken by the one before
	tell(30, 8*time.Second, 31)         // the member has lost the end of its log
	tell(31, 9*time.Second, 32, 33)
}
