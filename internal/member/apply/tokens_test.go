package apply

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/protocol"
)

// tokenOf is the token of a command of the test's session.
func tokenOf(seq uint64) protocol.Token { return protocol.Token{Session: membertest.Session, Seq: seq} }

// What a member knows of a token is what it knows of the proposal: a command that will never take
// effect is not waited for either.
func TestWhatIsKnownOfAToken(t *testing.T) {
	s := NewSessions(nil)
	token := func(member, life, seq uint64) member.TokenState {
		return s.Token(protocol.Token{Session: protocol.Session{Member: protocol.MemberID(member), Incarnation: life},
			Seq: seq})
	}
	require.Equal(t, member.TokenUnknown, token(1, 2, 1))
	require.True(t, s.Admit(1, proposal(1, 2, 1, 1, 2)))
	require.True(t, s.Admit(1, proposal(1, 2, 6, 5, 1)))
	require.Equal(t, member.TokenApplied, token(1, 2, 2))
	require.Equal(t, member.TokenApplied, token(1, 2, 4), "settled without effect")
	require.Equal(t, member.TokenPending, token(1, 2, 5), "in a gap")
	require.Equal(t, member.TokenApplied, token(1, 2, 6))
	require.Equal(t, member.TokenPending, token(1, 2, 7))
	require.Equal(t, member.TokenApplied, token(1, 1, 7), "a life that is over")
	require.Equal(t, member.TokenPending, token(1, 3, 1), "a life that may come")
	require.Equal(t, member.TokenUnknown, token(2, 1, 1))

	shared := func(life uint64) protocol.Session { return protocol.NewSession(1, protocol.LogID{}, life, true) }
	entry := func(life, seq, low uint64) *protocol.Entry {
		return &protocol.Entry{Kind: protocol.EntryBatch, Count: 1, Low: low,
			ID: protocol.ProposalID{Session: shared(life), Seq: seq}}
	}
	require.True(t, s.Admit(1, entry(3, 2, 1)))
	require.Equal(t, member.TokenApplied, s.Token(protocol.Token{Session: shared(3), Seq: 2}))
	require.Equal(t, member.TokenApplied, token(1, 2, 7), "a shared session has replaced it")
	require.True(t, s.Admit(1, entry(4, 1, 0)))
	require.Equal(t, member.TokenPending, s.Token(protocol.Token{Session: shared(3), Seq: 3}), "a life that is not over")
}

// tokenWorld is a member's proposals and what it has applied.
type tokenWorld struct {
	*testing.T
	p       intake.Proposals
	q       intake.ClientQueue // of a client that does not wait for answers
	results map[string]error
	a       *Applier
	at      *Applied
	index   protocol.Index
	looks   int
	time    time.Duration
}

func newTokenWorld(t *testing.T) *tokenWorld {
	w := &tokenWorld{T: t, p: intake.Proposals{MaxBatch: 100, MaxBytes: 1000}, results: map[string]error{}}
	w.p.Free, w.p.Held = func(b *intake.Batch) { w.p.Settled(w.now(), b) }, func() { w.looks++ }
	w.q = intake.ClientQueue{Proposals: &w.p, Free: w.settled}
	w.a = newTestApplier(&membertest.History{}, member.Meta{Config: protocol.Config{Removed: []protocol.MemberID{9}}}, 0,
		nil)
	w.at = NewApplied(w.a)
	return w
}

func (w *tokenWorld) now() time.Duration { return w.time }

// settled lets the next batch of the client in.
func (w *tokenWorld) settled(b *intake.Batch) {
	_, unproposed, err := w.q.Settled(w.now, b)
	for _, b := range unproposed {
		b.Fail(err)
	}
	require.NoError(w, w.q.Check())
}

// add adds a command of the client.
func (w *tokenWorld) add(name string) {
	_, err := w.q.Add(w.now, []byte(name), func(_ any, err error) { w.results[name] = err })
	require.NoError(w, err)
}

// apply applies commands from one number on, and lets in what waited for that.
func (w *tokenWorld) apply(seq uint64, names ...string) (told []*intake.TokenRead) {
	w.index++
	b := intake.NewBatch(0, 0, 0)
	for _, name := range names {
		b.Add([]byte(name), nil)
	}
	b.Seal(membertest.Session, seq, 1)
	require.NoError(w, w.a.Apply(intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{membertest.EntryOf(w.index, b)}}))
	_, _, told, _ = w.at.Note(w.a)
	w.p.Applied(w.time, w.a.Token)
	require.NoError(w, w.p.Check())
	require.NoError(w, w.at.Check())
	return told
}

func (w *tokenWorld) after(to interface {
	AddWith(func() time.Duration, []byte, *protocol.ProposeOptions, intake.Done) (bool, error)
}, name string, wait time.Duration, tokens ...protocol.Token) error {
	_, err := to.AddWith(w.now, []byte(name), &protocol.ProposeOptions{After: tokens, Wait: wait},
		func(_ any, err error) { w.results[name] = err })
	return err
}

func (w *tokenWorld) taken() (commands []string) {
	for b := w.p.Take(); b != nil; b = w.p.Take() {
		for rest := b.Entry.Payload; len(rest) > 0; {
			command, next, err := protocol.NextCommand(rest)
			require.NoError(w, err)
			commands, rest = append(commands, string(command)), next
		}
		b.Settle(0, make([]member.Command, len(b.Done)))
	}
	return commands
}

// A command with tokens waits until all their commands are applied. Those without do not wait for it,
// and it shares a batch with others when it is let in.
func TestCommandsWaitForTokens(t *testing.T) {
	w := newTokenWorld(t)
	require.NoError(t, w.after(&w.p, "x", 0, tokenOf(1), tokenOf(3)))
	require.Equal(t, 1, w.looks)
	require.True(t, w.p.Awaits())
	w.add2("a")
	require.Equal(t, []string{"a"}, w.taken())
	w.apply(3, "third")
	require.Empty(t, w.taken())
	w.add2("b")
	w.apply(1, "first", "second")
	require.False(t, w.p.Awaits())
	b := w.p.Take()
	require.EqualValues(t, 2, b.Entry.Count)
	b.Settle(0, make([]member.Command, 2))
	require.NoError(t, w.after(&w.p, "y", 0, tokenOf(2)))
	w.apply(4, "fourth")
	require.Equal(t, []string{"y"}, w.taken())
	require.Zero(t, w.p.Bytes())
	require.Len(t, w.results, 4)
}

func (w *tokenWorld) add2(name string) {
	_, err := w.p.Add(w.now, []byte(name), func(_ any, err error) { w.results[name] = err })
	require.NoError(w, err)
}

// Bodies and accepted commands wait too, with what else they ask for.
func TestOptionsOfCommandsThatWait(t *testing.T) {
	w := newTokenWorld(t)
	w.p.Proposing = membertest.Keyed
	o := membertest.EarlyAnswer
	o.After = []protocol.Token{tokenOf(1)}
	b := intake.NewBodyBatch([]byte("body"), make([]byte, 100), func(any, error) {})
	require.NoError(t, w.p.SetOptions(b, &o))
	_, err := w.p.AddBody(w.now, b)
	require.NoError(t, err)
	_, err = w.p.AddWith(w.now, []byte("x"), &o, func(any, error) {})
	require.NoError(t, err)
	require.Nil(t, w.p.Take())
	w.apply(1, "first")
	for range 2 {
		b := w.p.Take()
		require.Equal(t, protocol.ModeAccepted, b.Mode())
		require.Empty(t, b.Options.After)
		b.Settle(0, make([]member.Command, 1))
	}
	require.Zero(t, w.p.Bytes())
}

// A core that uses tokens gets them. Nothing waits then.
func TestACoreMayUseTokens(t *testing.T) {
	w := newTokenWorld(t)
	w.p.Proposing.Tokens = true
	require.NoError(t, w.after(&w.p, "x", 0, tokenOf(1)))
	require.False(t, w.p.Awaits())
	require.Equal(t, []protocol.Token{tokenOf(1)}, w.p.Take().Options.After)
}

// Commands of a client keep their order, so those behind a command that waits wait too.
func TestAClientsCommandsWaitInOrder(t *testing.T) {
	w := newTokenWorld(t)
	w.add("a")
	require.NoError(t, w.after(&w.q, "x", 0, tokenOf(1)))
	w.add("b")
	w.add2("other")
	require.Equal(t, []string{"a", "other"}, w.taken())
	w.apply(1, "first")
	require.Equal(t, []string{"x", "b"}, w.taken())
	require.Zero(t, w.p.Bytes())
	require.NoError(t, w.q.Check())
}

// Nothing waits forever, and what was not let in in time is certainly not proposed.
func TestTokensThatDoNotCome(t *testing.T) {
	w := newTokenWorld(t)
	w.time = time.Second
	require.NoError(t, w.after(&w.p, "soon", time.Minute, tokenOf(1)))
	require.NoError(t, w.after(&w.p, "late", 0,
		protocol.Token{Session: protocol.Session{Member: 9, Incarnation: 1}, Seq: 1}))
	require.NoError(t, w.after(&w.q, "client", 0,
		protocol.Token{Session: protocol.Session{Member: 5, Incarnation: 1}, Seq: 1}))
	w.add("behind")
	w.time += time.Minute
	w.apply(1, "first")
	require.Empty(t, w.taken(), "its time is over")
	fail := func() {
		for _, b := range w.p.Expired(w.time, time.Hour) {
			b.Fail(b.Abandoned())
		}
	}
	fail()
	require.Equal(t, &member.TokenError{Token: tokenOf(1), State: member.TokenPending}, w.results["soon"],
		"as it was looked at last")
	w.time += time.Hour
	fail()
	var gone, unknown *member.TokenError
	require.ErrorAs(t, w.results["late"], &gone)
	require.Equal(t, member.TokenGone, gone.State)
	require.ErrorAs(t, w.results["client"], &unknown)
	require.Equal(t, member.TokenUnknown, unknown.State)
	require.Contains(t, unknown.Error(), "5-1-1")
	require.ErrorAs(t, w.results["behind"], new(*intake.BrokenError))
	require.Zero(t, w.p.Bytes())
	require.Error(t, w.after(&w.p, "x", 0, protocol.Token{}), "nobody gives such a token")

	require.NoError(t, w.after(&w.p, "stopped", 0, tokenOf(7)))
	for _, b := range w.p.Close(member.ErrStopped) {
		b.Fail(member.ErrStopped)
	}
	require.ErrorIs(t, w.results["stopped"], member.ErrStopped)
	require.Zero(t, w.p.Bytes())
}

// Readers wait for tokens too, until some time at most, and within a limit of bytes.
func TestReadersWaitForTokens(t *testing.T) {
	w := newTokenWorld(t)
	results := map[string]error{}
	read := func(name string, until time.Duration, tokens ...protocol.Token) *intake.TokenRead {
		r := intake.NewTokenRead(tokens, until, func(err error) { results[name] = err })
		require.NoError(t, w.at.AwaitTokens(r))
		require.NoError(t, w.at.Check())
		return r
	}
	both, first, lost := read("both", math.MaxInt64, tokenOf(1), tokenOf(2)), read("first", math.MaxInt64, tokenOf(1)),
		read("lost", 10, tokenOf(3))
	left := read("left", 10, tokenOf(3))
	require.Equal(t, []*intake.TokenRead{first}, w.apply(1, "a"))
	require.Empty(t, w.at.ExpiredTokens(9))
	require.True(t, w.at.AbandonTokens(left))
	require.False(t, w.at.AbandonTokens(left))
	require.Equal(t, []*intake.TokenRead{lost}, w.at.ExpiredTokens(10))
	require.Equal(t, &member.TokenError{Token: tokenOf(3), State: member.TokenPending}, lost.Err())
	require.Equal(t, []*intake.TokenRead{both}, w.apply(2, "b"))
	require.Zero(t, w.at.tokens.bytes)

	many := make([]protocol.Token, maxTokenBytes/intake.TokenBytes)
	for i := range many {
		many[i] = tokenOf(9)
	}
	r := read("many", 10, many...)
	require.ErrorIs(t, w.at.AwaitTokens(intake.NewTokenRead(many[:1], 10, nil)), member.ErrOverloaded)
	require.True(t, w.at.AbandonTokens(r))
	require.Equal(t, &member.TokenError{Token: tokenOf(9), State: member.TokenPending}, r.Err())
}
