package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braidlog/braid/internal/check"
)

// told is an operation on one key with the server's revision.
func told(kind check.Kind, call, ret int64, value string, revision uint64) check.Operation {
	o := check.Operation{Kind: kind, Key: "k", Call: call, Return: ret, Outcome: check.OK, Version: revision, Found: true}
	if kind == check.Get {
		o.Result, o.Found = value, revision > 0
	} else {
		o.Value = value
	}
	return o
}

func lost(o check.Operation) check.Operation {
	o.Outcome, o.Return, o.Version = check.Unknown, 0, 0
	return o
}

func swapped(call, ret int64, expect, value string, revision uint64) check.Operation {
	o := told(check.Swap, call, ret, value, revision)
	o.Expect = expect
	return o
}

// Histories of one key with the server's revisions. The search and the order of the revisions alone must agree on
// each.
func TestJudgeKey(t *testing.T) {
	const get, put, del = check.Get, check.Put, check.Delete
	type history = []check.Operation
	for _, c := range []struct {
		name string
		ops  history
		good bool
	}{
		{"nothing there", history{told(get, 1, 2, "", 0)}, true},
		{"read of what was written", history{told(put, 1, 2, "a", 5), told(get, 3, 4, "a", 5)}, true},
		{"stale read", history{told(put, 1, 2, "a", 5), told(put, 3, 4, "b", 9), told(get, 5, 6, "a", 5)}, false},
		{"not there after a write", history{told(put, 1, 2, "a", 5), told(get, 3, 4, "", 0)}, false},
		{"concurrent writes in the order of revisions", history{told(put, 1, 9, "a", 7), told(put, 1, 9, "b", 5),
			told(get, 10, 11, "a", 7)}, true},
		{"revisions against real time", history{told(put, 1, 2, "a", 7), told(put, 3, 4, "b", 5)}, false},
		{"two writes at one revision", history{told(put, 1, 9, "a", 7), told(put, 1, 9, "b", 7)}, false},
		{"read with the revision of another write", history{told(put, 1, 2, "a", 5), told(put, 1, 2, "b", 6),
			told(get, 3, 4, "b", 5)}, false},
		{"read with a revision of nothing", history{told(put, 1, 2, "a", 5), told(get, 3, 4, "a", 6)}, false},
		{"damaged value", history{told(put, 1, 2, "a", 5), told(get, 3, 4, "x", 5)}, false},
		{"back in time", history{told(put, 1, 2, "a", 5), told(put, 3, 9, "b", 6), told(get, 4, 5, "b", 6),
			told(get, 6, 7, "a", 5)}, false},
		{"lost write that is seen", history{lost(told(put, 1, 2, "a", 0)), told(get, 3, 4, "", 0), told(get, 8, 9, "a", 5)},
			true},
		{"lost write that is never seen", history{told(put, 1, 2, "a", 5), lost(told(put, 3, 4, "b", 0)),
			told(put, 5, 6, "c", 7)}, true},
		{"lost write that comes and goes", history{told(put, 1, 2, "a", 5), lost(told(put, 3, 4, "b", 0)),
			told(get, 5, 6, "b", 7), told(get, 8, 9, "a", 5)}, false},
		{"lost write seen before it was called", history{told(get, 1, 2, "a", 5), lost(told(put, 3, 4, "a", 0))}, false},
		{"swap", history{told(put, 1, 2, "a", 5), swapped(3, 4, "a", "b", 6), told(get, 5, 6, "b", 6)}, true},
		{"two swaps of one value", history{told(put, 1, 2, "a", 5), swapped(3, 6, "a", "b", 6), swapped(3, 6, "a", "c", 7)},
			false},
		{"lost swap that is seen", history{told(put, 1, 2, "a", 5), lost(swapped(3, 6, "a", "b", 0)),
			told(get, 7, 8, "b", 6)}, true},
		{"delete", history{told(put, 1, 2, "a", 5), told(del, 3, 4, "", 6), told(get, 5, 6, "", 0), told(put, 7, 8, "b", 9),
			told(get, 9, 9, "b", 9)}, true},
		{"read after a delete", history{told(put, 1, 2, "a", 5), told(del, 3, 4, "", 6), told(get, 5, 6, "a", 5)}, false},
		{"lost delete that is seen", history{told(put, 1, 2, "a", 5), lost(told(del, 3, 4, "", 0)), told(get, 5, 6, "", 0)},
			true},
		{"lost delete against a later write", history{told(put, 1, 2, "a", 5), lost(told(del, 9, 10, "", 0)),
			told(get, 5, 6, "", 0)}, false},
		{"no revisions",
			history{told(put, 1, 2, "a", 0), {Kind: get, Key: "k", Call: 3, Return: 4, Outcome: check.OK, Found: true,
				Result: "a"}}, true},
		{"no revisions, stale", history{told(put, 1, 2, "a", 0), told(put, 3, 4, "b", 0),
			{Kind: get, Key: "k", Call: 5, Return: 6, Outcome: check.OK, Found: true, Result: "a"}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := judgeKey(c.ops, time.Minute); (err == nil) != c.good {
				t.Errorf("%v, want an order %t", err, c.good)
			}
			if ranked, _ := rank(c.ops); (check.Linearizable(ranked, time.Minute) == nil) != c.good {
				t.Errorf("by search: want an order %t", c.good)
			}
		})
	}
}

// On random histories, correct ones and ones with a flaw, both checks agree.
func TestJudgesAgree(t *testing.T) {
	verdicts := map[bool]int{}
	for seed := range uint64(2000) {
		ops := randomHistory(rand.New(rand.NewPCG(seed, 1)), seed%2 == 0)
		ranked, ok := rank(ops)
		if !ok {
			t.Fatal("no ranks")
		}
		if tight := check.Linearizable(tighten(ranked), time.Minute); (tight == nil) != (inOrder(ranked) == nil) {
			t.Fatalf("seed %d: the search with tighter calls says %v", seed, tight)
		}
		search, order := check.Linearizable(untold(ranked), time.Minute), inOrder(ranked)
		if (search == nil) != (order == nil) {
			t.Fatalf("seed %d: the search says %v, the order of revisions %v", seed, search, order)
		}
		if seed%2 == 0 && search != nil {
			t.Fatalf("seed %d: %v", seed, search)
		}
		verdicts[search == nil]++
	}
	if verdicts[false] < 300 {
		t.Errorf("verdicts %v: too few of the flawed histories were found out", verdicts)
	}
}

// randomHistory is of sequential operations, each seen with some delay before and after. A flawed one has one wrong
// number in it.
func randomHistory(r *rand.Rand, right bool) (ops []check.Operation) {
	value, revision := "", uint64(0)
	for i := range 30 {
		at := int64(100 * i)
		call, ret := at-int64(r.IntN(400)), at+int64(r.IntN(400))
		switch r.IntN(5) {
		case 0, 1:
			ops = append(ops, told(check.Get, call, ret, value, revision))
		case 2:
			if revision > 0 {
				ops = append(ops, told(check.Delete, call, ret, "", uint64(10*i+10)))
				value, revision = "", 0
			}
		case 3:
			value, revision = fmt.Sprint("v", i), uint64(10*i+10)
			ops = append(ops, told(check.Put, call, ret, value, revision))
		default:
			value, revision = fmt.Sprint("v", i), uint64(10*i+10)
			ops = append(ops, lost(told(check.Put, call, ret, value, 0)))
		}
	}
	if !right {
		o := &ops[r.IntN(len(ops))]
		switch by := int64(r.IntN(1500)); r.IntN(3) {
		case 0:
			o.Call, o.Return = o.Call+by, o.Return+by
		case 1:
			o.Call, o.Return = o.Call-by, o.Return-by
		default:
			if o.Version > 0 {
				o.Version -= uint64(r.IntN(10)) * 10 % o.Version
			}
		}
	}
	return ops
}

// untold is the history without the versions of reads that found no key: those were made up.
func untold(ops []check.Operation) []check.Operation {
	ops = slices.Clone(ops)
	for i := range ops {
		if !ops[i].Found && ops[i].Version != noRank {
			ops[i].Version = 0
		}
	}
	return ops
}

func TestVerdict(t *testing.T) {
	now := int64(0)
	h := &kvHistory{now: func() int64 { now++; return now }}
	key, value := []byte("key"), []byte("12345678 and more")
	id := h.begin(1, check.Put, key, value, "")
	h.end(id, 7)
	h.saw(2, 1, kvSeen{key: key, value: value, found: true, revision: 7})
	h.begin(3, check.Put, key, []byte("87654321"), "")
	h.cancel(h.begin(3, check.Put, key, []byte("never"), ""))
	if v := h.judge(time.Minute); v.Verdict != Linearizable || v.Operations != 4 || v.Unknown != 1 || v.Keys != 1 {
		t.Errorf("verdict %+v", v)
	}
	if v := h.judge(0); v.Verdict != Linearizable || v.ByRevision != 1 {
		t.Errorf("without time for a search: %+v", v)
	}
	h.saw(2, now, kvSeen{key: key, value: value[:9], found: true, revision: 7})
	v := h.judge(time.Minute)
	if v.Verdict != NotLinearizable || !strings.Contains(v.Detail, `key "key" is not linearizable`) {
		t.Errorf("a value that was cut short: %+v", v)
	}
	r := &KVResult{}
	if r.judged(v); r.Verified || len(r.Violations) != 1 {
		t.Errorf("result %+v", r)
	}

	var none *kvHistory // records nothing, and costs nothing
	none.end(none.begin(1, check.Put, key, value, ""), 1)
	none.saw(1, 1, kvSeen{})
	none.cancel(0)
}

// A key with too many operations for the search is checked by its revisions.
func TestJudgeOfAHotKey(t *testing.T) {
	var ops []check.Operation
	for i := range searchLimit {
		at := int64(10 * i)
		ops = append(ops, told(check.Put, at, at+3, fmt.Sprint(i), uint64(i+2)),
			told(check.Get, at+4, at+9, fmt.Sprint(i), uint64(i+2)))
	}
	if searched, err := judgeKey(ops, time.Minute); searched || err != nil {
		t.Errorf("searched %t: %v", searched, err)
	}
	ops[len(ops)-1] = told(check.Get, 1e9, 2e9, "1", 3)
	if _, err := judgeKey(ops, time.Minute); err == nil || !strings.Contains(err.Error(), "not linearizable") {
		t.Errorf("a stale read: %v", err)
	}
	for i := range ops {
		ops[i].Version = 0
	}
	if _, err := judgeKey(ops, time.Minute); err == nil || !strings.Contains(err.Error(), "no verdict") {
		t.Errorf("without revisions: %v", err)
	}
}
