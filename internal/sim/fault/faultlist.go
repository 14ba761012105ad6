package fault

import "github.com/braidlog/braid/internal/sim/draw"

// Faults lists all faults. Saved seeds depend on the order in which runs draw and schedule faults. A new fault is
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
	faultTune,
	faultZone,
	faultSwitch,
	faultFit,
	faultUpgrade,
	faultDrain,
}

func init() {
	for _, f := range Faults {
		if f.Source == nil {
			f.Source = draw.New(f.Name)
		}
	}
}
