package sim

import "github.com/braidlog/braid/internal/sim/draw"

// faults are all faults. The order matters to saved seeds: runs plan and draw faults in this order, and a new one is
// added at the end.
var faults = []*Fault{
	faultCrash,
	faultPower,
	faultPause,
	faultPartition,
	faultIsolate,
	faultOneWay,
	faultBurst,
	faultSlowDisk,
	faultStallDisk,
	faultDeadSync,
	faultTransfer,
	faultChange,
	faultClock,
	faultDamage,
	faultReshape,
	faultFreeze,
	faultRot,
	faultGarble,
	faultWipe,
	faultOldDisk,
	faultFull,
	faultLag,
	faultNarrow,
	faultAway,
	faultIO,
	faultState,
	faultHotCopy,
	faultLate,
	faultStraggle,
	faultHold,
	faultHubs,
	faultPromise,
	faultMove,
}

func init() {
	for _, f := range faults {
		if f.source == nil {
			f.source = draw.New(f.Name)
		}
	}
}
