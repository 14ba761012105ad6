package iss

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/protocol"
)

// sendSlots sends one slot in a message, as far as the window allows, up to a last slot.
func (t *sending) sendSlots(after, last protocol.Index, now time.Duration, most int) (sent []protocol.Index) {
	from, again := t.request(after, now, time.Second, most)
	if again {
		return nil
	}
	t.after, t.sentAt, t.retryAfter = after, now, min(max(2*t.retryAfter, time.Second), 8*time.Second)
	for ; from < last && len(t.flights) < t.window; from++ {
		t.flights, t.bytes = append(t.flights, paxos.Flight{Last: from + 1, Bytes: 10}), t.bytes+10
		sent = append(sent, from+1)
	}
	return sent
}

// TestTheSendWindowGrows: a member that is behind is sent more at a time the further it gets. One that requests the
// same entries again may have lost all of them: it is sent little, and not at once.
func TestTheSendWindowGrows(t *testing.T) {
	var l sending
	request := func(after protocol.Index, now time.Duration, want ...protocol.Index) {
		t.Helper()
		require.Equal(t, want, l.sendSlots(after, 100, now, 4))
		require.NoError(t, l.check())
	}
	request(10, 1, 11)
	request(11, 2, 12, 13)
	request(12, 3, 14, 15)
	request(13, 4, 16, 17)
	request(14, 5, 18) // four at most: 15 to 18
	request(16, 6, 19, 20)
	request(16, 7)           // it requested twice, and is sent them once
	request(16, time.Second) // still
	request(16, 2*time.Second, 17)
	request(16, 3*time.Second)
	request(16, 5*time.Second, 17)
	request(17, 6*time.Second, 18, 19)
	request(40, 7*time.Second, 41, 42, 43) // others sent it more
	request(30, 7*time.Second+1)           // an old request, which a later one overtook
	request(30, 8*time.Second, 31)         // the member has lost the end of its log
	request(31, 9*time.Second, 32, 33)
}
