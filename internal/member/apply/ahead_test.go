package apply

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// What the log says of a command is not true of a state that is further than the log: it may be of another one. So no
// one reads by a token, and no command is proposed after it, before the log has come there.
func TestATokenIsNotAppliedInAStateOfPerhapsAnotherLog(t *testing.T) {
	a := newTestApplier(&membertest.History{}, member.Meta{}, 2, nil)
	a.session = membertest.LaterSession
	token := protocol.Token{Session: membertest.Session, Seq: 1}
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{membertest.EntryOf(1, membertest.Sealed(1, "a"))}}))
	require.Equal(t, member.TokenApplied, a.sessions.Token(token))
	require.Equal(t, member.TokenPending, a.Token(token))
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{membertest.EntryOf(2, membertest.Sealed(2, "b"))}}))
	require.Equal(t, member.TokenApplied, a.Token(token))
}

// A state that is further than what is known to be decided is given to others if the log, as it was found, leads there:
// perhaps nothing is decided before they have it. One that is further than the log is not.
func TestAStateThatItsLogLeadsToIsGiven(t *testing.T) {
	for _, within := range []bool{false, true} {
		meta := member.Meta{Cursor: order.Begin(1, false)}
		a := NewApplier(&membertest.History{}, meta, membertest.Session, 5, nil)
		a.Within = within
		p := NewApply(a, meta.Cursor, 1<<20, &notes{})
		var shown error
		require.NoError(t, p.Do(&ApplyItem{View: func(v StateView) { shown = v.Err }}))
		if within {
			require.NoError(t, shown)
			continue
		}
		require.ErrorAs(t, shown, new(*member.NoStateError))
	}
}
