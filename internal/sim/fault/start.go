package fault

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/node"
)

var powerLostWhileStarting = count.New("power_lost_while_starting", "half starts")

// StartLater starts a member after a while.
func (w *World) StartLater(m *node.Member, d time.Duration) {
	w.After(d, func() { w.StartMember(m) })
}

// StartMember starts a member. Sometimes it loses power during its recovery, or soon after.
func (w *World) StartMember(m *node.Member) {
	if m.Up || m.Gone || m.Away || m.Apart || w.Broken != nil {
		return
	}
	m.Disk.FailSync = false // syncs work again, on the same disk
	m.Disk.PowerAt = 0
	if w.Calm {
		m.Disk.FailAt = 0
	}
	if !w.Calm && w.Chance(0.1) {
		m.Disk.PowerAt = 1 + w.Pick(20) // the member may start before that, and run for a while
	}
	w.Boot(m)
}

// Boot starts a member on its disk, and leaves the disk as it is.
func (w *World) Boot(m *node.Member) {
	backUp(w, m)
	install(w, m)
	w.Tracef("FAULT %s starts", m.ID)
	ready := m.StartsFull()
	err := m.Start()
	if m.Disk.Full && !ready && errors.Is(err, syscall.ENOSPC) {
		w.Tracef("FAULT %s cannot start: %v", m.ID, err)
		m.Disk = m.Disk.Crash(w.Rand) // either it had no log yet, or it tries again later
		w.StartLater(m, w.Set.Election)
		return
	}
	if errors.Is(err, device.ErrIO) {
		w.Tracef("FAULT %s cannot start: %v", m.ID, err)
		w.Count(stoppedByIOErrors)
		m.Disk = m.Disk.Crash(w.Rand)
		w.StartLater(m, w.Between(0, w.Set.Election))
		return
	}
	if errors.Is(err, device.ErrPower) {
		w.Tracef("FAULT %s loses power while it starts", m.ID)
		w.Count(powerLostWhileStarting)
		m.Disk = m.Disk.Crash(w.Rand)
		w.StartLater(m, w.Between(0, w.Set.Election))
		return
	}
	if err != nil && foundAstray(w, m, err) {
		m.Disk = m.Disk.Crash(w.Rand)
		return
	}
	if m.Strange() && errors.As(err, new(*cluster.ForgottenError)) {
		w.Tracef("%s does not start: %v", m.ID, err)
		return
	}
	if err != nil {
		w.Violate(m.ID, fmt.Errorf("does not start: %w", err))
		return
	}
}

// Failed implements node.Observer: an operator or a supervisor starts the member again. Only some errors may stop a
// member.
func (w *World) Failed(m *node.Member, err error) {
	w.Merging = 0 // only now it shows that not all was healed (N7)
	switch {
	case foundAstray(w, m, err):
	case errors.Is(err, device.ErrIO):
		w.Count(stoppedByIOErrors)
		w.StartLater(m, w.Between(0, 6*w.Set.Election))
	case errors.Is(err, device.ErrPower):
		w.Count(node.PowerLostWhileWriting)
		w.StartLater(m, w.Between(0, 6*w.Set.Election))
	case m.Strange() && errors.As(err, new(*cluster.ForgottenError)):
		w.Count(node.StoppedWithoutDisk)
		if !errors.Is(err, device.ErrSync) { // the loss is recorded
			m.Doubt = nil
		}
		if w.From(losses).Yes(0.5) { // a process supervisor starts it again
			w.StartLater(m, w.Set.Election)
		}
	case errors.Is(err, device.ErrSync):
		w.Count(node.FailedSyncs)
		w.StartLater(m, w.Between(w.Set.Election, 6*w.Set.Election))
	default:
		w.Violate(m.ID, fmt.Errorf("stops by itself: %w", err))
	}
}
