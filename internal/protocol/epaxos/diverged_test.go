package epaxos

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// TestDecisionsAreCompared: a member that receives another decision for a command that is decided here stops. The
// same decision again has no effect.
func TestDecisionsAreCompared(t *testing.T) {
	id := ID{2, 2} // waits for the first command of its column
	decided := func(v Value) *protocol.Message {
		p := valuePart(id, 0, v)
		m := &protocol.Message{Type: MsgDecided, Instance: 1, From: 2, To: 1, Part: &p}
		if v.Command != nil {
			m.Entries = []protocol.Entry{v.Command.Entry}
		}
		return m
	}
	command := func(says string) *Command {
		return &Command{Entry: NewEntry(id, nil, []protocol.Entry{sealed(says)})}
	}
	first := Value{Command: command("x"), Deps: Vector{0, 1}}
	for what, second := range map[string]struct {
		Value
		differs bool
	}{
		"the same":           {first, false},
		"a no-op":            {Value{}, true},
		"another command":    {Value{command("y"), first.Deps}, true},
		"other dependencies": {Value{first.Command, Vector{3, 1}}, true},
	} {
		var c protocol.Config
		for m := range protocol.MemberID(3) {
			c.Members = append(c.Members, protocol.Member{ID: m + 1})
		}
		c.Number()
		s, err := New(protocol.Settings{Self: 1, Instance: 1, Heartbeat: 1, ElectionTimeout: 10},
			protocol.Recovered{Base: protocol.Base{Config: c}})
		require.NoError(t, err)
		var out protocol.Effects
		s.Step(0, decided(first), &out)
		require.Equal(t, Decided, s.replica.Record(id).Phase)
		require.Nil(t, out.Diverged)
		s.Step(0, decided(second.Value), &out)
		if require.Equal(t, second.differs, out.Diverged != nil, what); second.differs {
			require.Equal(t, protocol.DivergedError{Instance: 1, From: 2, Index: 2}, *out.Diverged)
		}
	}
}
