package workload

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Spec describes the requests of a run's clients.
type Spec struct {
	Mix      Mix
	Keys     Keys
	KeySpace int   // number of keys at the beginning
	Values   Sizes // of updates, inserts and read-modify-writes
	// ScanLimit is the maximal number of keys of a scan, which is uniform up to it; default 100.
	ScanLimit int
	Seed      uint64
}

const (
	defaultScanLimit = 100
	maxScanLimit     = 10_000
	// MaxClients is the maximal number of clients of a workload.
	MaxClients = 1 << 19
)

// Validate returns an error that says what is wrong with the specification for a given number of
// clients.
func (s *Spec) Validate(clients int) error {
	switch {
	case clients < 1 || clients > MaxClients:
		return fmt.Errorf("%d clients: must be between 1 and %d", clients, MaxClients)
	case s.ScanLimit < 0 || s.ScanLimit > maxScanLimit:
		return fmt.Errorf("scans of %d keys: must be between 1 and %d", s.ScanLimit, maxScanLimit)
	case s.Keys.Distribution == Latest && s.Mix[Delete] > 0:
		return errors.New("keys inserted last and deletes: what is deleted would still count as the latest")
	}
	return errors.Join(s.Mix.Validate(), s.Keys.Validate(s.KeySpace, clients), s.Values.Validate())
}

// Op is one operation.
type Op struct {
	Kind  Kind
	Key   uint64 // its number
	Size  int    // bytes of the value to write, 0 if it writes none
	Limit int    // Scan: keys at most
}

// Workload is the state that the clients of one run share. It is safe for concurrent use.
type Workload struct {
	spec    Spec
	clients int
	kinds   [Kinds]float64
	front   *frontier
}

// New returns a workload for a given number of clients.
func New(s Spec, clients int) (*Workload, error) {
	if err := s.Validate(clients); err != nil {
		return nil, err
	}
	if s.ScanLimit == 0 {
		s.ScanLimit = defaultScanLimit
	}
	return &Workload{spec: s, clients: clients, kinds: s.Mix.cumulative(), front: newFrontier(s.KeySpace)}, nil
}

// Inserted records that an Insert ended, whatever its outcome: later operations may use its key.
func (w *Workload) Inserted(key uint64) { w.front.finish(key) }

// Known is the number of keys that exist or existed: those of the beginning and those whose inserts, and all earlier
// ones, have ended.
func (w *Workload) Known() uint64 { return w.front.known() }

// Generator draws the operations of one client. It is not safe for concurrent use.
type Generator struct {
	w      *Workload
	random rand.Rand
	keys   sampler
}

// Generator returns the generator of a client, numbered from 0.
func (w *Workload) Generator(client int) *Generator {
	return &Generator{
		w: w, random: *rand.New(rand.NewPCG(w.spec.Seed, uint64(client)+1)),
		keys: newSampler(w.spec.Keys, w.spec.KeySpace, client, w.clients, w.front),
	}
}

// Next returns the next operation; at is the time since the run began, on which a moving mean depends.
func (g *Generator) Next(at time.Duration) Op {
	op := Op{Kind: g.kind()}
	if op.Kind == Insert {
		op.Key = g.w.front.take()
	} else {
		op.Key = g.keys.draw(&g.random, at)
	}
	switch op.Kind {
	case Update, Insert, ReadModifyWrite:
		op.Size = g.w.spec.Values.Draw(&g.random)
	case Scan:
		op.Limit = 1 + g.random.IntN(g.w.spec.ScanLimit)
	}
	return op
}

func (g *Generator) kind() Kind {
	u := g.random.Float64()
	for k := range Kind(Kinds) {
		if u < g.w.kinds[k] {
			return k
		}
	}
	return Kinds - 1
}

// Load returns an operation that puts a key before the run, with a size like the others.
func (g *Generator) Load(key uint64) Op {
	return Op{Kind: Update, Key: key, Size: g.w.spec.Values.Draw(&g.random)}
}
