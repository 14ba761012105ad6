package lane

import (
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
)

// The mutants of lanes.
const (
	MutantDropEarly      protocol.Mutant = "lane-drop-early"
	MutantFromCommitted  protocol.Mutant = "lane-from-committed"
	MutantAckEarly       protocol.Mutant = "lane-ack-early"
	MutantNoDrain        protocol.Mutant = "lane-no-drain"
	MutantSameName       protocol.Mutant = "lane-same-name"
	MutantAcceptUnsynced protocol.Mutant = "lane-accept-unsynced"
	MutantAcceptAlone    protocol.Mutant = "lane-accept-alone"
	MutantOldGeneration  protocol.Mutant = "lane-old-generation"
	MutantNoPromise      protocol.Mutant = "lane-no-promise"
	MutantNoFence        protocol.Mutant = "lane-no-fence"
	MutantFenceUncovered protocol.Mutant = "lane-fence-uncovered"
	MutantBarrierAlone   protocol.Mutant = "lane-barrier-alone"
	MutantRowsMajority   protocol.Mutant = "lane-rows-majority"
	MutantConfirmRow     protocol.Mutant = "lane-confirm-row"
	MutantCutUnseen      protocol.Mutant = "lane-cut-unseen"
	MutantOffUnfenced    protocol.Mutant = "tune-lanes-unfenced"
	MutantOpenOff        protocol.Mutant = "tune-lanes-open"
	MutantSealedOpen     protocol.Mutant = "seal-lanes-open"
	MutantNumbersAgain   protocol.Mutant = "tune-lanes-numbers"
)

// Clusters whose members have lanes: of three members, of five, and of five that hold rows of bodies in lanes.
var (
	three    = mutant.Cluster{Protocol: "lcr"}
	five     = mutant.Cluster{Protocol: "lcr", Nodes: 5}
	laneRows = mutant.Cluster{Protocol: "lcr", Placement: "code", Nodes: 5}
)

// Mutants lists those that need lanes.
var Mutants = [...]protocol.MutantInfo{
	{Name: MutantDropEarly, Does: "a member gives up batches of a lane when its log has them, committed or not",
		In: three},
	{Name: MutantFromCommitted, Does: "a leader continues a lane after what is committed of it, not after " +
		"what its log has", In: three},
	{Name: MutantAckEarly, Does: "a member acknowledges batches of a lane before its disk holds them", In: three},
	{Name: MutantNoDrain, Does: "the lane of a new incarnation opens before the log has what the incarnation before may " +
		"have acknowledged", In: five},
	{Name: MutantSameName, Does: "a new incarnation continues the lane of the one before, and uses numbers " +
		"again that it forgot", In: three},
	{Name: MutantAcceptUnsynced, Does: "a member counts its own lane before its own disk holds it", In: three},
	{Name: MutantAcceptAlone, Does: "a member answers as accepted what only its own disk holds", In: three},
	{Name: MutantOldGeneration, Does: "a member counts acknowledgements of any generation", In: three},
	{Name: MutantNoPromise, Does: "members behind a fence still count", In: three},
	{Name: MutantNoFence, Does: "voters change without a fence", In: three},
	{Name: MutantFenceUncovered, Does: "voters change before the log has what those behind the fence hold",
		In: five},
	{Name: MutantBarrierAlone, Does: "a barrier read does not ask others for what they hold of lanes", In: three},
	{Name: MutantOffUnfenced, Does: "a profile turns lanes off without a fence", In: three},
	{Name: MutantOpenOff, Does: "lanes open and generations begin while lanes are off", In: three},
	{Name: MutantSealedOpen, Does: "a leader seals the log while lanes are on", In: three},
	{Name: MutantNumbersAgain, Does: "a lane that opens again has the numbers that it had before lanes were turned off",
		In: three},
	{Name: MutantRowsMajority, Does: "a member takes rows on a plain majority for accepted", In: laneRows},
	{Name: MutantConfirmRow, Does: "a leader appends a body from a lane although it holds only a row of it", In: laneRows},
	{Name: MutantCutUnseen, Does: "voters change before all rows of an incomplete body in a lane were looked at",
		In: laneRows},
}
