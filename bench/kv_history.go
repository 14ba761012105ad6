package bench

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/braidlog/braid/internal/check"
)

const (
	// historyLimit bounds the operations of a history: the checker needs them all in memory.
	historyLimit = 4_000_000
	// searchLimit bounds the operations on one key in a search for an order: its memory grows with the square.
	searchLimit = 20_000
)

// Verdict is the result of checking a history.
type Verdict struct {
	Verdict    string `json:"verdict"` // Linearizable, NotLinearizable or Undecided
	Operations int    `json:"operations"`
	Unknown    int    `json:"unknown"` // of unknown outcome
	Keys       int    `json:"keys"`
	// ByRevision counts keys that were checked by the server's revisions alone, without a search: they had too many
	// operations, or the time was over.
	ByRevision int     `json:"by_revision,omitempty"`
	Detail     string  `json:"detail,omitempty"`
	Seconds    float64 `json:"seconds"` // of the check
}

// The verdicts.
const (
	Linearizable    = "linearizable"
	NotLinearizable = "not linearizable"
	Undecided       = "undecided"
)

// kvHistory records the results of the clients of a run. A nil history records nothing.
type kvHistory struct {
	r   check.Recorder
	now func() int64
}

// fingerprint represents a value in a history: its identity, checksum and length.
func fingerprint(value []byte) string {
	var f [16]byte
	copy(f[:8], value)
	binary.LittleEndian.PutUint32(f[8:], crc32.Checksum(value, castagnoli))
	binary.LittleEndian.PutUint32(f[12:], uint32(len(value)))
	return hex.EncodeToString(f[:])
}

// begin records that a client begins a write and returns its number.
func (h *kvHistory) begin(client int, kind check.Kind, key, value []byte, expect string) (id int) {
	if h == nil {
		return 0
	}
	op := check.Operation{Client: client, Kind: kind, Key: string(key), Expect: expect, Call: h.now()}
	if kind != check.Delete {
		op.Value = fingerprint(value)
	}
	return h.r.Begin(op)
}

// end records that a write took effect.
func (h *kvHistory) end(id int, revision int64) {
	if h != nil {
		h.r.End(id, h.now(), "", true, uint64(revision))
	}
}

// saw records a client's read between call and now. Reads are recorded when they are answered: unanswered ones carry
// no information.
func (h *kvHistory) saw(client int, call int64, s kvSeen) {
	if h == nil {
		return
	}
	id := h.r.Begin(check.Operation{Client: client, Kind: check.Get, Key: string(s.key), Call: call})
	result := ""
	if s.found {
		result = fingerprint(s.value)
	}
	h.r.End(id, h.now(), result, s.found, uint64(s.revision))
}

// cancel records that a write certainly had no effect.
func (h *kvHistory) cancel(id int) {
	if h != nil {
		h.r.Fail(id)
	}
}

// judge searches for an order that explains the history, key by key, within a time limit.
func (h *kvHistory) judge(limit time.Duration) *Verdict {
	began := time.Now()
	history := h.r.History()
	v := &Verdict{Verdict: Linearizable, Operations: len(history)}
	for i := range history {
		if history[i].Outcome == check.Unknown {
			v.Unknown++
		}
	}
	for _, ops := range historyByKey(history) {
		v.Keys++
		left := limit - time.Since(began)
		searched, err := judgeKey(ops, left)
		if !searched {
			v.ByRevision++
		}
		var undecided *check.UndecidedError
		switch {
		case err == nil:
			continue
		case errors.As(err, &undecided):
			v.Verdict, v.Detail = Undecided, err.Error()
			continue // another key may be worse
		}
		v.Verdict, v.Detail = NotLinearizable, shorten(err.Error())
		break
	}
	v.Seconds = time.Since(began).Seconds()
	return v
}

// shorten keeps the readable part of a long history.
func shorten(text string) string {
	const lines = 200
	parts := strings.SplitAfterN(text, "\n", lines+1)
	if len(parts) > lines {
		parts[lines] = "  …"
	}
	return strings.Join(parts, "")
}

// historyByKey splits a history by key, in the order of keys, each in the order of calls.
func historyByKey(history []check.Operation) [][]check.Operation {
	slices.SortStableFunc(history, func(a, b check.Operation) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Call, b.Call))
	})
	var out [][]check.Operation
	for len(history) > 0 {
		n := 1
		for n < len(history) && history[n].Key == history[0].Key {
			n++
		}
		out = append(out, history[:n:n])
		history = history[n:]
	}
	return out
}

// judgeKey checks one key. searched is false if the server's revisions decided alone.
func judgeKey(ops []check.Operation, limit time.Duration) (searched bool, err error) {
	search := limit > 0 && len(ops) <= searchLimit
	ranked, ok := rank(ops)
	switch {
	case !ok && search:
		return true, check.Linearizable(ranked, limit)
	case !ok:
		return true, &check.UndecidedError{Key: ops[0].Key}
	}
	if err := inOrder(ranked); err != nil || !search {
		return false, err
	}
	return true, check.Linearizable(tighten(ranked), limit)
}

// tighten delays calls of ranked operations to the last call of a lower rank, before which they cannot have happened.
// That excludes no order, and prunes very many dead ends if many clients use one key.
func tighten(ops []check.Operation) []check.Operation {
	ops = byRank(ops)
	scale := int64(len(ops) + 1) // space for the order within an instant
	latest := int64(math.MinInt64)
	for i := range ops {
		o := &ops[i]
		latest = max(latest+1, o.Call*scale)
		o.Call, o.Return = latest, o.Return*scale+scale-1
	}
	return ops
}

// byRank returns the operations in the order of their ranks; reads come after the write of
// their rank, in the order of their calls.
func byRank(ops []check.Operation) []check.Operation {
	ops = slices.Clone(ops)
	write := func(o *check.Operation) int {
		if o.Kind == check.Get {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(ops, func(a, b check.Operation) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(write(&a), write(&b)), cmp.Compare(a.Call, b.Call))
	})
	return ops
}

// rank replaces the server's revisions by ranks: the number of writes that the key had seen. With ranks there is only
// one order to try. It omits irrelevant operations: those that failed, and writes of unknown outcome that no read
// saw. ok is false if the revisions are incomplete; then there are no ranks, and the operations are unchanged.
func rank(ops []check.Operation) (ranked []check.Operation, ok bool) {
	ranked, revisions, ok := withRevisions(ops)
	if !ok {
		return unranked(ops), false
	}
	for i := range ranked {
		o := &ranked[i]
		if o.Version == 0 {
			continue // a read of a key that was not there
		}
		at, known := slices.BinarySearch(revisions, o.Version)
		if o.Version = uint64(at) + 1; !known {
			o.Version = noRank
		}
	}
	rankAbsent(ranked)
	return ranked, true
}

// noRank is the rank of a value that was read, but never written: it has no place.
const noRank = math.MaxUint64

// withRevisions omits irrelevant operations, and finds the revisions of writes without an answer from the reads that
// saw their values. It returns the revisions of all writes, sorted.
func withRevisions(ops []check.Operation) (out []check.Operation, revisions []uint64, ok bool) {
	seenAt := map[string]uint64{} // value → revision
	for i := range ops {
		if o := &ops[i]; o.Kind == check.Get && o.Found {
			if o.Version == 0 {
				return nil, nil, false // the service has no revisions
			}
			seenAt[o.Result] = o.Version
		}
	}
	for _, o := range ops {
		switch {
		case o.Outcome == check.Failed:
			continue
		case o.Kind == check.Get:
			out = append(out, o)
			continue
		case o.Outcome == check.Unknown && o.Kind == check.Delete:
			return nil, nil, false // it is not known whether it was seen
		case o.Outcome == check.Unknown:
			if o.Version = seenAt[o.Value]; o.Version == 0 {
				continue
			}
		case o.Version == 0:
			return nil, nil, false
		}
		out, revisions = append(out, o), append(revisions, o.Version)
	}
	slices.Sort(revisions)
	return out, revisions, true
}

// rankAbsent gives reads that found no key, which have no revision, the lowest rank that real time permits: of the
// beginning, or of a delete. If there is an order at all, there is one with these ranks: a lower rank than any other
// choice is never too late for later operations, and of two such reads the earlier one gets no higher rank.
func rankAbsent(ops []check.Operation) {
	absent := []uint64{0} // ranks without a key, ascending
	var ranked []check.Operation
	for _, o := range byRank(ops) {
		if o.Kind == check.Delete {
			absent = append(absent, o.Version)
		}
		if o.Version != 0 {
			ranked = append(ranked, o)
		}
	}
	// ends[i] is the first return among ranked[i:]. None of these operations can be ordered before an operation that
	// was called after it.
	ends := make([]int64, len(ranked)+1)
	ends[len(ranked)] = math.MaxInt64
	for i := len(ranked) - 1; i >= 0; i-- {
		if ends[i] = ends[i+1]; ranked[i].Outcome == check.OK {
			ends[i] = min(ends[i], ranked[i].Return)
		}
	}
	for i := range ops {
		o := &ops[i]
		if o.Version != 0 || o.Kind != check.Get {
			continue
		}
		lowest := uint64(0)
		if n, _ := slices.BinarySearch(ends, o.Call); n > 0 { // ranked[:n] may have ended before
			lowest = ranked[n-1].Version
		}
		at, _ := slices.BinarySearch(absent, lowest)
		if o.Version = noRank; at < len(absent) {
			o.Version = absent[at]
		}
	}
}

func unranked(ops []check.Operation) []check.Operation {
	out := slices.Clone(ops)
	for i := range out {
		out[i].Version = 0
	}
	return out
}

// inOrder checks the operations on a key by their ranks: every operation must have seen the value of its rank, and
// none may have returned before the call of one with a lower rank.
func inOrder(ops []check.Operation) error {
	ops = byRank(ops)
	value, found, rank := "", false, uint64(0)
	latest := 0 // the operation with the latest call so far
	for i := range ops {
		o := &ops[i]
		late := o.Outcome == check.OK && o.Return < ops[latest].Call
		if o.Call > ops[latest].Call {
			latest = i
		}
		right := o.Version == rank+1 // a delete may have removed a value that no read saw
		switch o.Kind {
		case check.Get:
			right = o.Version == rank && o.Found == found && o.Result == value
		case check.Swap:
			right = right && found && o.Expect == value
		}
		if late || !right {
			near := ops[max(0, min(i-20, latest)):min(len(ops), i+5)]
			return &check.NotLinearizableError{Key: o.Key, Ops: slices.Clone(near)}
		}
		if o.Kind != check.Get {
			value, found, rank = o.Value, o.Kind != check.Delete, o.Version
		}
	}
	return nil
}

// String returns the verdict as text.
func (v *Verdict) String() string {
	s := fmt.Sprintf("history of %s operations on %s keys, %s of unknown outcome: %s (judged in %.1f s)",
		number(float64(v.Operations)), number(float64(v.Keys)), number(float64(v.Unknown)), v.Verdict, v.Seconds)
	if v.ByRevision > 0 {
		s += fmt.Sprintf("\n%d keys were judged by the server's revisions alone: more than %s operations, or no time "+
			"left to search", v.ByRevision, number(searchLimit))
	}
	if v.Detail != "" {
		s += "\n" + v.Detail
	}
	return s
}
