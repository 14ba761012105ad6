package raftlog

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

// dumbLog is what a Log must look like from outside.
type dumbLog struct {
	base    protocol.Index
	baseT   protocol.Term
	entries []protocol.Entry
	before  protocol.Index // the last reshape up to the base
}

func (d *dumbLog) last() protocol.Index { return d.base + protocol.Index(len(d.entries)) }

func (d *dumbLog) term(i protocol.Index) (protocol.Term, bool) {
	switch {
	case i == d.base:
		return d.baseT, true
	case i < d.base || i > d.last():
		return 0, false
	}
	return d.entries[i-d.base-1].Term, true
}

func (d *dumbLog) back(i protocol.Index, t protocol.Term) (protocol.Index, protocol.Term) {
	for i = min(i, d.last()); i > d.base; i-- {
		if have, _ := d.term(i); have <= t {
			return i, have
		}
	}
	return d.base, d.baseT
}

// shaped is the last reshape up to an entry, which is after the base.
func (d *dumbLog) shaped(last protocol.Index) protocol.Index {
	for i := last; i > d.base; i-- {
		if d.entries[i-d.base-1].Kind == protocol.EntryReshape {
			return i
		}
	}
	return d.before
}

func randomEntry(rng *rand.Rand, index protocol.Index, term protocol.Term) protocol.Entry {
	e := protocol.Entry{Kind: protocol.EntryKind(1 + rng.IntN(5))}
	switch e.Kind {
	case protocol.EntryNoop:
	case protocol.EntrySkip:
		e = protocol.NewSkip(protocol.Round(rng.Uint64()))
	case protocol.EntryReshape:
		e = protocol.NewReshape(rng.IntN(100))
		e.ID.Seq = rng.Uint64N(2)
	default:
		e.ID = protocol.ProposalID{Session: protocol.Session{Member: protocol.MemberID(rng.IntN(3)),
			Incarnation: rng.Uint64N(2)}, Seq: rng.Uint64N(1000)}
		e.Low = e.ID.Seq - rng.Uint64N(e.ID.Seq+1)
		e.Count = uint32(rng.IntN(5))
		e.Payload = bytes.Repeat([]byte{byte(index)}, rng.IntN(50))
	}
	if e.Kind == protocol.EntryBatch && rng.IntN(3) == 0 {
		e.Body = bytes.Repeat([]byte{byte(index)}, 1+rng.IntN(300))
	}
	e.SealPayload()
	if e.BodySize > 0 {
		e.K = uint8(1 + rng.IntN(3))
		setForm(&e, rng)
	}
	e.Seal(index, term, make([]byte, protocol.HeadSize))
	return e
}

// setForm draws in what form a body is held.
func setForm(e *protocol.Entry, rng *rand.Rand) {
	e.Form = protocol.FormWhole
	if d := rng.IntN(4); d == 0 {
		e.Form = protocol.FormNone
	} else if d == 1 && e.K > 1 {
		e.Form = protocol.RowForm(uint8(rng.IntN(250)))
	}
	e.Body = bytes.Repeat([]byte{byte(e.Index) ^ byte(e.Form)}, e.BodyLen())
}

// same compares what must survive packing: all but the payload, whose presence the log
// decides, except where it has to be there. The head holds every other field.
func same(want, got *protocol.Entry, durable protocol.Index) bool {
	if got.Index > durable || got.Kind == protocol.EntryConfig || len(got.Payload) > 0 {
		if !bytes.Equal(want.Payload, got.Payload) {
			return false
		}
	}
	if len(got.Body) > 0 && !bytes.Equal(want.Body, got.Body) {
		return false
	}
	return bytes.Equal(want.Head(), got.Head()) && got.K == want.K && got.Form == want.Form &&
		got.BodySize == want.BodySize && got.BodyDigest == want.BodyDigest && got.Index == want.Index &&
		got.Term == want.Term && got.ID == want.ID &&
		got.Low == want.Low && got.Count == want.Count && got.Size == want.Size && got.Digest == want.Digest &&
		got.Kind == want.Kind
}

// amendSome changes the forms of some entries with bodies, and returns the first one's index.
func amendSome(rng *rand.Rand, l *Log, d *dumbLog) protocol.Index {
	var changed []protocol.Entry
	for i := rng.IntN(len(d.entries)); i < len(d.entries) && len(changed) < 40; i += 1 + rng.IntN(30) {
		if e := &d.entries[i]; e.BodySize > 0 {
			setForm(e, rng)
			changed = append(changed, *e)
		}
	}
	l.Amend(changed)
	if len(changed) == 0 {
		return d.last() + 1
	}
	return changed[0].Index
}

func unchanged(a, b []protocol.Entry) bool {
	return slices.EqualFunc(a, b, func(x, y protocol.Entry) bool {
		return &x.Head()[0] == &y.Head()[0] && len(x.Payload) == len(y.Payload) && len(x.Body) == len(y.Body) &&
			same(&x, &y, 0)
	})
}

// The log against a plain slice; and frames that were handed out never change.
func TestLogAgainstASlice(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 3))
		limit := []int{1, 2000, 20_000, 1 << 20}[rng.IntN(4)]
		l, d := Empty(7, 2, limit), dumbLog{base: 7, baseT: 2}
		term, durable := protocol.Term(2), protocol.Index(7)
		var handed, copies [][]protocol.Entry
		for range 250 {
			switch rng.IntN(13) {
			case 4:
				if len(d.entries) > 0 && rng.IntN(3) == 0 {
					amended := amendSome(rng, &l, &d)
					l.Drop(min(durable, amended-1), d.base+protocol.Index(rng.IntN(len(d.entries)+2)))
					if amended <= d.last() {
						require.Len(t, l.At(amended).Body, l.At(amended).BodyLen(), "dropped before it is durable")
					}
				}
			case 0:
				term += protocol.Term(rng.IntN(3))
			case 1:
				if i := d.base + 1 + protocol.Index(rng.IntN(len(d.entries)+1)); rng.IntN(3) == 0 && i <= d.last() {
					l.Truncate(i)
					d.entries = d.entries[:i-d.base-1]
					durable = min(durable, i-1)
				}
			case 2:
				if i := d.base + protocol.Index(rng.IntN(len(d.entries)+1)); rng.IntN(3) == 0 {
					d.baseT, _ = d.term(i)
					d.before = d.shaped(i)
					d.entries, d.base = d.entries[i-d.base:], i
					l.Compact(i)
				}
			case 3:
				durable += protocol.Index(rng.IntN(int(d.last()-min(durable, d.last())) + 1))
				l.Drop(durable, d.base+protocol.Index(rng.IntN(len(d.entries)+2)))
			default:
				for range rng.IntN(60) {
					e := randomEntry(rng, d.last()+1, term)
					l.Append(e)
					d.entries = append(d.entries, e)
				}
			}
			require.NoError(t, l.Check())
			require.Equal(t, d.last(), l.Last)
			require.Equal(t, d.shaped(d.last()), l.Shaped())
			i, tt := protocol.Index(rng.IntN(int(d.last())+3)), protocol.Term(rng.IntN(int(term)+2))
			wantT, wantOK := d.term(i)
			gotT, gotOK := l.Term(i)
			require.Equal(t, []any{wantT, wantOK}, []any{gotT, gotOK}, "term of %d", i)
			wantI, wantT := d.back(max(i, d.base), tt)
			gotI, gotT := l.Back(max(i, d.base), tt)
			require.Equal(t, []any{wantI, wantT}, []any{gotI, gotT}, "back from %d, term %d", i, tt)
			if len(d.entries) == 0 {
				continue
			}
			lo := d.base + 1 + protocol.Index(rng.IntN(len(d.entries)))
			frame := l.Frame(lo, rng.IntN(10_000), rng.IntN(100))
			require.NotEmpty(t, frame)
			for k := range frame {
				if want := &d.entries[lo-d.base-1+protocol.Index(k)]; !same(want, &frame[k], durable) {
					t.Fatalf("seed %d: want %+v, got %+v", seed, want, &frame[k])
				}
			}
			hi := lo - 1 + protocol.Index(rng.IntN(int(d.last()-lo)+2))
			eachInARow(t, &l, &d, lo, hi, durable)
			handed, copies = append(handed, frame), append(copies, slices.Clone(frame))
		}
		for k := range handed {
			require.True(t, unchanged(copies[k], handed[k]), "seed %d: a frame changed after it was handed out", seed)
		}
	}
}

// eachInARow: a walk along the log sees what the slice has, and opens no packed chunk.
func eachInARow(t *testing.T, l *Log, d *dumbLog, lo, hi, durable protocol.Index) {
	t.Helper()
	next, opened := lo, l.openedLo
	require.NoError(t, l.Each(lo, hi, func(e *protocol.Entry) error {
		got := *e
		got.Seal(e.Index, e.Term, make([]byte, protocol.HeadSize))
		if want := &d.entries[next-d.base-1]; e.Index != next || !same(want, &got, durable) {
			t.Fatalf("at %d: want %+v, got %+v", next, want, &got)
		}
		next++
		return nil
	}))
	require.Equal(t, hi+1, next)
	require.Equal(t, opened, l.openedLo)
	if wrong := errors.New("wrong"); lo <= hi {
		last := lo + (hi-lo)/2
		require.ErrorIs(t, l.Each(lo, hi, func(e *protocol.Entry) error {
			require.LessOrEqual(t, e.Index, last, "it goes on after an error")
			if e.Index == last {
				return wrong
			}
			return nil
		}), wrong)
	}
}

// TestACutReshapeWasNone: a log without rounds is one again, and a merged log has the reshape before.
func TestACutReshapeWasNone(t *testing.T) {
	reshape := func(l *Log) {
		e := protocol.NewReshape(2)
		e.SealPayload()
		e.Seal(l.Last+1, 3, make([]byte, protocol.HeadSize))
		l.Append(e)
	}
	for round, before := range []protocol.Index{0, 5} {
		l := After(&protocol.Base{Index: 5, Term: 2, Round: protocol.Round(round)}, 1<<10)
		require.Equal(t, before, l.Shaped())
		reshape(&l)
		require.EqualValues(t, 6, l.Shaped())
		l.Truncate(6)
		require.Equal(t, before, l.Shaped())
		reshape(&l)
		reshape(&l)
		l.Truncate(7)
		require.EqualValues(t, 6, l.Shaped())
		reshape(&l)
		l.Compact(6)
		l.Truncate(7)
		require.EqualValues(t, 6, l.Shaped(), "it is committed")
	}
}

func TestFrameLimits(t *testing.T) {
	l := Empty(0, 0, 1<<20)
	for i := range 10 {
		e := protocol.Entry{Kind: protocol.EntryBatch, Payload: make([]byte, 100-protocol.HeadSize)}
		e.SealPayload()
		e.Seal(protocol.Index(i+1), 1, make([]byte, protocol.HeadSize))
		l.Append(e) // 100 bytes each
	}
	require.Len(t, l.Frame(1, 300, 0), 3)
	require.Len(t, l.Frame(1, 299, 0), 2)
	require.Len(t, l.Frame(1, 1, 0), 1, "one at least")
	require.Len(t, l.Frame(9, 1000, 0), 2)
	require.Len(t, l.Frame(1, 1000, 4), 4)
	require.Nil(t, l.Frame(11, 1000, 0))
}

// TestNeededEntriesStay: they may take the whole cache, others a share of it.
func TestNeededEntriesStay(t *testing.T) {
	const each, n = 1 << 10, 2000
	limit := n * each
	l := Empty(0, 0, limit)
	for i := range n {
		e := protocol.Entry{Kind: protocol.EntryBatch, Payload: make([]byte, each-entryCost)}
		e.SealPayload()
		e.Seal(protocol.Index(i+1), 1, make([]byte, protocol.HeadSize))
		l.Append(e)
	}
	l.Drop(n, 1)
	require.Equal(t, limit, l.resident)
	l.Drop(n/2, n)
	require.Empty(t, l.At(1).Payload)
	require.NotEmpty(t, l.At(n/2+1).Payload, "it is not durable")
	l.Drop(n, n*3/4)
	require.NotEmpty(t, l.At(n*3/4).Payload)
	l.Drop(n, n+1)
	require.LessOrEqual(t, l.resident, limit/spareShare)
	require.NotEmpty(t, l.At(n).Payload)
	require.NoError(t, l.Check())
}

func TestPackedSize(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var entries []protocol.Entry
	for i := range 512 {
		e := protocol.Entry{Kind: protocol.EntryBatch, Count: 1, Low: uint64(i), Payload: make([]byte, 16),
			ID: protocol.ProposalID{Session: protocol.Session{Member: 1, Incarnation: 9}, Seq: uint64(i + rng.IntN(3))}}
		e.Low = min(e.Low, e.ID.Seq)
		e.SealPayload()
		e.Seal(protocol.Index(i+1), 5, make([]byte, protocol.HeadSize))
		entries = append(entries, e)
	}
	require.Less(t, len(pack(entries))/len(entries), 16)
}
