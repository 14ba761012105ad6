package fault

import "github.com/braidlog/braid/internal/sim/draw"

// Faults are all faults. The order matters to saved seeds: runs plan and draw faults in this order, and a new one is
// added at the end.
var Faults = []*Fault{
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
	for _, f := range Faults {
		if f.Source == nil {
			f.Source = draw.New(f.Name)
		}
	}
}
