package wpaxos

import (
	"fmt"
	"github.com/braidlog/braid/internal/mutant"

	"github.com/braidlog/braid/internal/protocol/multipaxos"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// The mutants.
const (
	MutantStealUnasked     protocol.Mutant = "wpaxos-steal-unasked"
	MutantPromiseUndecided protocol.Mutant = "wpaxos-promise-leaves-out-decided"
	MutantPromiseEarly     protocol.Mutant = "wpaxos-promise-early"
	MutantReadAlone        protocol.Mutant = "wpaxos-read-alone"
	MutantReadBelowFloor   protocol.Mutant = "wpaxos-read-below-floor"
	MutantElectTooFew      protocol.Mutant = "wpaxos-elect-too-few"
	MutantAnyFound         protocol.Mutant = "wpaxos-any-found"
)

// Mutants lists all of them.
var Mutants = [...]protocol.MutantInfo{
	{Name: MutantStealUnasked,
		Does: "who is handed a group owns it without promises, as the owner says that it has everything"},
	{Name: MutantPromiseUndecided, Does: "a promise leaves out the slots that the acceptor knows to be decided"},
	{Name: MutantPromiseEarly, Does: "an acceptor sends its promise before that is durable"},
	{Name: MutantReadAlone, Does: "an owner, which may be an old one, serves reads without asking a quorum"},
	{Name: MutantReadBelowFloor, Does: "a new owner serves reads before it knows what was decided before it"},
	{Name: MutantElectTooFew,
		Does: "a member owns a group with the promises of as many zones as decide, not as many as elect (--quorums)",
		In:   mutant.Cluster{Nodes: 5, Settings: setting.MustParse("quorums=zones:2/0/1")}},
	{Name: MutantAnyFound,
		Does: "a new owner proposes the accepted entry that it heard of last, not the one with the highest ballot"},
}

// inner maps mutants to those of multi-Paxos.
var inner = map[protocol.Mutant]protocol.Mutant{
	MutantStealUnasked: multipaxos.MutantLeadUnasked, MutantPromiseUndecided: multipaxos.MutantPromiseUndecided,
	MutantPromiseEarly: multipaxos.MutantPromiseEarly, MutantReadAlone: multipaxos.MutantReadAlone,
	MutantReadBelowFloor: multipaxos.MutantReadBelowFloor, MutantElectTooFew: multipaxos.MutantElectTooFew,
	MutantAnyFound: multipaxos.MutantAnyFound,
}

// innerMutant returns the mutant's counterpart in multi-Paxos. The error is a [*protocol.SettingsError].
func innerMutant(m protocol.Mutant) (protocol.Mutant, error) {
	name, ok := inner[m]
	if m != "" && !ok {
		return "", &protocol.SettingsError{Detail: fmt.Sprintf("unknown mutant %q", m)}
	}
	return name, nil
}
