package body

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// unreadBodies holds one body, which its disk fails to read.
type unreadBodies struct{ ref protocol.BodyRef }

func (u unreadBodies) Find(uint32, uint64) (wal.Body, bool) {
	b := member.BodyRecord(u.ref, protocol.FormWhole, nil).Body
	return *b, true
}
func (unreadBodies) Durable(uint32, uint64) bool { return true }
func (unreadBodies) Read(uint32, uint64) (wal.Body, error) {
	return wal.Body{}, &wal.ReadError{Op: "read", File: "f", Err: errUnreadable}
}
func (unreadBodies) Each(func(wal.Body) bool) {}
func (unreadBodies) Release(uint32, uint64)   {}

// unreadWorld is what surrounds them.
type unreadWorld struct {
	BodyWorld
	inbox *BodyInbox
	sent  []*protocol.Message
}

func (w *unreadWorld) Now() time.Duration         { return time.Minute }
func (w *unreadWorld) Inbox(f func(i *BodyInbox)) { f(w.inbox) }
func (w *unreadWorld) Send(m *protocol.Message) bool {
	w.sent = append(w.sent, m)
	return true
}

// TestABodyThatCannotBeReadIsNotMissing: a member whose disk fails to read does not say that it holds
// nothing. Otherwise a body that can be read a moment later would count as lost by the word of all members.
func TestABodyThatCannotBeReadIsNotMissing(t *testing.T) {
	ref := protocol.BodyRef{Instance: 1, Index: 3, Term: 1, K: 1, Size: 9}
	w := &unreadWorld{inbox: NewBodyInbox(BodyLimits{Asks: 9})}
	a := NewBodyAccess(BodyConfig{Self: 1}, unreadBodies{ref}, w)
	a.Serve(&protocol.Message{Type: protocol.MsgFetch, Instance: 1, From: 2, To: 1, Context: 7,
		Holdings: []protocol.Holding{{Index: 3, Term: 1, Form: protocol.FormWhole}}})
	require.Empty(t, w.sent, "it is asked again")

	var answer Answer
	a.Fetch(ref, func(got Answer) { answer = got })
	mail := w.inbox.Take()
	require.Len(t, mail.asks, 1)
	mail.asks[0].done(Answer{Ref: ref, Err: &BodyError{Ref: ref, Need: 1, Asked: 2, Answered: 2}})
	var lost *BodyError
	require.ErrorAs(t, answer.Err, &lost)
	require.False(t, lost.Certain(), "this member may have it")
	require.ErrorIs(t, answer.Err, errUnreadable)
	mail.asks[0].done(Answer{Ref: ref, Body: []byte("body")})
	require.NoError(t, answer.Err)
	require.Equal(t, "body", string(answer.Body))
	mail.asks[0].done(Answer{Ref: ref, Err: errors.New("it stops")})
	require.EqualError(t, answer.Err, "it stops")
}
