package raft_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/raft"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

func oneOfThree(t *testing.T, self protocol.MemberID, entries int) *raft.Raft {
	t.Helper()
	rec := protocol.Recovered{State: protocol.HardState{Term: 1},
		Base: protocol.Base{Config: protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}}}}
	for i := range entries {
		e := protocol.Entry{Kind: protocol.EntryNoop}
		e.SealPayload()
		e.Seal(protocol.Index(i+1), 1, make([]byte, protocol.HeadSize))
		rec.Entries = append(rec.Entries, e)
	}
	r, err := raft.New(protocol.Settings{Self: self, Instance: 1, Heartbeat: time.Second,
		ElectionTimeout: 10 * time.Second}, rec)
	require.NoError(t, err)
	return r
}

// A member whose leader has its acknowledgement of more than it holds says so and is silent.
func TestAMemberFindsOutThatItForgot(t *testing.T) {
	r := oneOfThree(t, 2, 3)
	var out protocol.Effects
	part := message.Part{Index: 3, Round: 4}
	beat := protocol.Message{Type: message.Heartbeat, Instance: 1, From: 1, To: 2, Term: 1, Context: 5}
	r.Step(0, raft.NewMessage(beat, part), &out)
	require.Nil(t, out.Forgot, "it has all that it acknowledged")
	require.False(t, out.Send[0].Reject)
	out.Reset()
	part.Index = 7
	r.Step(0, raft.NewMessage(beat, part), &out)
	require.Equal(t, &protocol.Forgot{Leader: 1, Term: 1, Acked: 7, Last: 3}, out.Forgot)
	require.Len(t, out.Send, 1)
	require.True(t, out.Send[0].Reject)
	require.EqualValues(t, 3, out.Send[0].Part.(*message.Part).Index)
	out.Reset()
	r.Step(time.Hour, protocol.Tick{Random: 1}, &out)
	r.Step(time.Hour, raft.NewMessage(protocol.Message{Type: message.Vote, Instance: 1, From: 3, To: 2, Term: 9},
		message.Part{Index: 99, LogTerm: 8, Force: true}), &out)
	require.Empty(t, out.Send)
	require.Empty(t, out.Release, "no vote, no word")
}

// An old copy of a disk may be long enough: the end of its log is of an older term, and the entry that
// this member acknowledged there since is lost.
func TestAMemberFindsOutThatItAcknowledgedAnotherEntry(t *testing.T) {
	r := oneOfThree(t, 2, 4)
	var out protocol.Effects
	beat := protocol.Message{Type: message.Heartbeat, Instance: 1, From: 1, To: 2, Term: 3, Context: 5}
	r.Step(0, raft.NewMessage(beat, message.Part{Index: 3, LogTerm: 1}), &out)
	require.Nil(t, out.Forgot, "the same entry")
	r.Step(0, raft.NewMessage(beat, message.Part{Index: 3}), &out)
	require.Nil(t, out.Forgot, "the leader does not know the term any more")
	out.Reset()
	r.Step(0, raft.NewMessage(beat, message.Part{Index: 3, LogTerm: 2}), &out)
	require.Equal(t, &protocol.Forgot{Leader: 1, Term: 3, Acked: 3, Last: 2}, out.Forgot)
	require.Len(t, out.Release, 1)
	require.True(t, out.Release[0].Reject)
	require.EqualValues(t, 2, out.Release[0].Part.(*message.Part).Index,
		"less than it acknowledged, so the leader takes note")
	require.NoError(t, r.Check())
}

// What a snapshot covers is not compared: the term of that entry is not known.
func TestAMemberThatHasASnapshotForgotNothing(t *testing.T) {
	rec := protocol.Recovered{
		State: protocol.HardState{Term: 3},
		Base: protocol.Base{Index: 9, Term: 2,
			Config: protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}}},
	}
	r, err := raft.New(protocol.Settings{Self: 2, Instance: 1, Heartbeat: time.Second, ElectionTimeout: 10 * time.Second},
		rec)
	require.NoError(t, err)
	var out protocol.Effects
	beat := protocol.Message{Type: message.Heartbeat, Instance: 1, From: 1, To: 2, Term: 3, Context: 5}
	r.Step(0, raft.NewMessage(beat, message.Part{Index: 8, LogTerm: 1}), &out)
	require.Nil(t, out.Forgot)
	r.Step(0, raft.NewMessage(beat, message.Part{Index: 9, LogTerm: 3}), &out)
	require.NotNil(t, out.Forgot)
}

// The leader of a later term knows nothing of what was acknowledged before.
func TestALateHeartbeatOfAnotherTermAccusesNobody(t *testing.T) {
	r := oneOfThree(t, 2, 3)
	var out protocol.Effects
	r.Step(0, raft.NewMessage(protocol.Message{Type: message.Heartbeat, Instance: 1, From: 3, To: 2, Term: 2},
		message.Part{}), &out)
	r.Step(0, raft.NewMessage(protocol.Message{Type: message.Heartbeat, Instance: 1, From: 1, To: 2, Term: 1},
		message.Part{Index: 7}), &out)
	require.Nil(t, out.Forgot)
}

// What a member acknowledged that lost it counts no more.
func TestALeaderDoesNotCountWhoForgot(t *testing.T) {
	r := oneOfThree(t, 1, 0)
	var out protocol.Effects
	r.Step(0, protocol.Tick{Random: 1}, &out)
	r.Step(0, protocol.Stand{}, &out) // no effect after term 0
	r.Step(30*time.Second, protocol.Tick{Random: 1}, &out)
	say := func(m protocol.Message, p message.Part) {
		m.Instance, m.From, m.To, m.Term = 1, 2, 1, 2
		r.Step(30*time.Second, raft.NewMessage(m, p), &out)
		r.Step(30*time.Second, protocol.Persisted{Seq: out.Seq}, &out)
	}
	say(protocol.Message{Type: message.PreVoteResp}, message.Part{})
	say(protocol.Message{Type: message.VoteResp}, message.Part{})
	st := r.Status()
	require.Equal(t, protocol.Leader, st.Role)
	say(protocol.Message{Type: message.AppendResp, Context: 1}, message.Part{Index: st.Last})
	require.Equal(t, st.Last, r.Status().Commit)
	say(protocol.Message{Type: message.HeartbeatResp, Reject: true, Context: 1}, message.Part{})
	p := r.Status().Peers[0]
	require.Zero(t, p.Match)
	require.False(t, p.Active)
	say(protocol.Message{Type: message.AppendResp, Context: 1}, message.Part{Index: st.Last})
	require.Zero(t, r.Status().Peers[0].Match, "a late word is no word")
	require.NoError(t, r.Check())
}
