package epaxos

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// plan is a set of commands with dependencies on each other.
type plan struct {
	ids  []ID
	deps map[ID]Vector
}

func randomPlan(random *rand.Rand) plan {
	p := plan{deps: map[ID]Vector{}}
	columns, numbers := 1+random.IntN(4), 1+random.IntN(5)
	near := random.IntN(3)
	for n := 1; n <= numbers; n++ {
		for c := 1; c <= columns; c++ {
			v := make(Vector, columns)
			for i := range v {
				v[i] = uint64(min(numbers, max(0, n-2+random.IntN(2+near))))
			}
			id := ID{Column(c), uint64(n)}
			p.ids, p.deps[id] = append(p.ids, id), v.own(id)
		}
	}
	return p
}

// reach is what each command depends on, directly or not.
func (p *plan) reach() map[ID]map[ID]bool {
	out := map[ID]map[ID]bool{}
	for _, id := range p.ids {
		seen, rest := map[ID]bool{}, []ID{id}
		for len(rest) > 0 {
			next := rest[0]
			rest = rest[1:]
			for _, other := range p.ids {
				if p.deps[next].Covers(other) && !seen[other] {
					seen[other] = true
					rest = append(rest, other)
				}
			}
		}
		out[id] = seen
	}
	return out
}

// The order of execution is that of the naive rule, whenever decisions come and however little is looked
// at in a step, and nothing waits that has what it needs.
func TestGraphOrders(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		p := randomPlan(random)
		reach := p.reach()
		g, decided, place := NewGraph(nil), map[ID]bool{}, map[ID]int{}
		take := func(components []Component) {
			for _, id := range slices.Concat(components...) {
				require.Equal(t, g.Executed().At(id.Column) >= id.Number, true)
				place[id] = len(place)
			}
			require.NoError(t, g.check())
		}
		for _, at := range random.Perm(len(p.ids)) {
			id := p.ids[at]
			decided[id] = true
			g.Decide(id, p.deps[id])
			g.Decide(id, nil) // again: it makes no difference
			require.NoError(t, g.check())
			if random.IntN(2) == 0 {
				ids, _ := g.Run(1+random.IntN(6), nil)
				take(ids)
			}
			if random.IntN(4) == 0 {
				ids, more := g.Run(1<<20, nil)
				require.False(t, more)
				take(ids)
				p.requireDone(t, reach, decided, place)
			}
		}
		ids, _ := g.Run(1<<20, nil)
		take(ids)
		require.Len(t, place, len(p.ids))
		require.Zero(t, g.Waiting())
		p.requireOrder(t, reach, place)
	}
}

// requireDone: exactly what depends on decided commands alone was executed.
func (p *plan) requireDone(t *testing.T, reach map[ID]map[ID]bool, decided map[ID]bool, place map[ID]int) {
	t.Helper()
	for _, id := range p.ids {
		able := decided[id]
		for other := range reach[id] {
			able = able && decided[other]
		}
		_, executed := place[id]
		require.Equal(t, able, executed, "command %s", id)
	}
}

func (p *plan) requireOrder(t *testing.T, reach map[ID]map[ID]bool, place map[ID]int) {
	t.Helper()
	for _, a := range p.ids {
		for _, b := range p.ids {
			switch {
			case a == b || !reach[b][a]:
			case !reach[a][b], a.compare(b) < 0:
				require.Less(t, place[a], place[b], "%s and %s", a, b)
			}
		}
	}
}

// A long chain needs no deep stack, and a step looks at no more than it is allowed to.
func TestGraphWorkIsBounded(t *testing.T) {
	const long = 100_000
	g := NewGraph(nil)
	for n := uint64(long); n > 1; n-- {
		g.Decide(ID{1, n}, nil)
	}
	ids, _ := g.Run(10*long, nil)
	require.Empty(t, ids)
	require.Equal(t, []ID{{1, 1}}, g.Blockers(5))
	g.Decide(ID{1, 1}, nil)
	steps := 0
	for more := true; more; steps++ {
		before := len(ids)
		ids, more = g.Run(100, ids)
		require.LessOrEqual(t, len(ids)-before, 100)
	}
	require.Len(t, ids, long)
	require.Greater(t, steps, long/100)
}

// What was executed before is not asked for.
func TestGraphBeginsAfterASnapshot(t *testing.T) {
	g := NewGraph(Vector{4, 2})
	g.Decide(ID{1, 3}, nil)
	g.Decide(ID{1, 5}, Vector{0, 3})
	ids, _ := g.Run(100, nil)
	require.Empty(t, ids)
	require.Equal(t, []ID{{2, 3}}, g.Blockers(5))
	g.Decide(ID{2, 3}, Vector{5})
	ids, _ = g.Run(100, nil)
	require.Equal(t, []Component{{{2, 3}, {1, 5}}}, ids)
	require.Equal(t, Vector{5, 3}, g.Executed())
}
