package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// keyWrite is a write of a key, or its event.
type keyWrite struct {
	revision int64
	key      string
}

// writeLedger records the writes of a load, to compare the events of watches with them.
type writeLedger struct {
	mu     sync.Mutex
	writes []keyWrite
	sorted bool
	// unknown counts writes of a key that failed, perhaps after they took effect.
	unknown map[string]int
}

// wrote adds a write; revision 0: it failed.
func (l *writeLedger) wrote(key []byte, revision int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if revision == 0 {
		if l.unknown == nil {
			l.unknown = map[string]int{}
		}
		l.unknown[string(key)]++
		return
	}
	l.writes, l.sorted = append(l.writes, keyWrite{revision, string(key)}), false
}

// all returns the writes so far, in order of revision.
func (l *writeLedger) all() []keyWrite {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.sorted {
		slices.SortFunc(l.writes, func(a, b keyWrite) int { return cmp.Compare(a.revision, b.revision) })
		l.sorted = true
	}
	return slices.Clone(l.writes)
}

// byPrefix returns the writes of each prefix, in order of revision.
func (l *writeLedger) byPrefix(prefixes []string) map[string][]keyWrite {
	writes := l.all()
	out := make(map[string][]keyWrite, len(prefixes))
	for _, p := range prefixes {
		if _, ok := out[p]; ok {
			continue
		}
		out[p] = nil
		for _, w := range writes {
			if strings.HasPrefix(w.key, p) {
				out[p] = append(out[p], w)
			}
		}
	}
	return out
}

// cancellation says whether the server may cancel a watch because its next revision is compacted.
type cancellation int

const (
	neverCancelled cancellation = iota
	maybeCancelled
	alwaysCancelled
)

// watchLog are the events of one watch.
type watchLog struct {
	prefix string
	from   int64 // the first revision
	cancel cancellation
	// compacted is the compact revision of a cancellation; 0: any.
	compacted int64
	target    int64 // a watch with an event of this revision, or of a later one, has caught up

	mu      sync.Mutex
	events  []keyWrite
	created bool
	ended   bool   // no more events come
	reason  string // of a cancellation
	compact int64  // its compact revision
	// caughtUp is when it received the event of target or a later one.
	caughtUp time.Time
}

// last returns the revision of the last event, 0 if there is none, and whether no more events come.
func (w *watchLog) last() (revision int64, ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.events); n > 0 {
		revision = w.events[n-1].revision
	}
	return revision, w.ended
}

// check compares the events with the writes of the prefix, in order of revision. Events of writes with an unknown
// outcome may be missing.
func (w *watchLog) check(writes []keyWrite, unknown map[string]int) (violations []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	report := func(format string, args ...any) {
		violations = append(violations, fmt.Sprintf("watch of %s from revision %d: ", w.prefix, w.from)+
			fmt.Sprintf(format, args...))
	}
	if why := w.checkEnd(); why != "" {
		report("%s", why)
	}
	first, _ := slices.BinarySearchFunc(writes, w.from,
		func(a keyWrite, revision int64) int { return cmp.Compare(a.revision, revision) })
	writes = writes[first:]
	next, newest := 0, int64(0)
	surplus := map[string]int{}
	for _, e := range w.events {
		switch {
		case e.revision == newest:
			report("the event of revision %d is doubled", e.revision)
			continue
		case e.revision < newest:
			report("revision %d comes after %d", e.revision, newest)
			continue
		}
		newest = e.revision
		for next < len(writes) && writes[next].revision < e.revision {
			report("the event of revision %d is lost", writes[next].revision)
			next++
		}
		if next < len(writes) && writes[next] == e {
			next++
			continue
		}
		if surplus[e.key]++; surplus[e.key] > unknown[e.key] {
			report("there is no write of key %s at revision %d", e.key, e.revision)
		}
	}
	if !w.ended && next < len(writes) {
		report("%d events are lost from revision %d on", len(writes)-next, writes[next].revision)
	}
	return violations
}

// checkEnd returns what is wrong with the end of the watch, or that it has none.
func (w *watchLog) checkEnd() string {
	switch {
	case !w.ended && w.cancel == alwaysCancelled:
		return fmt.Sprintf("it is not cancelled, but revision %d is compacted", w.compacted)
	case !w.ended:
		return ""
	case w.cancel == neverCancelled || w.compact == 0:
		return "it ended: " + w.reason
	case w.compacted != 0 && w.compact != w.compacted:
		return fmt.Sprintf("it is cancelled with compact revision %d: the compaction was at %d", w.compact, w.compacted)
	}
	return ""
}
