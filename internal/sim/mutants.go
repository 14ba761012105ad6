package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/fault"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol/setting"
)

// Mutant is a rule of production code that is broken on purpose. The simulator only passes its name to the type that
// implements it: see package mutant, and the files mutant.go of the packages.
type Mutant struct {
	Name  string         `json:"name"`
	Where string         `json:"where"` // package and type
	Does  string         `json:"does"`
	in    mutant.Cluster // the kind of cluster of the search
}

// mutants lists all mutants, those of cores first.
func mutants() (all []Mutant) {
	add := func(owner string, list []mutant.Info) {
		for _, m := range list {
			where := cmp.Or(m.Where, "Core")
			all = append(all, Mutant{string(m.Name), owner + "." + where, m.Does, m.In})
		}
	}
	for _, c := range registry.Cores() {
		add(c.Name, c.Mutants)
	}
	add("fit", fit.Mutants[:])
	add("order", order.Mutants[:])
	add("member", member.Mutants[:])
	add("wal", wal.Mutants[:])
	return all
}

// Mutants lists the names of the mutants that the simulator can run.
func Mutants() (names []string) {
	for _, m := range mutants() {
		names = append(names, m.Name)
	}
	return names
}

// Hunt is the random search for one mutant. It runs the seeds from 1 on in one kind of cluster, until a seed has a
// violation.
type Hunt struct {
	Mutant
	Protocol  string         `json:"protocol"`
	Placement string         `json:"placement,omitempty"` // "": the protocol's own
	Nodes     int            `json:"nodes"`
	Instances int            `json:"instances,omitempty"` // 0: the protocol's default
	Own       setting.Values `json:"settings,omitzero"`   // of the protocol
	// Seed is the first seed that detects the mutant; 0: no seed up to Limit does.
	Seed    uint64        `json:"seed"`
	Limit   uint64        `json:"limit"`
	Elapsed time.Duration `json:"elapsed_ns"`
	Error   string        `json:"error,omitempty"`
}

// HuntLimit is the maximal number of seeds in a search for a mutant without a limit of its own (epaxos/mutant.go has
// some that need recoveries by several members at once, or a response to a request of an earlier incarnation).
const HuntLimit = 2000

// NewHunt returns the search for a mutant, in the kind of cluster in which it can be detected.
func NewHunt(m Mutant) Hunt {
	return Hunt{
		Mutant:    m,
		Protocol:  cmp.Or(m.in.Protocol, whose(m.Name)),
		Placement: m.in.Placement,
		Nodes:     cmp.Or(m.in.Nodes, 3),
		Instances: m.in.Instances,
		Own:       m.in.Settings,
		Limit:     cmp.Or(m.in.Seeds, HuntLimit),
	}
}

// whose returns the first protocol that has the mutant in its core, otherwise raft.
func whose(name string) string {
	for _, p := range registry.All() {
		if slices.ContainsFunc(p.Core.Mutants, func(m mutant.Info) bool { return string(m.Name) == name }) {
			return p.Name
		}
	}
	return fault.DefaultProtocol
}

// Hunts returns the searches for all mutants.
func Hunts() (all []Hunt) {
	for _, m := range mutants() {
		all = append(all, NewHunt(m))
	}
	return all
}

// Run searches for the mutant. Closing stop ends the search early; stop may be nil.
func (h *Hunt) Run(stop <-chan struct{}) error {
	began := time.Now()
	f, err := h.search(1, h.Limit, stop)
	h.Seed, h.Error, h.Elapsed = f.Seed, f.Error, time.Since(began)
	return err
}

// search finds the first of these seeds that fails with the mutant and not without it. If there is
// none, it returns the zero value.
func (h *Hunt) search(first, last uint64, stop <-chan struct{}) (Failure, error) {
	for first <= last {
		c := Campaign{Protocol: h.Protocol, Placement: h.Placement, Nodes: h.Nodes, Instances: h.Instances, Own: h.Own, Mutant: h.Name, First: first, Last: last}
		sum, err := c.Run(stop)
		if err != nil || len(sum.Failed) == 0 {
			return Failure{}, err
		}
		f := slices.MinFunc(sum.Failed, func(a, b Failure) int { return cmp.Compare(a.Seed, b.Seed) })
		c.Mutant = fault.Unbroken(h.Name)
		if Run(c.Options(f.Seed)).Violation == nil {
			return f, nil
		}
		first = f.Seed + 1
	}
	return Failure{}, nil
}
