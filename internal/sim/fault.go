package sim

import "time"

// drawFaults chooses which faults a run has and how often.
func (s *Settings) drawFaults(d chance) {
	if d.yes(0.05) {
		return // a quiet run
	}
	for k := range faultDamage { // faultDamage needs bodies: see drawBodies
		if d.yes(0.45) {
			s.Faults[k] = s.Election * time.Duration(2+d.below(20))
		}
	}
}

// openFaults plans the first fault of each kind.
func (w *World) openFaults() {
	for k, every := range w.set.Faults {
		if every > 0 {
			w.planFault(faultKind(k), every)
		}
	}
}

func (w *World) planFault(k faultKind, every time.Duration) {
	w.After(time.Duration(w.Rand.ExpFloat64()*float64(every)), func() {
		if w.calm {
			return
		}
		if victim := w.victim(); victim != nil {
			w.strike(k, victim)
			w.another(victim)
		}
		w.planFault(k, every)
	})
}

// strike lets one fault happen. victim is the member, where the fault concerns only one.
func (w *World) strike(k faultKind, victim *Member) {
	if victim == nil {
		return
	}
	switch k {
	case faultCrash:
		w.stop(victim)
	case faultPower:
		w.powerLoss()
	case faultPause:
		victim.paused = w.Now() + w.still(3*w.set.Election)
		w.Tracef("FAULT %s pauses until %.6f", victim.id, victim.paused.Seconds())
	case faultFreeze:
		d := w.still(4 * w.set.Election)
		if l := w.someLeader(); l != nil && w.Chance(0.5) {
			victim = l
		}
		w.Tracef("FAULT %s freezes in a turn until %.6f", victim.id, (w.Now() + d).Seconds())
		victim.freeze(d)
	case faultGarble:
		w.garble(victim)
	case faultPartition, faultIsolate, faultOneWay:
		w.cut(k, victim)
	case faultBurst:
		w.burst = w.Rand.Float64()
		w.Tracef("FAULT %.0f%% of all messages are lost", 100*w.burst)
		w.After(w.Between(0, 3*w.set.Election), func() { w.burst = 0 })
	case faultSlowDisk, faultStallDisk, faultDeadSync:
		w.hurtDisk(k, victim)
	case faultIO:
		w.failOperation(victim)
	case faultFull:
		w.fillDisks(victim)
	case faultTransfer:
		w.transfer(victim)
	case faultChange:
		w.changeMembers()
	case faultReshape:
		w.reshape()
	case faultDamage:
		victim.whenWritten(64, func() { w.damage(victim) })
	case faultRot:
		victim.whenWritten(8, func() { w.rot(victim) })
	case faultWipe, faultOldDisk:
		w.loseDisk(k, victim)
	case faultClock:
		victim.setRate(w.wrongRate())
	case faultLag:
		w.lag(victim)
	case faultNarrow:
		w.narrowLinks(victim)
	case faultAway:
		w.leaveAway(victim)
	case faultState:
		w.spoilState(victim)
	case faultHotCopy:
		w.copyHot(victim)
	case faultLate:
		w.beLate(victim)
	case faultStraggle:
		w.straggle()
	case faultHold:
		w.holdLinks(victim)
	case faultHubs:
		w.cutToHubs()
	case faultPromise:
		w.promise()
	case faultMove:
		w.moveMembers(victim)
	}
}

// victim draws a member that runs. It prefers leaders.
func (w *World) victim() *Member {
	var up []*Member
	for _, m := range w.members {
		if m.up {
			up = append(up, m)
			if m.leadsAny() && w.Chance(0.3) {
				return m
			}
		}
	}
	if len(up) == 0 {
		return nil
	}
	return up[w.Pick(len(up))]
}
