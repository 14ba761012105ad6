package epaxos

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// plan is a set of commands with dependencies on each other.
type plan struct {
	ids  []ID
	deps map[ID]Vector
	noop map[ID]bool
}

func randomPlan(random *rand.Rand) plan {
	p := plan{deps: map[ID]Vector{}, noop: map[ID]bool{}}
	columns, numbers := 1+random.IntN(4), 1+random.IntN(5)
	near := random.IntN(3)
	for n := 1; n <= numbers; n++ {
		for c := 1; c <= columns; c++ {
			v := make(Vector, columns)
			for i := range v {
				v[i] = uint64(min(numbers, max(0, n-2+random.IntN(2+near))))
			}
			id := ID{Column(c), uint64(n)}
			p.ids, p.deps[id], p.noop[id] = append(p.ids, id), v.own(id), random.IntN(3) == 0
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

// The order of execution is that of the naive rule, at whatever time decisions arrive and however little work a step
// does, and no command waits that could be executed.
func TestGraphOrders(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		p := randomPlan(random)
		reach := p.reach()
		g, decided, place := NewGraph(nil), map[ID]bool{}, map[ID]int{}
		take := func(components []Component) {
			for _, c := range components {
				for _, id := range c {
					require.True(t, g.Executed().Covers(id))
					require.NotContains(t, place, id)
					place[id] = len(place)
				}
				p.requireNeeded(t, reach, place)
			}
			require.NoError(t, g.check())
		}
		for _, at := range random.Perm(len(p.ids)) {
			id := p.ids[at]
			decided[id] = true
			g.Decide(id, p.deps[id], p.noop[id])
			g.Decide(id, nil, false) // again, which has no effect
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
		p.requireDone(t, reach, decided, place)
		require.Zero(t, g.Waiting())
		p.requireOrder(t, reach, place)
	}
}

// requireNeeded: exactly those no-ops were executed on which an executed command depends, so members that have
// executed the same commands have executed the same no-ops (rule 12).
func (p *plan) requireNeeded(t *testing.T, reach map[ID]map[ID]bool, place map[ID]int) {
	t.Helper()
	needed := map[ID]bool{}
	for id := range place {
		for other := range reach[id] {
			needed[other] = needed[other] || !p.noop[id]
		}
	}
	for id := range place {
		require.True(t, !p.noop[id] || needed[id], "no-op %s", id)
	}
	for id := range needed {
		_, executed := place[id]
		require.True(t, executed || !needed[id], "command %s", id)
	}
}

// requireDone: exactly the commands that depend only on decided ones were executed, except for no-ops on which
// nothing depends.
func (p *plan) requireDone(t *testing.T, reach map[ID]map[ID]bool, decided map[ID]bool, place map[ID]int) {
	t.Helper()
	for _, id := range p.ids {
		able := decided[id]
		for other := range reach[id] {
			able = able && decided[other]
		}
		_, executed := place[id]
		require.True(t, able == executed || p.noop[id] && able, "command %s", id)
	}
}

func (p *plan) requireOrder(t *testing.T, reach map[ID]map[ID]bool, place map[ID]int) {
	t.Helper()
	for _, a := range p.ids {
		for _, b := range p.ids {
			switch {
			case a == b || !reach[b][a] || p.noop[a] || p.noop[b]:
			case !reach[a][b], a.compare(b) < 0:
				require.Less(t, place[a], place[b], "%s and %s", a, b)
			}
		}
	}
}

// A long chain needs no deep stack, and a step does no more work than allowed.
func TestGraphWorkIsBounded(t *testing.T) {
	const long = 100_000
	g := NewGraph(nil)
	for n := uint64(long); n > 1; n-- {
		g.Decide(ID{1, n}, nil, false)
	}
	ids, _ := g.Run(10*long, nil)
	require.Empty(t, ids)
	require.Equal(t, []ID{{1, 1}}, g.Blockers(5))
	g.Decide(ID{1, 1}, nil, false)
	steps := 0
	for more := true; more; steps++ {
		before := len(ids)
		ids, more = g.Run(100, ids)
		require.LessOrEqual(t, len(ids)-before, 100)
	}
	require.Len(t, ids, long)
	require.Greater(t, steps, long/100)
}

// Commands that were executed before are not requested.
func TestGraphBeginsAfterASnapshot(t *testing.T) {
	g := NewGraph(Vector{4, 2})
	g.Decide(ID{1, 3}, nil, false)
	g.Decide(ID{1, 5}, Vector{0, 3}, false)
	ids, _ := g.Run(100, nil)
	require.Empty(t, ids)
	require.Equal(t, []ID{{2, 3}}, g.Blockers(5))
	g.Decide(ID{2, 3}, Vector{5}, false)
	ids, _ = g.Run(100, nil)
	require.Equal(t, []Component{{{2, 3}, {1, 5}}}, ids)
	require.Equal(t, Vector{5, 3}, g.Executed())
}
