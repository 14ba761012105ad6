package raft

import (
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
)

// The mutants of lanes.
const (
	MutantLaneDropEarly      protocol.Mutant = "lane-drop-early"
	MutantLaneFromCommitted  protocol.Mutant = "lane-from-committed"
	MutantLaneAckEarly       protocol.Mutant = "lane-ack-early"
	MutantLaneNoDrain        protocol.Mutant = "lane-no-drain"
	MutantLaneSameName       protocol.Mutant = "lane-same-name"
	MutantLaneAcceptUnsynced protocol.Mutant = "lane-accept-unsynced"
	MutantLaneAcceptAlone    protocol.Mutant = "lane-accept-alone"
	MutantLaneOldGeneration  protocol.Mutant = "lane-old-generation"
	MutantLaneNoPromise      protocol.Mutant = "lane-no-promise"
	MutantLaneNoFence        protocol.Mutant = "lane-no-fence"
	MutantLaneFenceUncovered protocol.Mutant = "lane-fence-uncovered"
	MutantLaneBarrierAlone   protocol.Mutant = "lane-barrier-alone"
	MutantLaneRowsMajority   protocol.Mutant = "lane-rows-majority"
	MutantLaneConfirmRow     protocol.Mutant = "lane-confirm-row"
	MutantLaneCutUnseen      protocol.Mutant = "lane-cut-unseen"
)

// laneRows are clusters whose members hold rows of bodies in lanes.
var laneRows = mutant.Cluster{Placement: "code", Nodes: 5}

// LaneMutants lists those that need lanes.
var LaneMutants = [...]protocol.MutantInfo{
	{Name: MutantLaneDropEarly, Does: "a member gives up batches of a lane when its log has them, committed or not"},
	{Name: MutantLaneFromCommitted, Does: "a leader goes on with a lane after what is committed of it, whatever its log has"},
	{Name: MutantLaneAckEarly, Does: "a member acknowledges batches of a lane before its disk holds them"},
	{Name: MutantLaneNoDrain, Does: "a new life's lane opens before the log has what the life before may have acknowledged", In: mutant.Cluster{Nodes: 5}},
	{Name: MutantLaneSameName, Does: "a new life goes on with the lane of the one before, and uses numbers again that it forgot"},
	{Name: MutantLaneAcceptUnsynced, Does: "a member counts its own lane before its own disk holds it"},
	{Name: MutantLaneAcceptAlone, Does: "a member answers as accepted what only its own disk holds"},
	{Name: MutantLaneOldGeneration, Does: "a member counts acknowledgements of any generation"},
	{Name: MutantLaneNoPromise, Does: "members behind a fence go on to count"},
	{Name: MutantLaneNoFence, Does: "voters change without a fence"},
	{Name: MutantLaneFenceUncovered, Does: "voters change before the log has what those behind the fence hold", In: mutant.Cluster{Nodes: 5}},
	{Name: MutantLaneBarrierAlone, Does: "a barrier read does not ask others for what they hold of lanes"},
	{Name: MutantLaneRowsMajority, Does: "a member takes rows on a plain majority for accepted", In: laneRows},
	{Name: MutantLaneConfirmRow, Does: "a leader puts a lane's body into the log of which it holds a row", In: laneRows},
	{Name: MutantLaneCutUnseen, Does: "voters change although not all rows were looked at of a lane's body that lacks", In: laneRows},
}
