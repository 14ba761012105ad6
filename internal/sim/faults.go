package sim

import "github.com/braidlog/braid/internal/sim/count"

var (
	powerLostWhileStarting = count.New("power_lost_while_starting", "half starts")
	nonsenseProposed       = count.New("nonsense_proposed", "nonsense proposed")
	membersRemoved         = count.New("members_removed", "members removed")
)

// faultKind is a kind of fault, or of what an operator does.
type faultKind int

const (
	faultCrash     faultKind = iota // one member loses power
	faultPower                      // all members lose power at once
	faultPause                      // a process stands still, as for garbage collection
	faultPartition                  // the cluster falls into two parts
	faultIsolate                    // the leader is alone, in one or both directions
	faultOneWay                     // one link works in one direction only
	faultBurst                      // many messages are lost for a while
	faultSlowDisk                   // a disk becomes slow
	faultStallDisk                  // a disk stands still
	faultDeadSync                   // a disk fails its syncs
	faultTransfer                   // the operator hands over leadership
	faultChange                     // the operator changes the membership
	faultClock                      // a clock's rate changes, a stopped member's clock jumps
	faultDamage                     // bytes of a body are damaged on a disk
	faultReshape                    // the operator changes how many instances there are
	faultFreeze                     // a process stands still in the middle of a turn of its event loop
	faultRot                        // bytes of a log or a snapshot are damaged on a disk
	faultGarble                     // a member proposes entries that no member should propose
	faultWipe                       // a member loses its disk and is started as if nothing had happened
	faultOldDisk                    // an old copy of a disk is put in its place
	faultFull                       // a disk has no space, or all have none
	faultLag                        // a member applies nothing for a while
	faultNarrow                     // links to or from a member are narrow
	faultAway                       // a member is away until a leader has cut entries that it lacks
	faultIO                         // a disk fails an operation
	faultState                      // the state that a state machine keeps on disk is damaged
	faultHotCopy                    // a copy of a running member's disk is put in its place
	faultLate                       // a member misses entries and catches up over narrow links
	faultStraggle                   // members change while somebody does not know of all bodies
	faultHold                       // links of a leader stand still, and lose nothing
	faultHubs                       // only some members have links with all others
	faultPromise                    // members are about to vote when they hear of the leader again
	faultMove                       // members start at other addresses
	faultKinds
)

var faultNames = [faultKinds]string{
	"crash", "power", "pause", "partition", "isolate", "one-way", "burst", "slow-disk", "stalled-disk", "failed-sync",
	"transfer", "change", "clock", "damage", "reshape", "freeze", "rot", "garble", "wipe", "old-disk", "full-disk",
	"lag", "narrow", "away", "io-error", "state-damage", "hot-copy", "late", "straggle", "hold", "hubs", "promise", "move",
}
