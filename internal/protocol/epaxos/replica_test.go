package epaxos

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func newCommand(touches ...uint16) *Command { return &Command{Entry: sealed("x"), Touches: touches} }

// A member keeps a limited number of commands of a column, and accepts the next one when it has executed the first.
func TestAReplicaIsBounded(t *testing.T) {
	r := NewReplica(1, Vector{0, 5}, &Index{}, "")
	for range maxAhead {
		require.NotNil(t, r.Propose(newCommand(1)))
	}
	require.Nil(t, r.Propose(newCommand(1)))
	far := ID{2, 5 + maxAhead + 1}
	require.Nil(t, r.PreAccept(far, newCommand(1)))
	require.Nil(t, r.Accept(far, 0, Value{}))
	require.Nil(t, r.Decide(far, Value{}))
	rec, _ := r.Promise(far, 256)
	require.Nil(t, rec)
	require.NoError(t, r.Check())

	require.NotNil(t, r.Decide(ID{1, 1}, Value{r.Record(ID{1, 1}).Command, nil}))
	r.Execute(ID{1, 1})
	require.NotNil(t, r.Propose(newCommand(1)))
	require.NoError(t, r.Check())
}

// A member does not preaccept, accept or promise a command again that it executed, or knows to be decided otherwise.
func TestDecisionsStay(t *testing.T) {
	r := NewReplica(1, nil, &Index{}, "")
	id := ID{2, 1}
	require.NotNil(t, r.Decide(id, Value{}))
	require.Nil(t, r.Decide(id, Value{Command: newCommand(1)}))
	require.Nil(t, r.PreAccept(id, newCommand(1)))
	require.Nil(t, r.Accept(id, 512, Value{Command: newCommand(1)}))
	_, report := r.Promise(id, 256)
	require.Equal(t, Decided, report.Phase)
	r.Execute(id)
	require.True(t, r.Executed(id))
	require.Nil(t, r.Record(id))
	rec, _ := r.Promise(id, 512)
	require.Nil(t, rec)
}

// New commands depend on a no-op only until it was executed and the index was pruned. Until then, what a member
// accepted as a no-op, without knowing the command, interferes with everything.
func TestNoopsAreForgotten(t *testing.T) {
	r := NewReplica(1, nil, &Index{}, "")
	r.Accept(ID{2, 1}, 256, Value{})
	require.Equal(t, Vector{0, 1}, r.Propose(newCommand(7)).Command.First)
	r.Decide(ID{2, 1}, Value{})
	r.Execute(ID{2, 1})
	r.Prune()
	require.NoError(t, r.Check())
	require.True(t, r.Propose(newCommand(8)).Command.First.Equal(Vector{1}))
	require.True(t, r.Propose(newCommand(7)).Command.First.Equal(Vector{2}))
}

// An answer lists a limited number of contradicting commands, and a waiting recovery asks again.
func TestMoreContradictsThanFits(t *testing.T) {
	r := NewReplica(3, nil, &Index{}, "")
	var others []*Record
	for n := range uint64(maxAgainst + 1) {
		others = append(others, r.PreAccept(ID{2, n + 1}, newCommand(1)))
	}
	id, cmd := ID{1, 1}, newCommand(1)
	rec, report := r.Promise(id, 259)
	require.NotNil(t, rec)
	rc := Recover(id, 259, SizeOf(5), "")
	rc.Promised(report)
	rc.Promised(Report{From: 4, Phase: Preaccepted, Value: Value{cmd, Vector{}}})
	action, v := rc.Promised(Report{From: 2, Phase: Preaccepted, Value: Value{cmd, Vector{}}})
	require.Equal(t, Validate, action)
	require.NoError(t, rc.check())

	_, against := r.Validate(id, 259, v.Command)
	require.Len(t, against.Open, maxAgainst)
	require.True(t, against.More)
	rc.Validated(3, against)
	rc.Validated(2, Against{})
	action, _ = rc.Validated(4, Against{})
	require.Equal(t, Wait, action)
	require.True(t, rc.RulesOutFast())
	action = Nothing
	for _, other := range others[:maxAgainst] { // each is decided, and depends on the waiting command
		require.Equal(t, Nothing, action)
		action, _ = rc.Learned(other.ID, Value{other.Command, Vector{1, other.ID.Number - 1}})
		require.NoError(t, rc.check())
	}
	require.Equal(t, Validate, action)
	_, against = r.Validate(id, 259, v.Command)
	require.Equal(t, ID{2, 1}, against.Open[0], "this member was not told")
	rc.Validated(3, Against{Open: []ID{others[maxAgainst].ID}})
	rc.Validated(2, Against{})
	rc.Validated(4, Against{})
	action, _ = rc.Learned(others[maxAgainst].ID, Value{others[maxAgainst].Command, Vector{0, maxAgainst}})
	require.Equal(t, Propose, action)
	require.True(t, rc.Over())
}

// The fast path ends when answers differ, or when it is late; it needs the proposer's own answer.
func TestPathsOfAnOpening(t *testing.T) {
	open := func() (*Opening, Vector) {
		r := NewReplica(1, nil, &Index{}, "")
		rec := r.Propose(newCommand(1))
		return Open(rec, SizeOf(7), ""), rec.Deps
	}
	o, first := open()
	for c := Column(2); c <= 6; c++ {
		action, _ := o.Answer(c, first)
		require.Equal(t, Nothing, action, "without the proposer")
	}
	action, v := o.Answer(1, first)
	require.Equal(t, Decide, action)
	require.True(t, v.Deps.Equal(first))

	o, first = open()
	o.Answer(1, first)
	o.Answer(2, first)
	o.Answer(2, first)
	o.Answer(3, first)
	action, _ = o.Late()
	require.Equal(t, Nothing, action, "three of seven are no quorum")
	action, _ = o.Answer(4, Vector{0, 0, 9})
	require.Equal(t, Propose, action)
	action, _ = o.Late()
	require.Equal(t, Nothing, action, "once is enough")

	o, first = open()
	for c := Column(1); c <= 4; c++ {
		action, _ = o.Answer(c, first)
		require.Equal(t, Nothing, action)
	}
	action, v = o.Late()
	require.Equal(t, Propose, action)
	require.True(t, v.Deps.Equal(first))
}
