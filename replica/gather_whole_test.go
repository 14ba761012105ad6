package replica

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/erasure"
	"github.com/braidlog/braid/protocol"
)

// TestGatherFromOneWholeCopy: one member holds the body whole, all others hold nothing. It
// is first asked for its row, and then for more.
func TestGatherFromOneWholeCopy(t *testing.T) {
	body := bytes.Repeat([]byte("braid"), 100)
	ref := protocol.BodyRef{Instance: 1, Index: 7, Term: 2, K: 3, Size: uint32(len(body)), Digest: protocol.Digest(body)}
	config := protocol.Config{Members: []protocol.Member{{ID: 1, Slot: 0}, {ID: 2, Slot: 1}, {ID: 3, Slot: 2}, {ID: 4, Slot: 3}, {ID: 5, Slot: 4}}, Slots: 5}
	g := NewGatherer(GatherConfig{Self: 1, Instance: 1, Hedge: 10 * time.Millisecond, Retry: 50 * time.Millisecond, MaxBytes: 1 << 20})
	g.SetMembers(&config)
	var out GatherOutbox
	g.Ask(0, Question{Ref: ref, Until: time.Minute}, &out)
	for now := time.Duration(0); now < time.Second; now += time.Millisecond {
		sends := append([]*protocol.Message(nil), out.Send...)
		if len(out.Answers) > 0 {
			require.NoError(t, out.Answers[0].Err)
			require.Equal(t, body, out.Answers[0].Body)
			return
		}
		out.Reset()
		for _, m := range sends {
			h := m.Holdings[0]
			answer := &protocol.Message{Type: protocol.MsgFetchResp, From: m.To, To: 1, Context: m.Context, Reject: true, Holdings: []protocol.Holding{{Index: h.Index, Term: h.Term}}}
			if m.To == 4 {
				answer.Blob = body
				if row, ok := h.Form.Row(); ok {
					var err error
					answer.Blob, err = erasure.Cut(body, ref.K, row)
					require.NoError(t, err)
				}
				answer.Reject, answer.Holdings[0].Form, answer.Holdings[0].Digest = false, h.Form, protocol.Digest(answer.Blob)
			}
			g.Receive(now, answer, &out)
		}
		g.Tick(now, &out)
		require.NoError(t, g.Check())
	}
	require.Fail(t, "not made whole")
}
