package raft

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

// TestEntriesThatAMemberNeedsStayInMemory: those that a follower has not acknowledged do, if it can be reached. Others
// leave the memory long before the cache is full.
func TestEntriesThatAMemberNeedsStayInMemory(t *testing.T) {
	const n, rounds, size = 64, 30, 100
	fill := func(now time.Duration, acknowledges func(protocol.MemberID) bool) (r *Raft) {
		r, out := benchLeader(t)
		for range rounds {
			r.Step(now, protocol.Propose{Entries: benchEntries(n, size)}, out)
			for _, m := range out.Send {
				if m.Type == message.Append && m.Context != 0 && acknowledges(m.To) {
					answer := protocol.Message{Type: message.AppendResp, Instance: 1, From: m.To, To: 1, Term: 1,
						Context: m.Context}
					r.Step(now, message.With(answer, message.Part{Index: r.log.Last}).Message, out)
				}
			}
			r.Step(now, protocol.Persisted{Seq: out.Seq}, out)
			out.Reset()
		}
		require.Equal(t, r.log.Last, r.commit)
		return r
	}
	both := fill(time.Millisecond, func(protocol.MemberID) bool { return true })
	require.Empty(t, both.log.At(2).Payload)
	require.NotEmpty(t, both.log.At(both.log.Last).Payload)
	one := func(id protocol.MemberID) bool { return id == 2 }
	require.NotEmpty(t, fill(time.Millisecond, one).log.At(2).Payload, "member 3 lags")
	require.Empty(t, fill(5*time.Second, one).log.At(2).Payload, "member 3 has not answered for long")
}
