package draw

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
)

// Source is a source of random numbers for one purpose. In a run, they follow from the run's seed and the source's
// name.
type Source struct {
	name  string
	index int
	number
}

// sources are all sources, in the order in which they were declared.
var sources []*Source

// New declares a source. It is for package variables: it panics if the name is taken, and must not be called
// concurrently with another use of the package.
func New(name string) *Source {
	for _, s := range sources {
		if s.name == name {
			panic(fmt.Sprintf("draw: two sources of chance are named %q", name))
		}
	}
	s := &Source{name, len(sources), numberOf(name)}
	sources = append(sources, s)
	return s
}

// All returns all sources, in the order in which they were declared.
func All() []*Source { return slices.Clone(sources) }

// Name returns the name with which the source was declared.
func (s *Source) Name() string { return s.name }

// Old lists the names of the sources that have a number in saved seeds.
func Old() []string { return slices.Sorted(maps.Keys(numbers)) }

// numberOf returns the number of saved seeds, or one that follows from the name.
func numberOf(name string) number {
	if n, old := numbers[name]; old {
		return n
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	return number{stream: h.Sum64()}
}

// Of returns the source's numbers in the run of a seed, from the beginning.
func (s *Source) Of(seed uint64) Chance {
	return Chance{rand.New(rand.NewPCG(seed^s.salt, s.stream))}
}

// Hashed returns the numbers of a seed and another number. They are the same each time.
func Hashed(seed, number uint64) Chance { return Chance{rand.New(rand.NewPCG(seed, number))} }

// Chances has the random numbers of one run, from all sources. It is for one goroutine.
type Chances struct {
	seed uint64
	open []Chance // by a source's index; without a generator if nothing was drawn yet
}

// Begin returns the chances of the run of a seed, before the first draw.
func Begin(seed uint64) Chances { return Chances{seed: seed} }

// From returns a source's numbers. They continue after the last draw from the source.
func (r *Chances) From(s *Source) Chance {
	if s.index >= len(r.open) {
		r.open = append(r.open, make([]Chance, len(sources)-len(r.open))...)
	}
	c := &r.open[s.index]
	if c.Rand == nil {
		*c = s.Of(r.seed)
	}
	return *c
}
