package issmodel

import (
	"flag"
	"fmt"
	"hash/maphash"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

var deep = flag.Bool("iss.deep", false, "search everything: some minutes, some GB")

// TestMain keeps a deep search below 4 GB.
func TestMain(m *testing.M) {
	flag.Parse()
	if *deep {
		debug.SetMemoryLimit(3 << 30)
	}
	m.Run()
}

const (
	quickLimit = 1_500_000
	deepLimit  = 60_000_000
)

// space is a model: where it begins, what may come next, and what must hold.
type space[S comparable] interface {
	beginning() S
	// each calls yield for every state that may come next, always in the same order.
	each(s *S, yield func(step, *S))
	// mirror is the state with members exchanged that play the same part.
	mirror(s *S) S
	// judge says what is wrong with a state; "" nothing.
	judge(s *S) string
}

// step says what happened between two states: a sentence, and what to put into it. {m} is a member,
// {v} a value; {n} stands for any other number.
type step struct {
	text string
	args [4]uint8
}

func (t step) String() string {
	out, rest := "", t.text
	for _, arg := range t.args {
		before, after, found := strings.Cut(rest, "{")
		if !found {
			break
		}
		out += before
		switch after[0] {
		case 'm':
			out += fmt.Sprint(arg + 1)
		case 'v':
			out += valueName(arg)
		default:
			out += fmt.Sprint(arg)
		}
		rest = after[2:]
	}
	return out + rest
}

// fingerprints is a set of hashes. Two of n states have the same one with a probability of n²/2⁶⁵.
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

// origin says how a state was reached first: which successor of which state.
type origin struct {
	parent uint32
	branch uint16
}

// result is what a search found.
type result struct {
	states int
	depth  int
	wrong  string
	trace  []string
	// whole: every reachable state was seen.
	whole bool
}

// explore visits all reachable states, the nearest first, until one is wrong or there are too many.
func explore[S comparable](m space[S], limit int) result { return visit(m, limit, nil) }

// visit is explore, and calls on for every step from a state.
func visit[S comparable](m space[S], limit int, on func(*S, step)) result {
	seed, first := maphash.MakeSeed(), m.beginning()
	hash := func(s *S) uint64 {
		mirror := m.mirror(s)
		return min(maphash.Comparable(seed, *s), maphash.Comparable(seed, mirror))
	}
	var seen fingerprints
	seen.add(hash(&first))
	origins := []origin{{}}
	level, numbers := []S{first}, []uint32{0}
	for depth := 0; ; depth++ {
		if len(level) == 0 || len(origins) > limit {
			return result{len(origins), depth, "", nil, len(level) == 0}
		}
		var next []S
		var ids []uint32
		for i := range level {
			wrong, branch := "", uint16(0)
			m.each(&level[i], func(t step, n *S) {
				branch++
				if on != nil {
					on(&level[i], t)
				}
				if wrong != "" || !seen.add(hash(n)) {
					return
				}
				ids = append(ids, uint32(len(origins)))
				origins = append(origins, origin{numbers[i], branch})
				next = append(next, *n)
				wrong = m.judge(n)
			})
			if wrong != "" {
				return result{len(origins), depth + 1, wrong, trace(m, origins), false}
			}
		}
		level, numbers = next, ids
	}
}

// trace tells the way to the state that was found last.
func trace[S comparable](m space[S], origins []origin) (out []string) {
	var branches []uint16
	for at := len(origins) - 1; at != 0; at = int(origins[at].parent) {
		branches = append(branches, origins[at].branch)
	}
	now := m.beginning()
	for i := len(branches) - 1; i >= 0; i-- {
		branch, found := uint16(0), now
		m.each(&now, func(t step, n *S) {
			if branch++; branch == branches[i] {
				out = append(out, t.String())
				found = *n
			}
		})
		now = found
	}
	return out
}

// run searches, and fails the test if what is found is not what is wanted: how the judge's words
// begin, or "" for nothing in all states there are.
func run[S comparable](t *testing.T, m space[S], limit int, want string) {
	t.Helper()
	began := time.Now()
	r := explore(m, limit)
	t.Logf("%d states, %d steps, all: %v, %s", r.states, r.depth, r.whole, time.Since(began).Truncate(10*time.Millisecond))
	switch {
	case want == "" && r.wrong != "", want != "" && !strings.HasPrefix(r.wrong, want):
		t.Errorf("want %q, found %q\n%s", want, r.wrong, strings.Join(r.trace, "\n"))
	case want == "" && !r.whole:
		t.Errorf("more than %d states", limit)
	case want != "":
		t.Logf("%s\n%s", r.wrong, strings.Join(r.trace, "\n"))
	}
}
