package order

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

type logs map[protocol.InstanceID][]protocol.Entry

// slot is one slot of an instance as docs/internals/niagara.md, 3.1 defines it, and the entries before it in its
// turn.
type slot struct {
	before []protocol.Entry
	filled bool
	entry  *protocol.Entry // nil where a skip fills it
}

// slots divides a log into slots, from the round after which its instance begins; the last slot is not filled.
func slots(log []protocol.Entry, begin protocol.Round) []slot {
	out := make([]slot, 1)
	fill := func(e *protocol.Entry) {
		s := &out[len(out)-1]
		s.filled, s.entry = true, e
		out = append(out, slot{})
	}
	for i := range log {
		switch e := &log[i]; e.Kind {
		case protocol.EntryBatch, protocol.EntryReshape:
			fill(e)
		case protocol.EntryConfig, protocol.EntryEmpty:
			s := &out[len(out)-1]
			s.before = append(s.before, *e)
		case protocol.EntrySkip:
			for begin+protocol.Round(len(out)) <= e.Round() {
				fill(nil)
			}
		}
	}
	return out
}

// merged is the result of the definition: round by round, by instance, until a slot is not filled.
type merged struct {
	placed   []string
	at       Slot
	position protocol.Position
}

func (m *merged) place(instance protocol.InstanceID, e *protocol.Entry) {
	m.placed = append(m.placed, fmt.Sprintf("%d/%d @%d", instance, e.Index, m.position+1))
	m.position += protocol.Position(e.Width())
}

func merge(all logs, instances int) (m merged) {
	shape := Begin(instances, true)
	begins := map[protocol.InstanceID]protocol.Round{}
	spread := map[protocol.InstanceID][]slot{}
	for _, r := range shape.Instances() {
		spread[r] = slots(all[r], 0)
	}
	ids, fresh := shape.Instances(), shape.Fresh
	for round := protocol.Round(1); ; round++ {
		want := 0
		for _, r := range ids {
			m.at = Slot{round, r}
			s := spread[r][round-1-begins[r]]
			for i := range s.before {
				m.place(r, &s.before[i])
			}
			switch {
			case !s.filled:
				return m
			case s.entry == nil:
			case s.entry.Kind == protocol.EntryReshape:
				want = s.entry.Instances()
			default:
				m.place(r, s.entry)
			}
		}
		if want == 0 {
			continue
		}
		for len(ids) < want {
			ids = append(ids, fresh)
			begins[fresh], spread[fresh] = round, slots(all[fresh], round)
			fresh++
		}
		ids = ids[:want]
		m.placed = append(m.placed, fmt.Sprintf("%v @%d", ids, m.position+1))
		m.position++
	}
}

func randomEntry(rng *rand.Rand, index protocol.Index, round *protocol.Round) protocol.Entry {
	var e protocol.Entry
	switch p := rng.IntN(100); {
	case p < 55:
		e = batch(0, uint32(1+rng.IntN(3)))
		*round++
	case p < 75: // often behind, sometimes far ahead
		to := int(*round) - 2 + rng.IntN(6)
		if rng.IntN(4) == 0 {
			to += rng.IntN(40)
		}
		e = protocol.NewSkip(protocol.Round(max(0, to)))
		*round = max(*round, e.Round())
	case p < 85:
		e = protocol.Entry{Kind: protocol.EntryNoop}
	case p < 91:
		e = protocol.Entry{Kind: protocol.EntryConfig}
	case p < 97:
		e = protocol.NewEmpty(1)
	default:
		e = protocol.NewReshape(1 + rng.IntN(4))
		*round++
	}
	e.Index, e.Term = index, protocol.Term(1+index/10)
	return e
}

const mostIDs = 12

func randomLogs(rng *rand.Rand, instances int) logs {
	all := logs{}
	for r := range protocol.InstanceID(mostIDs) {
		round := protocol.Round(0)
		if int(r) >= instances {
			round = protocol.Round(rng.IntN(30))
		}
		for i := range rng.IntN(60) {
			all[r+1] = append(all[r+1], randomEntry(rng, protocol.Index(i+1), &round))
		}
	}
	return all
}

// orderer is one member's order in the randomized test.
type orderer struct {
	t         *testing.T
	instances int
	all       logs
	order     *Niagara
	added     logs // prefixes of all: the entries that the member knows to be committed
	placed    []string
}

func text(p *Placed) string {
	if p.Entry.Kind == protocol.EntryReshape {
		return fmt.Sprintf("%v @%d", p.Plan.At.Instances(), p.First)
	}
	return fmt.Sprintf("%d/%d @%d", p.Instance, p.Entry.Index, p.First)
}

// add adds more entries of a random existing instance, often some of them again.
func (w *orderer) add(rng *rand.Rand, most int) {
	c := w.order.Cursor()
	r := protocol.InstanceID(1 + rng.IntN(int(c.Fresh)-1))
	log := w.all[r]
	from := len(w.added[r])
	to := min(len(log), from+rng.IntN(most+1))
	from = max(0, from-rng.IntN(4))
	if p := c.Point(r); p.Index > 0 && rng.IntN(2) == 0 {
		from = min(from, int(p.Index)-1)
	}
	if slices.ContainsFunc(c.Points, func(p Point) bool { return p.Instance == r }) {
		from = min(from, int(w.order.Added(r)))
	}
	w.order.Add(r, log[from:to])
	w.added[r] = log[:max(to, len(w.added[r]))]
}

// next consumes what can be consumed, and compares it with the definition.
func (w *orderer) next() {
	require.NoError(w.t, w.order.Check())
	var placed []Placed
	placed = w.order.Next(placed)
	for i := range placed {
		w.placed = append(w.placed, text(&placed[i]))
	}
	require.NoError(w.t, w.order.Check())
	at := w.order.Cursor()
	want := merge(w.known(at), w.instances) // N2: the contiguous prefix, all of it
	require.Equal(w.t, want.placed, w.placed)
	require.Equal(w.t, want.at, at.Next)
	require.Equal(w.t, want.position, at.Position)
}

// known is what the order knows: the entries that were added, and how far an installed cursor was within the skips
// after its points.
func (w *orderer) known(at Cursor) logs {
	known := logs{}
	for r, log := range w.added {
		known[r] = slices.Clone(log)
	}
	for _, p := range at.Points {
		if len(known[p.Instance]) == int(p.Index) {
			known[p.Instance] = append(known[p.Instance], protocol.NewSkip(p.Round))
		}
	}
	return known
}

// install installs another member's cursor; the snapshot covers the entries up to its points.
func (w *orderer) install(from *orderer) {
	before, to := w.order.Cursor(), from.order.Cursor()
	w.order.Install(to)
	require.NoError(w.t, w.order.Check())
	if !before.Before(&to) {
		require.Equal(w.t, before, w.order.Cursor())
		return
	}
	require.Equal(w.t, to, w.order.Cursor())
	w.placed = slices.Clone(from.placed)
	for r, log := range from.added { // including retired instances
		p := int(to.Point(r).Index)
		if !slices.ContainsFunc(to.Points, func(p Point) bool { return p.Instance == r }) {
			p = len(log)
		}
		w.added[r] = w.all[r][:max(p, len(w.added[r]))]
	}
}

// restart continues from the cursor, as after a crash right after a snapshot.
func (w *orderer) restart() {
	c := w.order.Cursor()
	w.order = NewNiagara(c.Clone())
	for _, p := range c.Points {
		w.added[p.Instance] = w.all[p.Instance][:p.Index]
	}
}

// N1, N2: members that learn the same logs in different orders, repeatedly, in pieces, with snapshots and restarts in
// between, place the same entries at the same positions: those of the definition.
func TestNiagaraIsTheMergeByDefinition(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		instances := 1 + rng.IntN(4)
		all := randomLogs(rng, instances)
		members := make([]*orderer, 3)
		for i := range members {
			members[i] = &orderer{t: t, instances: instances, all: all, order: NewNiagara(Begin(instances, true)), added: logs{}}
		}
		for range 120 {
			w := members[rng.IntN(len(members))]
			switch p := rng.IntN(20); {
			case p < 12:
				w.add(rng, 8)
			case p < 17:
				w.next()
			case p < 18:
				w.install(members[rng.IntN(len(members))])
			default:
				w.restart()
			}
		}
		for _, w := range members {
			for before := (Slot{}); before != w.order.Cursor().Next; {
				before = w.order.Cursor().Next
				for range 200 {
					w.add(rng, 60)
				}
				w.next()
			}
			require.Equal(t, members[0].placed, w.placed, "seed %d", seed)
		}
	}
}

// A cursor is ahead of another exactly if its prefix of the global log is longer.
func TestCursorsAreOrdered(t *testing.T) {
	o := NewNiagara(Begin(2, true))
	var cursors []Cursor
	at := func() { cursors = append(cursors, o.Cursor()) }
	at()
	config := func(i protocol.Index) protocol.Entry { return protocol.Entry{Kind: protocol.EntryConfig, Index: i} }
	for _, step := range []struct {
		instance protocol.InstanceID
		entry    protocol.Entry
	}{
		{1, config(1)}, {1, batch(2, 1)}, {2, config(1)}, {2, config(2)}, {2, batch(3, 1)}, {1, config(3)}, {1, batch(4, 1)},
	} {
		o.Add(step.instance, []protocol.Entry{step.entry})
		o.Next(nil)
		at()
	}
	for i := range cursors {
		for j := range cursors {
			require.Equal(t, i < j, cursors[i].Before(&cursors[j]), "%d, %d", i, j)
		}
	}
}

func TestNiagaraRefusesACursorThatCannotBe(t *testing.T) {
	c := Begin(2, true)
	c.Next.Instance = 3
	require.Panics(t, func() { NewNiagara(c) })
}

func BenchmarkNiagaraNext(b *testing.B) {
	for _, instances := range []int{1, 4, 12} {
		b.Run(fmt.Sprint("R=", instances), func(b *testing.B) {
			o := NewNiagara(Begin(instances, true))
			entries := make([]protocol.Entry, 1)
			var out []Placed
			b.ReportAllocs()
			for i := range b.N { // one entry: each instance in its turn
				entries[0] = batch(protocol.Index(i/instances+1), 1)
				o.Add(protocol.InstanceID(i%instances+1), entries)
				if out = o.Next(out[:0]); len(out) != 1 {
					b.Fatal(len(out))
				}
			}
		})
	}
}
