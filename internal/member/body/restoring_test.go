package body

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// restoringWorld surrounds the Bodies of member 1. Member 2 never answers; member 3 answers from its store.
type restoringWorld struct {
	BodyWorld
	t      *testing.T
	bodies *Bodies
	kept   *Kept
	store  *heldBodies
	third  *heldBodies
	cache  *BodyCache
	mail   BodyMail
	now    time.Duration
	read   []Answer
}

func newRestoringWorld(t *testing.T, gatherBytes int64) *restoringWorld {
	w := &restoringWorld{t: t, store: newHeld(), third: newHeld(), cache: NewBodyCache(0)}
	w.kept, _ = keptOf(w.store, 1)
	w.bodies = NewBodies(NewBodyAccess(BodyConfig{
		Self: 1, Hedge: 50 * time.Millisecond, Retry: time.Second, GatherBytes: gatherBytes, Timeout: 10 * time.Second,
		Filling: 8,
	}, w.store, w))
	w.mail.config = membersWithSlots(3)
	return w
}

func (w *restoringWorld) Now() time.Duration                         { return w.now }
func (w *restoringWorld) Kept(f func(*Kept))                         { f(w.kept) }
func (w *restoringWorld) Cache(f func(*BodyCache))                   { f(w.cache) }
func (w *restoringWorld) Config(protocol.InstanceID) protocol.Config { return *membersWithSlots(3) }
func (w *restoringWorld) Memberships() []Membership                  { return nil }
func (w *restoringWorld) InLoop(_ protocol.BodyRef, f func(bool))    { f(false) }
func (w *restoringWorld) Report(BodyReport)                          {}
func (w *restoringWorld) Submit(records []wal.Record, done func()) {
	for _, r := range records {
		w.store.held[r.Body.Index] = *r.Body
	}
	done()
}

func (w *restoringWorld) Send(m *protocol.Message) bool {
	if m.To == 3 {
		answer, _ := AnswerFetch(overTheWire(w.t, m), 3, w.third)
		w.mail.answers = append(w.mail.answers, overTheWire(w.t, answer))
	}
	return true
}

// turn lets 10 ms pass.
func (w *restoringWorld) turn() {
	w.now += 10 * time.Millisecond
	mail := w.mail
	w.mail = BodyMail{}
	w.bodies.Turn(mail, true)
	require.NoError(w.t, w.bodies.Check())
}

// lack has the state refer to a body that this member does not hold.
func (w *restoringWorld) lack(ref protocol.BodyRef) {
	w.kept.Committed(1, []protocol.Entry{committedEntry(ref, protocol.FormNone)})
	w.kept.Given(ref)
}

// TestABodyThatNobodyHasDoesNotHoldUpOthers: a member that comes back with an old snapshot looks for bodies that
// all others gave up, and for others. There is room for one at a time. Readers do not wait at all.
func TestABodyThatNobodyHasDoesNotHoldUpOthers(t *testing.T) {
	w, body := newRestoringWorld(t, 1), someBody(1000)
	gone, kept, read := refTo(1, 1, body), refTo(2, 1, body), refTo(3, 1, body)
	w.third.put(kept, protocol.FormWhole, body)
	w.third.put(read, protocol.FormWhole, body)
	w.lack(gone)
	w.lack(kept)
	w.turn()
	w.mail.asks = append(w.mail.asks,
		bodyAsk{GatherRequest{Ref: read, Until: w.now + time.Second, Urgency: ToRead},
			func(a Answer) { w.read = append(w.read, a) }})
	for range 20 {
		w.turn()
	}
	require.Len(t, w.read, 1)
	require.NoError(t, w.read[0].Err)
	for w.kept.Wants(kept) {
		w.turn()
		require.Less(t, w.now, time.Minute)
	}
	require.Equal(t, 1, w.kept.Lacking())
}
