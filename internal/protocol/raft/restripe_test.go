package raft_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/raft"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
)

// sealed is an entry as it stands in a log.
func sealed(e protocol.Entry, i protocol.Index, t protocol.Term) protocol.Entry {
	e.SealPayload()
	e.Seal(i, t, make([]byte, protocol.HeadSize))
	return e
}

// A member has applied the configuration that asks for whole copies, and has them. It says so at once only if that
// configuration is on its disk: otherwise it may start again without it.
func TestAMemberObeysAConfigurationThatItsDiskHas(t *testing.T) {
	r := oneOfThree(t, 2, 1)
	var out protocol.Effects
	beat := func() uint32 {
		out.Reset()
		m := protocol.Message{Type: message.Heartbeat, Instance: 1, From: 1, To: 2, Term: 1, Commit: 2, Context: 5}
		r.Step(0, raft.NewMessage(m, message.Part{Index: 1, LogTerm: 1}), &out)
		require.Len(t, out.Send, 1)
		return out.Send[0].Part.(*message.Part).Restripes
	}
	c := protocol.Config{Members: []protocol.Member{{ID: 1, WholeAbove: 2}, {ID: 2, WholeAbove: 2},
		{ID: 3, WholeAbove: 2}}, Restripes: 1}
	e := sealed(protocol.Entry{Kind: protocol.EntryConfig, Payload: protocol.EncodeConfig(c)}, 2, 1)
	r.Step(0, raft.NewMessage(protocol.Message{Type: message.Append, Instance: 1, From: 1, To: 2, Term: 1, Commit: 2,
		Context: 4, Entries: []protocol.Entry{e}}, message.Part{Index: 1, LogTerm: 1}), &out)
	require.EqualValues(t, 2, r.Status().Commit)
	written := out.Seq
	r.Step(0, protocol.Bodies{Restripes: 1}, &out)
	require.Zero(t, beat(), "the disk is not done")
	r.Step(0, protocol.Persisted{Seq: written}, &out)
	require.EqualValues(t, 1, beat())
}

// leading makes member 1 of three lead term 2, with everything committed.
func leading(t *testing.T) (r *raft.Raft, say func(protocol.Message, message.Part)) {
	t.Helper()
	r = oneOfThree(t, 1, 0)
	var out protocol.Effects
	now := 30 * time.Second
	step := func(in protocol.Input) {
		r.Step(now, in, &out)
		r.Step(now, protocol.Persisted{Seq: out.Seq}, &out)
	}
	say = func(m protocol.Message, p message.Part) {
		m.Instance, m.From, m.To, m.Term = 1, 2, 1, 2
		step(raft.NewMessage(m, p))
	}
	r.Step(0, protocol.Tick{Random: 1}, &out)
	step(protocol.Tick{Random: 1})
	say(protocol.Message{Type: message.PreVoteResp}, message.Part{})
	say(protocol.Message{Type: message.VoteResp}, message.Part{})
	say(protocol.Message{Type: message.AppendResp, Context: 1}, message.Part{Index: r.Status().Last})
	require.Equal(t, r.Status().Last, r.Status().Commit)
	return r, say
}

// A change of the number of instances is checked against a membership, and comes into the log under that one or not at
// all. A member that does not lead sends it to no one.
func TestAProposalUnderAConfiguration(t *testing.T) {
	r, say := leading(t)
	var out protocol.Effects
	propose := func(under protocol.Index) protocol.Index {
		before := r.Status().Last
		r.Step(30*time.Second, protocol.Propose{Entries: []protocol.Entry{protocol.NewReshape(2)}, Under: &under}, &out)
		r.Step(30*time.Second, protocol.Persisted{Seq: out.Seq}, &out)
		return r.Status().Last - before
	}
	require.EqualValues(t, 1, propose(r.Status().ConfigIndex))
	say(protocol.Message{Type: message.AppendResp, Context: 1}, message.Part{Index: r.Status().Last})
	old := r.Status().ConfigIndex
	r.Step(30*time.Second,
		protocol.ProposeChange{
			Changes: []protocol.Change{{Kind: protocol.UpdateMember, Member: protocol.Member{ID: 3, Name: "c"}}}}, &out)
	r.Step(30*time.Second, protocol.Persisted{Seq: out.Seq}, &out)
	require.Greater(t, r.Status().ConfigIndex, old)
	require.Zero(t, propose(old), "the members may have changed")
	require.Zero(t, propose(r.Status().ConfigIndex), "that is not decided")
	say(protocol.Message{Type: message.AppendResp, Context: 1}, message.Part{Index: r.Status().Last})
	require.EqualValues(t, 1, propose(r.Status().ConfigIndex))

	last := r.Status().Last
	say(protocol.Message{Type: message.Propose, Entries: []protocol.Entry{sealed(protocol.NewReshape(3), 0, 0)}},
		message.Part{})
	require.Equal(t, last, r.Status().Last, "nobody checked that against this log")

	f := oneOfThree(t, 2, 1)
	f.Step(0, raft.NewMessage(protocol.Message{Type: message.Heartbeat, Instance: 1, From: 1, To: 2, Term: 1},
		message.Part{}), &out)
	out.Reset()
	under := protocol.Index(0)
	f.Step(0, protocol.Propose{Entries: []protocol.Entry{protocol.NewReshape(2)}, Under: &under}, &out)
	require.Empty(t, out.Send)
}

// Only an answer that says how far a member has applied the log can take back that it is missing bodies, where the
// number of instances has changed: it knows of the bodies of retired ones from then on.
func TestAnAcknowledgementDoesNotAccountForRetiredInstances(t *testing.T) {
	r, say := leading(t)
	var out protocol.Effects
	lacking := func() bool { return r.Status().Peers[0].Lacking }
	at := r.Status().Last
	say(protocol.Message{Type: message.AppendResp, Context: 1}, message.Part{Index: at, Lacking: true})
	require.True(t, lacking())
	say(protocol.Message{Type: message.AppendResp, Context: 1}, message.Part{Index: at})
	require.False(t, lacking(), "there was no such change")

	r.Step(30*time.Second, protocol.Propose{Entries: []protocol.Entry{protocol.NewReshape(2)}}, &out)
	r.Step(30*time.Second, protocol.Persisted{Seq: out.Seq}, &out)
	at = r.Status().Last
	say(protocol.Message{Type: message.HeartbeatResp, Commit: at, Context: 1},
		message.Part{Index: at, Hint: at, Lacking: true})
	say(protocol.Message{Type: message.AppendResp, Context: 1}, message.Part{Index: at})
	require.True(t, lacking(), "it may have said that before")
	say(protocol.Message{Type: message.HeartbeatResp, Commit: at, Context: 1}, message.Part{Index: at, Hint: at})
	require.False(t, lacking())
}
