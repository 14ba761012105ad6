package body

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

func noLoad(protocol.InstanceID, *protocol.Entry) error { return nil }

// sent encodes an entry as it is sent, and decodes it again.
func sent(t *testing.T, e protocol.Entry) protocol.Entry {
	e.Seal(e.Index, e.Term, make([]byte, protocol.HeadSize))
	m := &protocol.Message{Type: membertest.MsgLog, Entries: []protocol.Entry{e}}
	frame := append(append(m.AppendHead(nil), e.Head()...), e.Payload...)
	frame = append(e.AppendBodyHead(frame), e.Body...)
	got, err := protocol.DecodeMessage(frame, membertest.Codec)
	require.NoError(t, err)
	return got.Entries[0]
}

func TestEntriesAreCutForTheirReceivers(t *testing.T) {
	for _, size := range []int{1, 2, 7, 1000} {
		for _, k := range []uint8{2, 3} {
			body := someBody(size)
			ref := refTo(5, k, body)
			for r := range uint8(6) {
				form := protocol.RowForm(r)
				whole := Fragment{protocol.FormWhole, body}
				want, err := whole.Cut(k, form)
				require.NoError(t, err)
				onDisk, empty := newHeld(), newHeld()
				onDisk.put(ref, protocol.FormWhole, body)
				rowOnDisk := newHeld()
				rowOnDisk.put(ref, form, body)
				for name, from := range map[string]struct {
					body []byte
					disk *heldBodies
				}{"at hand": {body, empty}, "on disk": {nil, onDisk}, "the row on disk": {nil, rowOnDisk},
					"cut before": {want, empty}} {
					e := committedEntry(ref, form)
					e.Body = from.body
					require.NoError(t, MakeResident(1, &e, false, noLoad, from.disk), "%s, %d bytes, k=%d, %s", name, size, k, form)
					require.Equal(t, want, e.Body, "%s, %d bytes, k=%d, %s", name, size, k, form)
					got := sent(t, e)
					require.Equal(t, form, got.Form)
					require.Equal(t, want, got.Body)
				}
			}
		}
	}
}

func TestWhatCannotBeSentIsLeftOutOnlyIfItIsCommitted(t *testing.T) {
	body := someBody(1000)
	ref := refTo(5, 2, body)
	other, old, damaged := newHeld(), newHeld(), newHeld()
	other.put(ref, protocol.RowForm(1), body)
	old.put(refTo(5, 2, body), protocol.FormWhole, body)
	stale := old.held[5]
	stale.Term--
	old.held[5] = stale
	damaged.put(ref, protocol.FormWhole, body)
	damaged.damaged[5] = true
	for name, disk := range map[string]*heldBodies{"nothing": newHeld(), "another row": other, "another term's": old,
		"damaged": damaged} {
		for _, form := range []protocol.Form{protocol.FormWhole, protocol.RowForm(0)} {
			e := committedEntry(ref, form)
			require.Error(t, MakeResident(1, &e, false, noLoad, disk), "%s, %s", name, form)
			require.NoError(t, MakeResident(1, &e, true, noLoad, disk))
			require.Equal(t, protocol.FormNone, e.Form)
			require.Equal(t, protocol.FormNone, sent(t, e).Form)
		}
	}
	e := committedEntry(ref, protocol.FormNone)
	e.Body = body
	require.NoError(t, MakeResident(1, &e, false, noLoad, newHeld()))
	require.Empty(t, e.Body, "envelope and payload only, as was asked for")
}

func TestQuestionsAreAnsweredFromTheDisk(t *testing.T) {
	body := someBody(1000)
	ask := func(disk *heldBodies, term protocol.Term, form protocol.Form) (*protocol.Message, error) {
		return AnswerFetch(&protocol.Message{
			Type: protocol.MsgFetch, Instance: 1, From: 2, To: 1, Context: 8,
			Holdings: []protocol.Holding{{Index: 5, Term: term, Form: form}},
		}, 1, disk)
	}
	ref := refTo(5, 3, body)
	whole, row := newHeld(), newHeld()
	whole.put(ref, protocol.FormWhole, body)
	row.put(ref, protocol.RowForm(4), body)
	for _, c := range []struct {
		disk       *heldBodies
		term       protocol.Term
		form, want protocol.Form
	}{
		{whole, 3, protocol.FormWhole, protocol.FormWhole},
		{whole, 3, protocol.RowForm(1), protocol.RowForm(1)},
		{whole, 0, protocol.RowForm(4), protocol.RowForm(4)},
		{row, 3, protocol.FormWhole, protocol.RowForm(4)},
		{row, 3, protocol.RowForm(1), protocol.RowForm(4)},
	} {
		m, err := ask(c.disk, c.term, c.form)
		require.NoError(t, err)
		require.False(t, m.Reject)
		require.Equal(t, c.want, m.Holdings[0].Form)
		from := Fragment{protocol.FormWhole, body}
		want, err := from.Cut(3, c.want)
		require.NoError(t, err)
		require.Equal(t, want, m.Blob)
		require.EqualValues(t, 8, m.Context)
		overTheWire(t, m)
	}
	m, err := ask(row, 3, protocol.FormNone)
	require.NoError(t, err)
	require.False(t, m.Reject)
	require.Empty(t, m.Blob)
	require.Equal(t, protocol.RowForm(4), m.Holdings[0].Form)

	m, err = ask(row, 2, protocol.FormWhole)
	require.NoError(t, err)
	require.True(t, m.Reject, "of another term")
	m, err = ask(newHeld(), 3, protocol.FormNone)
	require.NoError(t, err)
	require.True(t, m.Reject)
	row.damaged[5] = true
	m, err = ask(row, 3, protocol.FormWhole)
	var corrupt *wal.CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.True(t, m.Reject)
	require.Empty(t, m.Blob)
}

// bodyLedger notes which bodies came with which commands.
type bodyLedger struct {
	membertest.History
	bodies []*protocol.BodyRef
}

func (l *bodyLedger) Apply(commands []member.Command) error {
	for i := range commands {
		l.bodies = append(l.bodies, commands[i].Body)
	}
	return nil
}

func TestCommandsComeWithTheirBodies(t *testing.T) {
	sm := &bodyLedger{}
	var given []protocol.BodyRef
	a := apply.NewApplier(sm, membertest.MetaAt(0, 0, 0), membertest.LaterSession, 1, noLoad)
	a.Given = func(ref protocol.BodyRef) { given = append(given, ref) }
	entry := func(i protocol.Index, seq uint64, body []byte) protocol.Entry {
		b := membertest.Sealed(seq, fmt.Sprintf("command %d", i))
		if body != nil {
			b = intake.NewBatch(0, 16, 1)
			b.Add([]byte("with a body"), func(any, error) {})
			b.SetBody(body)
			b.Seal(membertest.Session, seq, seq)
		}
		b.Entry.Seal(i, 3, make([]byte, protocol.HeadSize))
		return b.Entry
	}
	body := someBody(100)
	entries := []protocol.Entry{
		entry(1, 1, body), // the state machine's disk has it already
		entry(2, 2, nil),
		entry(3, 3, body),
		entry(4, 3, body), // proposed twice
	}
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1, Entries: entries}))
	ref := refTo(3, 1, body)
	require.Equal(t, []*protocol.BodyRef{nil, &ref}, sm.bodies)
	require.Equal(t, []protocol.BodyRef{ref}, given)

	two := entry(5, 5, body)
	two.Count = 2
	a.Malformed = func(_ protocol.InstanceID, index protocol.Index, err error) {
		require.EqualValues(t, 5, index)
		require.ErrorContains(t, err, "2 commands")
	}
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: 1, Entries: []protocol.Entry{two}}))
	require.Len(t, sm.bodies, 2, "it takes no effect")
}
