package sim

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/protocol/epaxos"
	"github.com/braidlog/braid/internal/protocol/iss"
	"github.com/braidlog/braid/internal/protocol/multipaxos"
	"github.com/braidlog/braid/internal/protocol/raft"
	"github.com/braidlog/braid/internal/protocol/slotpaxos"
	"github.com/braidlog/braid/internal/protocol/wpaxos"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// Mutant is a rule of production code that is broken on purpose. The simulator only hands its name
// to the type that knows it. See the files mutant.go of the packages.
type Mutant struct {
	Name  string              `json:"name"`
	Where string              `json:"where"` // package and type
	Does  string              `json:"does"`
	info  protocol.MutantInfo // of a core's
}

// mutants lists all mutants.
func mutants() (all []Mutant) {
	for _, c := range registry.Cores() {
		for _, m := range c.Mutants {
			all = append(all, Mutant{string(m.Name), c.Name + ".Core", m.Does, m})
		}
	}
	for _, m := range order.Mutants {
		all = append(all, Mutant{string(m.Name), "order." + m.Where, m.Does, protocol.MutantInfo{}})
	}
	for _, m := range member.Mutants {
		all = append(all, Mutant{string(m.Name), "member." + m.Where, m.Does, protocol.MutantInfo{}})
	}
	for _, m := range wal.Mutants {
		all = append(all, Mutant{string(m.Name), "wal." + m.Where, m.Does, protocol.MutantInfo{}})
	}
	return all
}

// Mutants lists the names of the mutants that the simulator can run.
func Mutants() (names []string) {
	for _, m := range mutants() {
		names = append(names, m.Name)
	}
	return names
}

// protocolMutant is the mutant if it belongs to the protocol, else none.
func (s *Settings) protocolMutant() protocol.Mutant {
	m := protocol.Mutant(s.Mutant)
	if !slices.ContainsFunc(s.protocol.Core.Mutants, func(i protocol.MutantInfo) bool { return i.Name == m }) {
		return ""
	}
	return m
}

// mutant is the mutant for the types of package member. They know which mutants are theirs.
func (s *Settings) mutant() member.Mutant { return member.Mutant(s.Mutant) }

// Hunt is the random search for one mutant. It runs the seeds from 1 on in one kind of cluster,
// until a seed shows a broken promise.
type Hunt struct {
	Mutant
	Protocol  string         `json:"protocol"`
	Placement string         `json:"placement,omitempty"` // "": the protocol's own
	Nodes     int            `json:"nodes"`
	Own       setting.Values `json:"settings,omitzero"` // of the protocol
	// Seed is the first seed that finds the mutant; 0: no seed up to Limit does.
	Seed    uint64        `json:"seed"`
	Limit   uint64        `json:"limit"`
	Elapsed time.Duration `json:"elapsed_ns"`
	Error   string        `json:"error,omitempty"`
}

// HuntLimit is how many seeds a search for a mutant may take.
const HuntLimit = 500

// places are the clusters for mutants that are not found in the usual kind of cluster.
var places = map[string]struct {
	protocol string
	nodes    int
}{
	string(raft.MutantPromoteAtOnce):      {defaultProtocol, 1},
	string(raft.MutantCountStateless):     {niagara, 1},
	string(raft.MutantCountBehind):        {niagara, 4},
	string(raft.MutantLeaderBehind):       {niagara, 4},
	string(member.MutantReshapeUnchecked): {niagara, 4},
	string(member.MutantTrimByApplied):    {craft, 4},
	string(member.MutantUnconfirmed):      {niagara, 3},
	string(raft.MutantLeaseIgnoresDrift):  {defaultProtocol, 5},
	string(raft.MutantPromiseOfTerm):      {defaultProtocol, 5},
	string(member.MutantForgetSections):   {slots, 3},
	string(member.MutantGroupAsOne):       {slots, 3},
	string(member.MutantTokensUnchecked):  {slots, 3},
	string(raft.MutantLaneNoDrain):        {lcr, 5},
	string(raft.MutantLaneFenceUncovered): {lcr, 5},

	string(slotpaxos.MutantAcceptBelowPromise): {slots, 4},
	string(slotpaxos.MutantBodyAssumed):        {slots, 5},
	string(slotpaxos.MutantChangeLosesBodies):  {slots, 1},
	string(multipaxos.MutantPromiseFirstPart):  {multiPaxos, 5},
	string(multipaxos.MutantChangeLosesBodies): {multiPaxos, 1},
	string(iss.MutantSkipLast):                 {issName, 5},
	string(epaxos.MutantUnchecked):             {byKey, 5},
	string(epaxos.MutantForgetWide):            {byKey, 9},
}

// codedLanes are mutants of bodies in lanes, of which five members hold rows.
var codedLanes = []protocol.Mutant{raft.MutantLaneRowsMajority, raft.MutantLaneConfirmRow, raft.MutantLaneCutUnseen}

// codedWeave are mutants of bodies of woven instances.
var codedWeave = []string{string(raft.MutantCountBehind), string(raft.MutantLeaderBehind), string(member.MutantReshapeUnchecked)}

// limits are of mutants for which a search may take more seeds than for others. An answer to what an earlier life had asked seldom
// comes when it matters, recoveries by several members at once are seldom, and so is a member that is away while all others change.
var limits = map[string]uint64{
	string(epaxos.MutantTellAnybody): 8000, string(epaxos.MutantOneBallot): 4000, string(member.MutantNoGuests): 1000, string(epaxos.MutantUnchecked): 1000,
}

// NewHunt returns the search for a mutant, in the kind of cluster where it can be found.
func NewHunt(m Mutant) Hunt {
	h := Hunt{Mutant: m, Protocol: whose(m.Name), Nodes: 3, Limit: HuntLimit}
	switch prefix, _, _ := strings.Cut(m.Name, "-"); prefix {
	case "code":
		h.Protocol, h.Nodes = craft, 5
	case "weave":
		h.Protocol = niagara
	case "keyed":
		h.Protocol = multiRaft
	}
	if at, ok := places[m.Name]; ok {
		h.Protocol, h.Nodes = at.protocol, at.nodes
	}
	if limit := limits[m.Name]; limit > 0 {
		h.Limit = limit
	}
	if m.Name == string(multipaxos.MutantElectTooFew) || m.Name == string(iss.MutantElectTooFew) {
		h.Nodes, h.Own = 5, setting.MustParse("quorums=4/2")
	}
	if m.Name == string(wpaxos.MutantElectTooFew) {
		h.Nodes, h.Own = 5, setting.MustParse("quorums=zones:2/0/1")
	}
	if slices.Contains(codedLanes, protocol.Mutant(m.Name)) {
		h.Placement, h.Nodes = string(protocol.PlacementCode), 5
	}
	if slices.Contains(codedWeave, m.Name) {
		h.Placement = string(protocol.PlacementCode)
	}
	if m.info.Nodes != 0 {
		h.Nodes, h.Own = m.info.Nodes, m.info.Settings
	}
	return h
}

// whose is the first protocol that has the mutant in its core, or else raft.
func whose(mutant string) string {
	for _, p := range registry.All() {
		if slices.ContainsFunc(p.Core.Mutants, func(m protocol.MutantInfo) bool { return string(m.Name) == mutant }) {
			return p.Name
		}
	}
	return defaultProtocol
}

// Hunts are the searches for all mutants.
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
		c := Campaign{Protocol: h.Protocol, Placement: h.Placement, Nodes: h.Nodes, Own: h.Own, Mutant: h.Name, First: first, Last: last}
		sum, err := c.Run(stop)
		if err != nil || len(sum.Failed) == 0 {
			return Failure{}, err
		}
		f := slices.MinFunc(sum.Failed, func(a, b Failure) int { return cmp.Compare(a.Seed, b.Seed) })
		c.Mutant = ""
		if Run(c.Options(f.Seed)).Violation == nil {
			return f, nil
		}
		first = f.Seed + 1
	}
	return Failure{}, nil
}
