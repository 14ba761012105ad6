package raft

import (
	"fmt"
	"slices"
	"sort"

	"github.com/braidlog/braid/protocol"
)

// memlog is the log in memory: all envelopes after the base, and the payloads that the
// cache has room for.
//
// Slices of it are in messages that others read later. Therefore an entry is never written to
// again once it is appended. The log grows at the end of its last chunk. Truncation shortens a
// chunk and clips its capacity, so that the next append moves to fresh memory. Packing a chunk
// leaves its old memory to those that still read it.
type memlog struct {
	base  protocol.Index // the index before the first entry
	baseT protocol.Term  // its term
	last  protocol.Index // base if there are no entries
	lastT protocol.Term
	// chunks hold base+1 … last without gap; none is empty.
	chunks []chunk
	// shaped is the last EntryReshape; 0: there was none. If entries before the log's first are not
	// known, it is the base of a woven log; ≤ last.
	shaped protocol.Index

	// resident is the sum of the chunks' resident. It exceeds limit by no more than what
	// is not durable yet plus two chunks.
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
	chunkShare   = 16 // a chunk is full with 1/chunkShare of the cache
	// entryCost is an entry's memory besides its payload: the struct and the encoded head.
	entryCost = 128 + protocol.HeadSize
)

func cost(e *protocol.Entry) int { return entryCost + len(e.Payload) + len(e.Body) }

func (c *chunk) last() protocol.Index { return c.lo + protocol.Index(c.n) - 1 }

func newLog(base protocol.Index, term protocol.Term, limit int) memlog {
	return memlog{base: base, baseT: term, last: base, lastT: term, limit: limit}
}

// logAfter is an empty log after a base.
func logAfter(base *protocol.Base, limit int) memlog {
	l := newLog(base.Index, base.Term, limit)
	if base.Round > 0 {
		l.shaped = base.Index
	}
	return l
}

// append adds the entry after the last one.
func (l *memlog) append(e protocol.Entry) {
	if e.Index != l.last+1 {
		panic(fmt.Sprintf("raft: append of %d after %d", e.Index, l.last))
	}
	if e.Kind == protocol.EntryReshape {
		l.shaped = e.Index
	}
	n := len(l.chunks)
	if n == 0 || l.chunks[n-1].packed != nil || l.chunks[n-1].n >= chunkEntries || l.chunks[n-1].resident >= max(1, l.limit/chunkShare) {
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
	l.last, l.lastT = e.Index, e.Term
}

// find returns the chunk that holds i, which must be in the log.
func (l *memlog) find(i protocol.Index) int {
	n := len(l.chunks)
	if l.chunks[n-1].lo <= i {
		return n - 1
	}
	return sort.Search(n, func(k int) bool { return l.chunks[k].lo > i }) - 1
}

// open returns the entries of a chunk, unpacked if need be.
func (l *memlog) open(k int) []protocol.Entry {
	c := &l.chunks[k]
	if c.packed == nil {
		return c.entries
	}
	if l.opened == nil || l.openedLo != c.lo {
		l.openedLo, l.opened = c.lo, unpack(c)
	}
	return l.opened
}

// at returns the entry at i, which must be in the log. It is read only.
func (l *memlog) at(i protocol.Index) *protocol.Entry {
	k := l.find(i)
	return &l.open(k)[i-l.chunks[k].lo]
}

// each calls f with the entries from lo to hi, both included, until f fails. They must be in the log. An
// entry of a packed chunk is not sealed, and lasts as long as the call. So checks can look at all of a
// long log after each step, and memory for whole chunks is not needed.
func (l *memlog) each(lo, hi protocol.Index, f func(*protocol.Entry) error) error {
	if lo > hi {
		return nil
	}
	var room *protocol.Entry
	for k := l.find(lo); k < len(l.chunks) && l.chunks[k].lo <= hi; k++ {
		c := &l.chunks[k]
		var err error
		if c.packed == nil || l.opened != nil && l.openedLo == c.lo {
			err = eachOf(l.run(max(lo, c.lo), hi+1), f)
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

// term returns the term of the entry at i, or of the base; false where it is not known.
func (l *memlog) term(i protocol.Index) (protocol.Term, bool) {
	switch {
	case i == l.last:
		return l.lastT, true
	case i == l.base:
		return l.baseT, true
	case i < l.base || i > l.last:
		return 0, false
	}
	if c := &l.chunks[l.find(i)]; c.loT == c.hiT {
		return c.loT, true
	}
	return l.at(i).Term, true
}

// matches reports whether the log has an entry (or its base) with that index and term.
func (l *memlog) matches(i protocol.Index, t protocol.Term) bool {
	have, ok := l.term(i)
	return ok && have == t
}

// back returns the highest index ≤ i whose term is at most t, and that term: the best
// guess at where a log with term t at i may match this one. Terms never fall along a
// log, so whole terms are skipped. It stops at the base.
func (l *memlog) back(i protocol.Index, t protocol.Term) (protocol.Index, protocol.Term) {
	i = min(i, l.last)
	if i <= l.base {
		return l.base, l.baseT
	}
	n := sort.Search(int(i-l.base), func(k int) bool {
		have, _ := l.term(i - protocol.Index(k))
		return have <= t
	})
	i -= protocol.Index(n)
	have, _ := l.term(i)
	return i, have
}

// frame returns entries from lo on, as many as the limits allow, but at least one if
// there is any. limit 0 for the number means no limit.
func (l *memlog) frame(lo protocol.Index, maxBytes, maxEntries int) []protocol.Entry {
	if lo > l.last {
		return nil
	}
	if maxEntries == 0 {
		maxEntries = int(l.last-lo) + 1
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

// run returns entries from lo on, before hi, as many as one chunk holds.
func (l *memlog) run(lo, hi protocol.Index) []protocol.Entry {
	k := l.find(lo)
	entries := l.open(k)
	from := int(lo - l.chunks[k].lo)
	to := min(len(entries), from+int(hi-lo))
	return entries[from:to:to]
}

// slice returns the entries lo ≤ i < hi, which must be in the log.
func (l *memlog) slice(lo, hi protocol.Index) []protocol.Entry {
	if run := l.run(lo, hi); len(run) == int(hi-lo) {
		return run
	}
	if l.spanLo == lo && l.spanHi == hi && l.span != nil {
		return l.span
	}
	out := make([]protocol.Entry, 0, hi-lo)
	for at := lo; at < hi; at = lo + protocol.Index(len(out)) {
		out = append(out, l.run(at, hi)...)
	}
	l.spanLo, l.spanHi, l.span = lo, hi, out
	return out
}

// truncate removes the entries from i on.
func (l *memlog) truncate(i protocol.Index) {
	l.shaped = min(l.shaped, i-1)
	for len(l.chunks) > 0 && l.last >= i {
		k := len(l.chunks) - 1
		c := &l.chunks[k]
		if c.lo >= i {
			l.last = c.lo - 1
			l.resident -= c.resident
			l.chunks[k] = chunk{}
			l.chunks = l.chunks[:k]
			continue
		}
		n := int(i - c.lo)
		l.replace(k, l.open(k)[:n:n])
		l.last = i - 1
	}
	l.span, l.opened = nil, nil
	l.shed = min(l.shed, max(0, len(l.chunks)-1))
	l.lastT = l.baseT
	if n := len(l.chunks); n > 0 {
		l.lastT = l.chunks[n-1].hiT
	}
}

// compact makes i, which is in the log, the base.
func (l *memlog) compact(i protocol.Index) {
	l.baseT, _ = l.term(i)
	l.base = i
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
}

// replace gives a chunk other entries, not packed and not none.
func (l *memlog) replace(k int, entries []protocol.Entry) {
	l.resident -= l.chunks[k].resident
	c := chunk{lo: entries[0].Index, n: len(entries), loT: entries[0].Term, hiT: entries[len(entries)-1].Term,
		entries: entries, maxK: l.chunks[k].maxK}
	for j := range entries {
		c.resident += cost(&entries[j])
	}
	l.resident += c.resident
	l.chunks[k] = c
}

// amend replaces form and body of entries in the log by those given, ascending. Slices that were
// handed out before keep the old ones.
func (l *memlog) amend(entries []protocol.Entry) {
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

// maxK is no less than the largest k of the entries in the log.
func (l *memlog) maxK() (k uint8) {
	for i := range l.chunks {
		k = max(k, l.chunks[i].maxK)
	}
	return k
}

// drop forgets payloads and packs envelopes, oldest first, until the cache is within its
// limit: only whole chunks that are durable, and never the one that still grows.
func (l *memlog) drop(durable protocol.Index) {
	for l.resident > l.limit && l.shed < len(l.chunks)-1 && l.chunks[l.shed].last() <= durable {
		c := &l.chunks[l.shed]
		l.shed++
		if c.packed == nil {
			c.packed = pack(c.entries)
			l.resident -= c.resident
			c.entries, c.resident = nil, 0
		}
	}
}

// checkedChunks is how many chunks at the end are checked entry by entry: the ones before
// them do not change any more.
const checkedChunks = 2

// check verifies the invariants.
func (l *memlog) check() error {
	next, term, resident := l.base+1, l.baseT, 0
	for k := range l.chunks {
		c := &l.chunks[k]
		if c.n == 0 || c.lo != next || c.loT < term || c.hiT < c.loT || (c.packed == nil) != (len(c.entries) == c.n) {
			return fmt.Errorf("log: chunk %d does not go on at %d of term %d", k, next, term)
		}
		if k >= len(l.chunks)-checkedChunks && c.packed == nil {
			if err := c.check(); err != nil {
				return err
			}
		}
		next, term = c.last()+1, c.hiT
		resident += c.resident
	}
	if next-1 != l.last || term != l.lastT || resident != l.resident || l.shed > len(l.chunks) {
		return fmt.Errorf("log: ends at %d of term %d with %d bytes, says %d of term %d with %d",
			next-1, term, resident, l.last, l.lastT, l.resident)
	}
	return nil
}

func (c *chunk) check() error {
	sum := 0
	for j := range c.entries {
		e := &c.entries[j]
		if e.Index != c.lo+protocol.Index(j) || e.Term < c.loT || e.Term > c.hiT || j > 0 && e.Term < c.entries[j-1].Term {
			return fmt.Errorf("log: entry %d of term %d in the chunk from %d, terms %d to %d", e.Index, e.Term, c.lo, c.loT, c.hiT)
		}
		sum += cost(e)
	}
	if sum != c.resident {
		return fmt.Errorf("log: chunk from %d: %d resident bytes, says %d", c.lo, sum, c.resident)
	}
	return nil
}
