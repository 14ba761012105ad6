package check

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func ok(client int, kind Kind, call, ret int64, v string) Operation {
	o := Operation{Client: client, Kind: kind, Key: "k", Call: call, Return: ret, Outcome: OK, Found: true}
	if kind == Get {
		o.Result = v
	} else {
		o.Value = v
	}
	return o
}

func absent(client int, call, ret int64) Operation {
	return Operation{Client: client, Kind: Get, Key: "k", Call: call, Return: ret, Outcome: OK}
}

func unknown(o Operation) Operation {
	o.Outcome, o.Return = Unknown, 0
	return o
}

func swap(client int, call, ret int64, expect, v string, done bool) Operation {
	return Operation{Client: client, Kind: Swap, Key: "k", Call: call, Return: ret, Outcome: OK, Expect: expect, Value: v,
		Found: done}
}

func TestLinearizable(t *testing.T) {
	for _, c := range []struct {
		name string
		ops  []Operation
		good bool
	}{
		{"nothing", nil, true},
		{"read of what was written before", []Operation{ok(1, Put, 1, 2, "a"), ok(2, Get, 3, 4, "a")}, true},
		{"stale read", []Operation{ok(1, Put, 1, 2, "a"), ok(1, Put, 3, 4, "b"), ok(2, Get, 5, 6, "a")}, false},
		{"either value while the write runs",
			[]Operation{ok(1, Put, 1, 2, "a"), ok(1, Put, 3, 9, "b"), ok(2, Get, 4, 5, "a"), ok(2, Get, 6, 7, "b")}, true},
		{"back in time while the write runs",
			[]Operation{ok(1, Put, 1, 2, "a"), ok(1, Put, 3, 9, "b"), ok(2, Get, 4, 5, "b"), ok(2, Get, 6, 7, "a")}, false},
		{"same instant counts as concurrent", []Operation{ok(1, Put, 1, 5, "a"), absent(2, 5, 6)}, true},
		{"read of a value nobody wrote", []Operation{ok(1, Get, 1, 2, "x")}, false},
		{"absent before any write", []Operation{absent(1, 1, 2), ok(1, Put, 3, 4, "a")}, true},
		{"absent after a write", []Operation{ok(1, Put, 1, 2, "a"), absent(1, 3, 4)}, false},
		{"absent after a delete", []Operation{ok(1, Put, 1, 2, "a"), ok(1, Delete, 3, 4, ""), absent(2, 5, 6)}, true},
		{"appends in order", []Operation{ok(1, Append, 1, 2, "1,"), ok(2, Append, 3, 4, "2,"), ok(3, Get, 5, 6, "1,2,")},
			true},
		{"appends against real time",
			[]Operation{ok(1, Append, 1, 2, "1,"), ok(2, Append, 3, 4, "2,"), ok(3, Get, 5, 6, "2,1,")}, false},
		{"lost append", []Operation{ok(1, Append, 1, 2, "1,"), ok(2, Append, 3, 4, "2,"), ok(3, Get, 5, 6, "2,")}, false},
		{"append that happened twice", []Operation{ok(1, Append, 1, 2, "1,"), ok(3, Get, 5, 6, "1,1,")}, false},
		{"unknown write that is seen later",
			[]Operation{unknown(ok(1, Append, 1, 0, "1,")), absent(2, 2, 3), ok(2, Get, 8, 9, "1,")}, true},
		{"unknown write that is never seen",
			[]Operation{unknown(ok(1, Append, 1, 0, "1,")), absent(2, 2, 3), absent(2, 8, 9)}, true},
		{"unknown write that comes and goes",
			[]Operation{unknown(ok(1, Append, 1, 0, "1,")), ok(2, Get, 2, 3, "1,"), absent(2, 8, 9)}, false},
		{"unknown write seen before it was called", []Operation{ok(2, Get, 1, 2, "1,"), unknown(ok(1, Append, 5, 0, "1,"))},
			false},
		{"failed write that is seen",
			[]Operation{{Kind: Put, Key: "k", Value: "a", Call: 1, Outcome: Failed}, ok(2, Get, 3, 4, "a")}, false},
		{"unanswered read says nothing", []Operation{ok(1, Put, 1, 2, "a"), unknown(ok(2, Get, 3, 0, "zzz"))}, true},
		{"swap of the right value", []Operation{ok(1, Put, 1, 2, "a"), swap(2, 3, 4, "a", "b", true), ok(1, Get, 5, 6, "b")},
			true},
		{"two swaps of the same value",
			[]Operation{ok(1, Put, 1, 2, "a"), swap(2, 3, 6, "a", "b", true), swap(3, 3, 6, "a", "c", true)}, false},
		{"swap that lost", []Operation{ok(1, Put, 1, 2, "a"), swap(2, 3, 6, "a", "b", true), swap(3, 3, 6, "a", "c", false)},
			true},
		{"swap that lost to nobody", []Operation{ok(1, Put, 1, 2, "a"), swap(3, 3, 6, "a", "c", false)}, false},
		{"swap that lost to an unknown write",
			[]Operation{ok(1, Put, 1, 2, "a"), unknown(ok(2, Put, 3, 0, "b")), swap(3, 4, 6, "a", "c", false)}, true},
		{"unknown swap that took effect",
			[]Operation{ok(1, Put, 1, 2, "a"), unknown(swap(2, 3, 0, "a", "b", false)), ok(3, Get, 5, 6, "b")}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Linearizable(c.ops, time.Minute)
			if c.good {
				require.NoError(t, err)
				return
			}
			var bad *NotLinearizableError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, "k", bad.Key)
			require.Contains(t, err.Error(), "not linearizable")
		})
	}
}

func TestLinearizableByVersion(t *testing.T) {
	version := func(o Operation, v uint64) Operation { o.Version = v; return o }
	a, b := version(ok(1, Put, 1, 9, "a"), 1), version(ok(2, Put, 1, 9, "b"), 2)
	require.NoError(t, Linearizable([]Operation{a, b, ok(3, Get, 10, 11, "b")}, 0))
	require.Error(t, Linearizable([]Operation{a, b, ok(3, Get, 10, 11, "a")}, 0))
	require.Error(t, Linearizable([]Operation{a, version(b, 1)}, 0))
	require.Error(t, Linearizable([]Operation{a, b, version(ok(3, Get, 10, 11, "b"), 1)}, 0))

	var many []Operation // all at once: without versions there would be 100! orders
	text := ""
	for i := range 100 {
		many = append(many, version(ok(i, Append, 1, 1000, string(rune('a'+i%26))), uint64(100-i)))
		text = many[i].Value + text
	}
	require.NoError(t, Linearizable(append(many, ok(0, Get, 1001, 1002, text)), time.Minute))
}

func TestVersionsAreAnOrder(t *testing.T) {
	version := func(o Operation, v uint64) Operation { o.Version = v; return o }
	a, b := version(ok(1, Put, 1, 9, "a"), 1), version(ok(2, Put, 2, 9, "b"), 2)
	early, late := version(ok(3, Get, 3, 4, "a"), 1), version(ok(3, Get, 10, 11, "b"), 2)
	require.True(t, versionsExplain([]Operation{late, b, early, a, absent(4, 0, 5)}))
	require.False(t, versionsExplain([]Operation{a, b, version(ok(3, Get, 10, 11, "a"), 1)}), "a stale read")
	require.False(t, versionsExplain([]Operation{a, version(ok(2, Put, 2, 9, "b"), 0)}), "nobody told")
	require.False(t, versionsExplain([]Operation{a, b, absent(4, 10, 12)}), "lost")
	require.False(t, versionsExplain([]Operation{b, version(ok(1, Put, 10, 12, "a"), 1)}), "against real time")
	require.False(t, versionsExplain([]Operation{a, unknown(b)}))

	var many []Operation // thousands of operations that overlap take no time
	text := ""
	for i := range int64(3000) {
		text = string(rune('a' + i%26))
		many = append(many, version(ok(int(i), Put, i, i+100, text), uint64(i+1)),
			version(ok(0, Get, i, i+200, text), uint64(i+1)))
	}
	require.NoError(t, Linearizable(many, time.Minute))

	stale := many[2*1000+1]
	stale.Call, stale.Return = 2000, 2001
	err := Linearizable(append(many, stale), time.Minute)
	require.ErrorContains(t, err, "of 6001 operations")
	require.ErrorContains(t, err, stale.String())
	require.Less(t, len(err.Error()), 3000)
}

func TestLinearizableJudgesKeysApart(t *testing.T) {
	a, b := ok(1, Put, 1, 2, "a"), ok(1, Get, 3, 4, "a")
	b.Key = "other"
	require.Error(t, Linearizable([]Operation{a, b}, 0))
	b.Key = "k"
	require.NoError(t, Linearizable([]Operation{a, b}, 0))
}

func TestLinearizableWithManyUnknownWrites(t *testing.T) {
	var ops []Operation
	for i := range 200 { // unseen: the search must not try all their places
		ops = append(ops, unknown(ok(i, Append, int64(10*i), 0, "lost")))
		ops = append(ops, ok(i, Put, int64(10*i+1), int64(10*i+2), "v"), ok(i, Get, int64(10*i+3), int64(10*i+4), "v"))
	}
	err := Linearizable(ops, time.Minute)
	var late *UndecidedError
	require.False(t, errors.As(err, &late))
	require.NoError(t, err)
}

func TestRecorder(t *testing.T) {
	var r Recorder
	a := r.Begin(Operation{Client: 1, Kind: Put, Key: "k", Value: "a", Call: 1})
	b := r.Begin(Operation{Client: 2, Kind: Get, Key: "k", Call: 2})
	c := r.Begin(Operation{Client: 3, Kind: Put, Key: "k", Value: "c", Call: 3})
	r.End(b, 4, "", false, 0)
	r.Fail(c)
	h := r.History()
	require.Equal(t, []Outcome{Unknown, OK, Failed}, []Outcome{h[a].Outcome, h[b].Outcome, h[c].Outcome})
	require.NoError(t, Linearizable(h, 0))
	r.End(a, 5, "", true, 1)
	require.Equal(t, "[1…5] client 1: put k a → ok", r.Operation(a).String())
	require.Equal(t, "[2…4] client 2: get k → absent", r.Operation(b).String())
}
