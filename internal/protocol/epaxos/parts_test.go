package epaxos

import (
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

func TestSizes(t *testing.T) {
	for voters, want := range map[int][2]int{1: {1, 1}, 2: {2, 2}, 3: {2, 2}, 4: {3, 3}, 5: {3, 3}, 6: {4, 4}, 7: {4, 5}} {
		s := SizeOf(voters)
		require.Equal(t, want, [2]int{s.Quorum(), s.Fast()}, "%d voters", voters)
	}
	for voters := 1; voters <= 255; voters++ {
		s := SizeOf(voters)
		require.GreaterOrEqual(t, voters, max(2*s.Slow+s.Failing-1, 2*s.Failing+1))
		require.LessOrEqual(t, s.Slow, s.Failing)
		require.Positive(t, s.unchanged(s.Quorum()))
		require.Less(t, voters, 2*s.Failing+3)
	}
}

func TestTouches(t *testing.T) {
	require.Empty(t, TouchesOf(nil))
	require.Equal(t, Touches{3, 7}, TouchesOf([]uint64{7, 3, 7 + Classes}))
	require.True(t, Touches{1, 5}.Interfere(Touches{2, 5}))
	require.False(t, Touches{1, 5}.Interfere(Touches{2, 6}))
	require.True(t, Touches{1}.Interfere(nil))
}

// The index agrees with a search of all commands, before and after a snapshot.
func TestIndexFindsWhatInterferes(t *testing.T) {
	type known struct {
		id       ID
		touches  Touches
		executed bool
	}
	random := rand.New(rand.NewPCG(5, 6))
	for range 30 {
		x, all := &Index{}, []known{}
		for n := range uint64(60) {
			k := known{ID{Column(1 + random.IntN(3)), n + 1}, nil, random.IntN(2) == 0}
			if random.IntN(8) > 0 {
				k.touches = TouchesOf([]uint64{uint64(random.IntN(6)), uint64(random.IntN(6))})
			}
			all = append(all, k)
			x.Know(k.id, k.touches)
			if k.executed {
				x.Execute(k.id, k.touches)
			}
			require.NoError(t, x.check())
		}
		search := func(executed bool, touches Touches) (v Vector) {
			for _, k := range all {
				if k.touches.Interfere(touches) && (k.executed || !executed) {
					v = v.raise(k.id)
				}
			}
			return v
		}
		again, err := RestoreIndex(x.AppendExecuted(nil))
		require.NoError(t, err)
		tidy := *x
		tidy.Prune()
		for _, touches := range []Touches{nil, {1}, {2, 4}, {5}, {99}} {
			require.True(t, x.Deps(ID{9, 7}, touches).Equal(search(false, touches).own(ID{9, 7})))
			require.True(t, x.Executed(touches).Equal(search(true, touches)))
			for _, y := range []*Index{again, &tidy} {
				require.True(t, y.Deps(ID{9, 1}, touches).Equal(search(true, touches)))
			}
		}
	}
	_, err := RestoreIndex([]byte{1, 5})
	require.Error(t, err)
}

// An index fits into a snapshot's section even if seven members touched every class.
func TestIndexFitsASection(t *testing.T) {
	x := &Index{}
	for class := range uint16(Classes) {
		for c := Column(1); c <= 7; c++ {
			x.Execute(ID{c, 1<<28 + uint64(class)}, Touches{class})
		}
	}
	require.Less(t, len(x.AppendExecuted(nil)), 256<<10)
}

func sealed(payload string) protocol.Entry {
	e := protocol.Entry{Kind: protocol.EntryBatch,
		ID: protocol.ProposalID{Session: protocol.Session{Member: 2, Incarnation: 3}, Seq: 4}, Count: 1,
		Payload: protocol.AppendCommand(nil, []byte(payload))}
	e.SealPayload()
	e.Seal(5, 6, make([]byte, protocol.HeadSize))
	return e
}

func TestRecordsComeBack(t *testing.T) {
	id := ID{3, 301}
	cmd := &Command{Entry: NewEntry(id, Touches{3, 4000}, []protocol.Entry{sealed("hello")}), Touches: Touches{3, 4000},
		First: Vector{1, 0, 300}}
	for _, rec := range []Record{
		{ID: ID{1, 1}},
		{ID: ID{2, 1 << 40}, Promised: 515},
		{ID: id, Phase: Preaccepted, Command: cmd, Begun: true, Deps: Vector{7, 0, 300}},
		{ID: id, Phase: Accepted, Promised: 259, Ballot: 258, Noop: true},
		{ID: id, Phase: Decided, Command: cmd, Deps: Vector{1, 0, 300}},
	} {
		b := rec.Append(nil)
		again, err := DecodeRecord(b)
		require.NoError(t, err)
		require.Equal(t, b, again.Append(nil))
		require.Equal(t, rec.ID, again.ID)
		require.Equal(t, rec.Phase, again.Phase)
		require.Equal(t, rec.Value().Command == nil, again.Value().Command == nil)
		require.True(t, rec.Deps.Equal(again.Deps))
		for cut := range len(b) {
			_, err := DecodeRecord(b[:cut])
			require.Error(t, err)
		}
	}
}

func wholePart() *Part {
	return &Part{
		ID: ID{3, 301}, Ballot: 515, Accepted: 258, Phase: Accepted, Known: true, More: true,
		Deps: Vector{7, 0, 300}, First: Vector{1}, Open: []ID{{1, 2}, {2, 9}},
	}
}

// The encoding is fixed: a change breaks this test.
func TestPartsAreEncodedAsEver(t *testing.T) {
	require.Equal(t, "020a03ad0283048202030700ac020101 0201020209", spaced(hex.EncodeToString(wholePart().Append(nil))))
	require.Equal(t, "command 3:301 ballot 2.3 accepted 1.2 accepted depends on 1:7 3:300 at first on 1:1 "+
		"after [1:2 2:9] and more",
		describe(&protocol.Message{Type: MsgPromise, Part: wholePart()}))
}

func spaced(s string) string { return s[:32] + " " + s[32:] }

// Whatever decodes encodes to the same bytes, and nothing panics.
func FuzzParts(f *testing.F) {
	f.Add(wholePart().Append(nil))
	f.Add((&Part{ID: ID{1, 1}}).Append(nil))
	f.Add([]byte{0, 0, 1, 0x81, 0x00, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decode(MsgPromise, b)
		if err == nil {
			require.Equal(t, b, m.Part.Append(nil))
		}
		if rec, err := DecodeRecord(b); err == nil {
			require.Equal(t, b, rec.Append(nil))
		}
	})
}
