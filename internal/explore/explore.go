package explore

import (
	"hash/maphash"
	"strings"
	"testing"
	"time"
)

// Space is a model: the initial state, the next states, and the invariant. T describes a step between two states.
type Space[S comparable, T any] struct {
	Beginning S
	// Each calls yield for every next state, always in the same order.
	Each func(s *S, yield func(T, *S))
	// Describe describes a step in words, for the trace.
	Describe func(T) string
	// Judge describes an error in a state; "": there is none.
	Judge func(s *S) string
	// Mirror is the state with members of the same role exchanged; nil: there are none.
	Mirror func(s *S) S
	// Normalize removes from a state what has no effect any more, and reports whether to continue from there; nil:
	// everything has an effect.
	Normalize func(s *S) bool
	// Show describes the erroneous state, after the trace; nil: it is not described.
	Show func(s *S) string
}

// Result is the result of a search.
type Result struct {
	States int
	Depth  int
	Wrong  string
	Trace  []string
	// Whole: every reachable state was visited.
	Whole bool
}

// Run searches, and fails the test unless the error that it finds begins with want; "" expects none in all states.
func Run[S comparable, T any](t *testing.T, m Space[S, T], limit int, want string) {
	t.Helper()
	began := time.Now()
	r := Search(m, limit, nil)
	t.Logf("%d states, %d steps, all: %v, %s", r.States, r.Depth, r.Whole, time.Since(began).Truncate(10*time.Millisecond))
	switch {
	case want == "" && r.Wrong != "", want != "" && !strings.HasPrefix(r.Wrong, want):
		t.Errorf("want %q, found %q\n%s", want, r.Wrong, strings.Join(r.Trace, "\n"))
	case want == "" && !r.Whole:
		t.Errorf("more than %d states", limit)
	case want != "":
		t.Logf("%s\n%s", r.Wrong, strings.Join(r.Trace, "\n"))
	}
}

// origin is how a state was first reached: as which successor of which state.
type origin struct {
	parent uint32
	branch uint16
}

type search[S comparable, T any] struct {
	Space[S, T]
	seed    maphash.Seed
	seen    fingerprints
	origins []origin
	on      func(*S, T)
}

// known is a visited state, and its number among origins.
type known[S comparable] struct {
	state  S
	number uint32
}

// Search visits all reachable states, the nearest first, until it finds an error or there are more than limit. on,
// unless it is nil, is called for every step from a state.
func Search[S comparable, T any](m Space[S, T], limit int, on func(*S, T)) Result {
	s := &search[S, T]{Space: m, seed: maphash.MakeSeed(), origins: []origin{{}}, on: on}
	s.seen.add(s.hash(&m.Beginning))
	level := []known[S]{{m.Beginning, 0}}
	for depth := 0; ; depth++ {
		if len(level) == 0 || len(s.origins) > limit {
			return Result{States: len(s.origins), Depth: depth, Whole: len(level) == 0}
		}
		var next []known[S]
		for i := range level {
			found, wrong := s.visit(&level[i], next)
			if wrong != "" {
				return Result{States: len(s.origins), Depth: depth + 1, Wrong: wrong, Trace: s.trace()}
			}
			next = found
		}
		level = next
	}
}

// visit adds the new successors of a state to next. It stops at the first error.
func (s *search[S, T]) visit(from *known[S], next []known[S]) (_ []known[S], wrong string) {
	branch := uint16(0)
	s.Each(&from.state, func(t T, n *S) {
		branch++
		if s.on != nil {
			s.on(&from.state, t)
		}
		if wrong != "" {
			return
		}
		goesOn := s.Normalize == nil || s.Normalize(n)
		if !s.seen.add(s.hash(n)) {
			return
		}
		if goesOn {
			next = append(next, known[S]{*n, uint32(len(s.origins))})
		}
		s.origins = append(s.origins, origin{from.number, branch})
		wrong = s.Judge(n)
	})
	return next, wrong
}

// hash is equal for a state and its mirror image.
func (s *search[S, T]) hash(n *S) uint64 {
	h := maphash.Comparable(s.seed, *n)
	if s.Mirror != nil {
		h = min(h, maphash.Comparable(s.seed, s.Mirror(n)))
	}
	return h
}

// trace describes the path to the last visited state.
func (s *search[S, T]) trace() (out []string) {
	var branches []uint16
	for at := len(s.origins) - 1; at != 0; at = int(s.origins[at].parent) {
		branches = append(branches, s.origins[at].branch)
	}
	now := s.Beginning
	for i := len(branches) - 1; i >= 0; i-- {
		branch, found := uint16(0), now
		s.Each(&now, func(t T, n *S) {
			if branch++; branch == branches[i] {
				out, found = append(out, s.Describe(t)), *n
				if s.Normalize != nil {
					s.Normalize(&found)
				}
			}
		})
		now = found
	}
	if s.Show != nil {
		out = append(out, s.Show(&now))
	}
	return out
}

// fingerprints is a set of hashes.
type fingerprints struct {
	slots []uint64
	n     int
}

func (f *fingerprints) add(h uint64) bool {
	if 10*f.n >= 7*len(f.slots) {
		old := f.slots
		f.slots, f.n = make([]uint64, max(1<<16, 2*len(old))), 0
		for _, h := range old {
			if h != 0 {
				f.add(h)
			}
		}
	}
	h = max(h, 1)
	mask := uint64(len(f.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		switch f.slots[i] {
		case h:
			return false
		case 0:
			f.slots[i] = h
			f.n++
			return true
		}
	}
}
