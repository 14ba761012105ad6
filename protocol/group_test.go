package protocol

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func batchOf(member MemberID, seq uint64, commands ...string) Entry {
	e := Entry{Kind: EntryBatch, ID: ProposalID{Session{member, 1}, seq}, Low: seq, Count: uint32(len(commands))}
	for _, c := range commands {
		e.Payload = AppendCommand(e.Payload, []byte(c))
	}
	e.SealPayload()
	e.Seal(0, 0, make([]byte, HeadSize))
	return e
}

// sealedGroup is a group in a log, as it is read from there.
func sealedGroup(t *testing.T, batches ...Entry) Entry {
	e := NewGroup(batches)
	e.Seal(5, 1, make([]byte, HeadSize))
	read, rest, err := DecodeEntry(append(append([]byte(nil), e.Head()...), e.Payload...), true)
	require.NoError(t, err)
	require.Empty(t, rest)
	return read
}

func TestAGroupHoldsAnyNumberOfBatches(t *testing.T) {
	placed := batchOf(2, 4, "c", "d", "")
	placed.Seal(9, 9, make([]byte, HeadSize)) // where it stood before means nothing
	in := []Entry{batchOf(1, 7, "a", "b"), batchOf(3, 1), placed}
	for n := range len(in) + 1 {
		e := sealedGroup(t, in[:n]...)
		require.NoError(t, e.CheckGroup())
		require.ErrorAs(t, e.CheckProposal(), new(*CorruptError), "only cores make groups")
		require.Equal(t, [...]uint64{1, 2, 2, 5}[n], e.Width())
		out, err := e.Batches(nil)
		require.NoError(t, err)
		require.Len(t, out, n)
		for i := range out {
			require.Equal(t, in[i].ID, out[i].ID)
			require.Equal(t, in[i].Low, out[i].Low)
			require.Equal(t, in[i].Payload, out[i].Payload)
			require.Zero(t, out[i].Index)
		}
	}
}

func TestWhatIsNoGroup(t *testing.T) {
	skip := NewSkip(5)
	withBody := entryWith(0, 1, FormWhole, []byte("body"))
	for _, e := range []Entry{NewGroup([]Entry{skip}), NewGroup([]Entry{withBody}),
		{Kind: EntryGroup, Payload: []byte("no batch")}} {
		require.ErrorAs(t, e.CheckGroup(), new(*CorruptError))
	}
	e := NewGroup([]Entry{batchOf(1, 1, "a")})
	e.Count++
	require.ErrorContains(t, e.CheckGroup(), "it holds 1 commands, not 2")
	bad := batchOf(1, 1, "a")
	bad.Payload[0] = 9
	e = NewGroup([]Entry{bad})
	require.ErrorContains(t, e.CheckGroup(), "1 commands end after")

	e = NewGroup([]Entry{batchOf(1, 1, "a"), batchOf(1, 2, "b")})
	e.BodySize, e.K = 4, 1
	require.ErrorContains(t, e.CheckGroup(), "it holds 2 batches and a body")
	e = NewGroup([]Entry{batchOf(1, 1, "a", "b")})
	e.BodySize, e.K = 4, 1
	require.ErrorContains(t, e.CheckGroup(), "2 commands with 4 bytes and a body of 4")
	e = Entry{Kind: EntryGroup, Count: 1, Payload: append(bodied("a", "body").Head(), 1, 'a')}
	require.ErrorContains(t, e.CheckGroup(), "it holds a batch with a body of 4 bytes")
}

func bodied(command, body string) *Entry {
	e := batchOf(1, 7, command)
	e.Body = []byte(body)
	e.SealPayload()
	e.K = 2
	e.Seal(3, 0, make([]byte, HeadSize))
	return &e
}

// A group of one batch has its body. Its signal means that body too, in whatever form it is held.
func TestGroupWithABody(t *testing.T) {
	lane := Lane{Member: 1, Incarnation: 9}
	whole := bodied("a", "body")
	group := NewRange(lane, []Entry{*whole})
	group.Seal(5, 2, make([]byte, HeadSize))
	require.NoError(t, group.CheckGroup())
	decoded, rest, err := DecodeEntry(append(append([]byte(nil), group.Head()...), group.Payload...), true)
	require.NoError(t, err)
	require.Empty(t, rest)
	batches, err := decoded.Batches([]Entry{batchOf(2, 2, "of another group")})
	require.NoError(t, err)
	require.Len(t, batches, 2)
	got := &batches[1]
	require.Equal(t, [4]any{whole.ID, uint8(2), whole.BodySize, whole.BodyDigest},
		[4]any{got.ID, got.K, got.BodySize, got.BodyDigest})
	require.Equal(t, FormNone, got.Form)

	signal := NewSignal(&group)
	require.Zero(t, signal.BodySize)
	row := *whole
	row.Form, row.Body = RowForm(1), []byte("dy")
	made := NewRange(lane, []Entry{row})
	require.True(t, signal.Means(&made))
	require.Equal(t, group.Head(), made.Head())
	require.Equal(t, RowForm(1), made.Form)
	for _, other := range []func(*Entry){
		func(e *Entry) {
			e.K = 3
		}, func(e *Entry) { e.BodyDigest++ }, func(e *Entry) { e.BodySize++ }, func(e *Entry) { e.K, e.BodySize = 0, 0 },
	} {
		wrong := row
		other(&wrong)
		made := NewRange(lane, []Entry{wrong})
		require.False(t, signal.Means(&made))
	}
}

// What is no group is refused and does no harm. What is one can be made again of its batches.
func FuzzGroup(f *testing.F) {
	e := NewGroup([]Entry{batchOf(1, 7, "a", "b"), batchOf(3, 1), batchOf(2, 4, "c")})
	f.Add(e.Payload, e.Count)
	f.Add([]byte(nil), uint32(0))
	f.Fuzz(func(t *testing.T, payload []byte, count uint32) {
		e := Entry{Kind: EntryGroup, Payload: payload, Count: count}
		if err := e.CheckGroup(); err != nil {
			require.True(t, errors.As(err, new(*CorruptError)), err)
			return
		}
		batches, err := e.Batches(nil)
		require.NoError(t, err)
		again := NewGroup(batches)
		require.Equal(t, count, again.Count)
		require.Len(t, again.Payload, len(payload))
		require.NoError(t, again.CheckGroup())
	})
}

// Notes stand between batches, and only who asks for them sees them.
func TestNotesOfAGroup(t *testing.T) {
	read := func(e Entry) (ids []ProposalID, notes []string) {
		require.NoError(t, e.CheckGroup())
		batches, err := e.Batches(nil)
		require.NoError(t, err)
		for i := range batches {
			ids = append(ids, batches[i].ID)
		}
		said, err := e.Notes()
		require.NoError(t, err)
		for _, note := range said {
			notes = append(notes, string(note))
		}
		return ids, notes
	}
	a, b := batchOf(1, 1, "a", "b"), batchOf(2, 1, "c")
	alone := NewNotedGroup([]byte("nothing"), nil)
	both := NewNotedGroup([]byte("two"), []Entry{a, b})
	ids, notes := read(alone)
	require.Empty(t, ids)
	require.Equal(t, []string{"nothing"}, notes)

	joined := JoinGroups([]Entry{alone, both, NewGroup([]Entry{a}), alone})
	joined.Seal(5, 1, make([]byte, HeadSize))
	require.Equal(t, uint32(5), joined.Count)
	ids, notes = read(joined)
	require.Equal(t, []ProposalID{a.ID, b.ID, a.ID}, ids)
	require.Equal(t, []string{"nothing", "two", "nothing"}, notes)
	_, err := (&Entry{Kind: EntryGroup, Payload: []byte("no group")}).Notes()
	require.ErrorAs(t, err, new(*CorruptError))
}
