package raftlog

import (
	"fmt"
	"slices"
	"sort"

	"github.com/braidlog/braid/protocol"
)

// Log is the log in memory: all envelopes after the base, and the payloads that the cache has space
// for.
//
// Slices of it are in messages that others read later. Therefore an entry is never written to
// again once it is appended. The log grows at the end of its last chunk. Truncation shortens a
// chunk and clips its capacity, so that the next append moves to fresh memory. Packing a chunk
// leaves its old memory to those that still read it.
type Log struct {
	Base     protocol.Index // the index before the first entry
	BaseTerm protocol.Term  // its term
	Last     protocol.Index // Base if there are no entries
	LastTerm protocol.Term
	// chunks hold Base+1 … Last without gap; none is empty.
	chunks []chunk
	// reshapes are the EntryReshapes after the base, and the last one before that, ascending. If the entries before the
	// base of a merged log are not known, the base counts as one.
	reshapes []protocol.Index
	// Follows: the instance is not the first one. BehindSeal: it is, in a log that was sealed.
	Follows, BehindSeal bool

	// resident is the sum of the chunks' resident. It exceeds limit by no more than what
	// is not durable yet plus two chunks, and limit/spareShare by what is needed in addition.
	resident int
	limit    int
	// shed counts the packed chunks at the front; there may be others after them.
	shed int

	// opened is the packed chunk from openedLo that was unpacked last.
	openedLo protocol.Index
	opened   []protocol.Entry
	// spanLo … spanHi is the last range that had to be copied because it spans chunks. Followers
	// that are equally far get the same copy.
	spanLo, spanHi protocol.Index
	span           []protocol.Entry
}

// chunk is a run of entries, as they are or packed (pack.go).
type chunk struct {
	lo       protocol.Index
	n        int
	loT, hiT protocol.Term // of the first and the last entry
	entries  []protocol.Entry
	packed   []byte // nil unless packed; then entries is nil
	// resident is what the entries cost in memory, 0 if packed.
	resident int
	// maxK is no less than the largest k of the entries.
	maxK uint8
}

const (
	chunkEntries = 512
	chunkShare   = 32 // a chunk is full with 1/chunkShare of the cache
	// spareShare: 1/spareShare of the cache is for entries that no member is known to need.
	spareShare = 16
	// entryCost is an entry's memory besides its payload: the struct and the encoded head.
	entryCost = 128 + protocol.HeadSize
)

func cost(e *protocol.Entry) int { return entryCost + len(e.Payload) + len(e.Body) }

func (c *chunk) last() protocol.Index { return c.lo + protocol.Index(c.n) - 1 }

// Empty is a log without entries after a base of a term, which keeps limit bytes of payloads in memory.
func Empty(base protocol.Index, term protocol.Term, limit int) Log {
	return Log{Base: base, BaseTerm: term, Last: base, LastTerm: term, limit: limit}
}

// After is an empty log after a base.
func After(base *protocol.Base, limit int) Log {
	l := Empty(base.Index, base.Term, limit)
	if base.Round > 0 {
		l.reshapes = []protocol.Index{base.Index}
	}
	return l
}

// Shaped is the last EntryReshape; 0: there was none. If it is before the base and not known, it is the base. Behind a
// seal it is at least 1: a member that has applied an entry has applied everything before the seal.
func (l *Log) Shaped() protocol.Index {
	if n := len(l.reshapes); n > 0 {
		return l.reshapes[n-1]
	}
	if l.BehindSeal {
		return 1
	}
	return 0
}

// Append adds the entry after the last one.
func (l *Log) Append(e protocol.Entry) {
	if e.Index != l.Last+1 {
		panic(fmt.Sprintf("raft: append of %d after %d", e.Index, l.Last))
	}
	if e.Kind == protocol.EntryReshape {
		l.reshapes = append(l.reshapes, e.Index)
	}
	n := len(l.chunks)
	if n == 0 || l.chunks[n-1].packed != nil || l.chunks[n-1].n >= chunkEntries ||
		l.chunks[n-1].resident >= max(1, l.limit/chunkShare) {
		var entries []protocol.Entry // as many as the last chunk took: no growing in steady state
		if n > 0 {
			entries = make([]protocol.Entry, 0, l.chunks[n-1].n)
		}
		l.chunks = append(l.chunks, chunk{lo: e.Index, loT: e.Term, entries: entries})
		n++
	}
	c := &l.chunks[n-1]
	c.entries = append(c.entries, e)
	c.n++
	c.hiT = e.Term
	c.maxK = max(c.maxK, e.K)
	c.resident += cost(&e)
	l.resident += cost(&e)
	l.Last, l.LastTerm = e.Index, e.Term
}

// find returns the chunk that holds i, which must be in the log.
func (l *Log) find(i protocol.Index) int {
	n := len(l.chunks)
	if l.chunks[n-1].lo <= i {
		return n - 1
	}
	return sort.Search(n, func(k int) bool { return l.chunks[k].lo > i }) - 1
}

// open returns the entries of a chunk, unpacked if need be.
func (l *Log) open(k int) []protocol.Entry {
	c := &l.chunks[k]
	if c.packed == nil {
		return c.entries
	}
	if l.opened == nil || l.openedLo != c.lo {
		l.openedLo, l.opened = c.lo, unpack(c)
	}
	return l.opened
}

// At returns the entry at i, which must be in the log. It is read only.
func (l *Log) At(i protocol.Index) *protocol.Entry {
	k := l.find(i)
	return &l.open(k)[i-l.chunks[k].lo]
}

// Each calls f with the entries from lo to hi, both included, until f fails. They must be in the log. An
// entry of a packed chunk is not sealed, and lasts as long as the call. So checks can look at all of a
// long log after each step, and memory for whole chunks is not needed.
func (l *Log) Each(lo, hi protocol.Index, f func(*protocol.Entry) error) error {
	if lo > hi {
		return nil
	}
	var room *protocol.Entry
	for k := l.find(lo); k < len(l.chunks) && l.chunks[k].lo <= hi; k++ {
		c := &l.chunks[k]
		var err error
		if c.packed == nil || l.opened != nil && l.openedLo == c.lo {
			err = eachOf(l.Run(max(lo, c.lo), hi+1), f)
		} else {
			if room == nil {
				room = new(protocol.Entry)
			}
			err = eachPacked(c, lo, hi, room, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func eachOf(entries []protocol.Entry, f func(*protocol.Entry) error) error {
	for i := range entries {
		if err := f(&entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// eachPacked makes one entry after the other in e.
func eachPacked(c *chunk, lo, hi protocol.Index, e *protocol.Entry, f func(*protocol.Entry) error) error {
	u := newUnpacker(c)
	for i, end := c.lo, min(hi, c.last()); i <= end; i++ {
		if u.next(e); i < lo {
			continue
		}
		if err := f(e); err != nil {
			return err
		}
	}
	return nil
}

// Term returns the term of the entry at i, or of the base; false where it is not known.
func (l *Log) Term(i protocol.Index) (protocol.Term, bool) {
	switch {
	case i == l.Last:
		return l.LastTerm, true
	case i == l.Base:
		return l.BaseTerm, true
	case i < l.Base || i > l.Last:
		return 0, false
	}
	if c := &l.chunks[l.find(i)]; c.loT == c.hiT {
		return c.loT, true
	}
	return l.At(i).Term, true
}

// Matches reports whether the log has an entry (or its base) with that index and term.
func (l *Log) Matches(i protocol.Index, t protocol.Term) bool {
	have, ok := l.Term(i)
	return ok && have == t
}

// UpToDate reports whether a log that ends with an entry of that index and term has no less than this one (Raft
// §5.4.1).
func (l *Log) UpToDate(i protocol.Index, t protocol.Term) bool {
	return t > l.LastTerm || t == l.LastTerm && i >= l.Last
}

// Back returns the highest index ≤ i whose term is at most t, and that term: the best
// guess at where a log with term t at i may match this one. Terms never fall along a
// log, so whole terms are skipped. It stops at the base.
func (l *Log) Back(i protocol.Index, t protocol.Term) (protocol.Index, protocol.Term) {
	i = min(i, l.Last)
	if i <= l.Base {
		return l.Base, l.BaseTerm
	}
	n := sort.Search(int(i-l.Base), func(k int) bool {
		have, _ := l.Term(i - protocol.Index(k))
		return have <= t
	})
	i -= protocol.Index(n)
	have, _ := l.Term(i)
	return i, have
}

// Frame returns entries from lo on, as many as the limits allow, but at least one if
// there is any. limit 0 for the number means no limit.
func (l *Log) Frame(lo protocol.Index, maxBytes, maxEntries int) []protocol.Entry {
	if lo > l.Last {
		return nil
	}
	if maxEntries == 0 {
		maxEntries = int(l.Last-lo) + 1
	}
	hi, bytes := lo, 0
	for k := l.find(lo); k < len(l.chunks); k++ {
		entries := l.open(k)
		for j := int(hi - l.chunks[k].lo); j < len(entries); j++ {
			bytes += entries[j].Bytes()
			if hi > lo && (bytes > maxBytes || int(hi-lo) >= maxEntries) {
				return l.slice(lo, hi)
			}
			hi++
		}
	}
	return l.slice(lo, hi)
}

// Run returns entries from lo on, before hi, as many as one chunk holds.
func (l *Log) Run(lo, hi protocol.Index) []protocol.Entry {
	k := l.find(lo)
	entries := l.open(k)
	from := int(lo - l.chunks[k].lo)
	to := min(len(entries), from+int(hi-lo))
	return entries[from:to:to]
}

// slice returns the entries lo ≤ i < hi, which must be in the log.
func (l *Log) slice(lo, hi protocol.Index) []protocol.Entry {
	if run := l.Run(lo, hi); len(run) == int(hi-lo) {
		return run
	}
	if l.spanLo == lo && l.spanHi == hi && l.span != nil {
		return l.span
	}
	out := make([]protocol.Entry, 0, hi-lo)
	for at := lo; at < hi; at = lo + protocol.Index(len(out)) {
		out = append(out, l.Run(at, hi)...)
	}
	l.spanLo, l.spanHi, l.span = lo, hi, out
	return out
}

// Truncate removes the entries from i on.
func (l *Log) Truncate(i protocol.Index) {
	l.reshapes = slices.DeleteFunc(l.reshapes, func(at protocol.Index) bool { return at >= i })
	for len(l.chunks) > 0 && l.Last >= i {
		k := len(l.chunks) - 1
		c := &l.chunks[k]
		if c.lo >= i {
			l.Last = c.lo - 1
			l.resident -= c.resident
			l.chunks[k] = chunk{}
			l.chunks = l.chunks[:k]
			continue
		}
		n := int(i - c.lo)
		l.replace(k, l.open(k)[:n:n])
		l.Last = i - 1
	}
	l.span, l.opened = nil, nil
	l.shed = min(l.shed, max(0, len(l.chunks)-1))
	l.LastTerm = l.BaseTerm
	if n := len(l.chunks); n > 0 {
		l.LastTerm = l.chunks[n-1].hiT
	}
}

// Compact makes i, which is in the log, the base.
func (l *Log) Compact(i protocol.Index) {
	l.BaseTerm, _ = l.Term(i)
	l.Base = i
	n := 0
	for n < len(l.chunks) && l.chunks[n].last() <= i {
		l.resident -= l.chunks[n].resident
		n++
	}
	l.chunks = slices.Delete(l.chunks, 0, n)
	l.shed = max(0, l.shed-n)
	if len(l.chunks) > 0 && l.chunks[0].lo <= i {
		// A copy, so that the memory of what is cut off is free.
		l.replace(0, slices.Clone(l.open(0)[i+1-l.chunks[0].lo:]))
		l.shed = 0
	}
	l.span, l.opened = nil, nil
	past := 0
	for past+1 < len(l.reshapes) && l.reshapes[past+1] <= i {
		past++
	}
	l.reshapes = slices.Delete(l.reshapes, 0, past)
}

// replace gives a chunk other entries, not packed and not none.
func (l *Log) replace(k int, entries []protocol.Entry) {
	l.resident -= l.chunks[k].resident
	c := chunk{lo: entries[0].Index, n: len(entries), loT: entries[0].Term, hiT: entries[len(entries)-1].Term,
		entries: entries, maxK: l.chunks[k].maxK}
	for j := range entries {
		c.resident += cost(&entries[j])
	}
	l.resident += c.resident
	l.chunks[k] = c
}

// Amend replaces form and body of entries in the log by those given, ascending. Slices that were
// handed out before keep the old ones.
func (l *Log) Amend(entries []protocol.Entry) {
	for len(entries) > 0 {
		k := l.find(entries[0].Index)
		lo, last := l.chunks[k].lo, l.chunks[k].last()
		changed := slices.Clone(l.open(k))
		for len(entries) > 0 && entries[0].Index <= last {
			e := &changed[entries[0].Index-lo]
			e.Form, e.Body = entries[0].Form, entries[0].Body
			entries = entries[1:]
		}
		l.replace(k, changed)
		l.shed = min(l.shed, k)
		l.span, l.opened = nil, nil
	}
}

// MaxK is no less than the largest k of the entries in the log.
func (l *Log) MaxK() (k uint8) {
	for i := range l.chunks {
		k = max(k, l.chunks[i].maxK)
	}
	return k
}

// Drop forgets payloads and packs envelopes, oldest first, until the cache is within its
// limit: only whole chunks that are durable, and never the one that still grows. Entries before
// needed have only a share of the limit.
func (l *Log) Drop(durable, needed protocol.Index) {
	for l.resident > l.limit/spareShare && l.shed < len(l.chunks)-1 {
		c := &l.chunks[l.shed]
		if c.last() > durable || c.last() >= needed && l.resident <= l.limit {
			return
		}
		l.shed++
		if c.packed == nil {
			c.packed = pack(c.entries)
			l.resident -= c.resident
			c.entries, c.resident = nil, 0
		}
	}
}

// checkedChunks is how many chunks at the end are checked entry by entry: the ones before them no
// longer change.
const checkedChunks = 2

// Newest calls f with the entries that are checked one by one and have their envelopes, until f fails.
func (l *Log) Newest(f func(*protocol.Entry) error) error {
	for k := max(0, len(l.chunks)-checkedChunks); k < len(l.chunks); k++ {
		if err := eachOf(l.chunks[k].entries, f); err != nil { // none in a packed one
			return err
		}
	}
	return nil
}

// Check verifies the invariants.
func (l *Log) Check() error {
	next, term, resident := l.Base+1, l.BaseTerm, 0
	for k := range l.chunks {
		c := &l.chunks[k]
		if c.n == 0 || c.lo != next || c.loT < term || c.hiT < c.loT || (c.packed == nil) != (len(c.entries) == c.n) {
			return fmt.Errorf("log: chunk %d does not continue at %d of term %d", k, next, term)
		}
		if k >= len(l.chunks)-checkedChunks && c.packed == nil {
			if err := c.check(); err != nil {
				return err
			}
		}
		next, term = c.last()+1, c.hiT
		resident += c.resident
	}
	if next-1 != l.Last || term != l.LastTerm || resident != l.resident || l.shed > len(l.chunks) {
		return fmt.Errorf("log: ends at %d of term %d with %d bytes, says %d of term %d with %d",
			next-1, term, resident, l.Last, l.LastTerm, l.resident)
	}
	return l.checkReshapes()
}

func (l *Log) checkReshapes() error {
	for k, at := range l.reshapes {
		if at > l.Last || k > 0 && (at <= l.Base || at <= l.reshapes[k-1]) {
			return fmt.Errorf("log: reshapes at %d, from %d to %d", l.reshapes, l.Base, l.Last)
		}
	}
	return l.Newest(func(e *protocol.Entry) error {
		if e.Kind == protocol.EntryReshape && !slices.Contains(l.reshapes, e.Index) {
			return fmt.Errorf("log: the reshape at %d is not known", e.Index)
		}
		return nil
	})
}

func (c *chunk) check() error {
	sum := 0
	for j := range c.entries {
		e := &c.entries[j]
		if e.Index != c.lo+protocol.Index(j) || e.Term < c.loT || e.Term > c.hiT || j > 0 && e.Term < c.entries[j-1].Term {
			return fmt.Errorf("log: entry %d of term %d in the chunk from %d, terms %d to %d", e.Index, e.Term, c.lo, c.loT,
				c.hiT)
		}
		sum += cost(e)
	}
	if sum != c.resident {
		return fmt.Errorf("log: chunk from %d: %d resident bytes, says %d", c.lo, sum, c.resident)
	}
	return nil
}
