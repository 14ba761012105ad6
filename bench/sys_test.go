package bench

import (
	"testing"
	"time"
)

// Of 1,000 ticks 400 were idle, 100 stolen, and 300 (3 s) of the measured process: 200 are others'.
func TestCPUShares(t *testing.T) {
	from := cpuTicks{total: 5000, idle: 1000, stolen: 7}
	to := cpuTicks{total: 6000, idle: 1400, stolen: 107}
	if got, want := from.shares(to, 3*time.Second), (CPUShares{StolenPercent: 10, OthersPercent: 20}); got != want {
		t.Errorf("shares %+v, want %+v", got, want)
	}
	if got := from.shares(to, 9*time.Second).OthersPercent; got != 0 {
		t.Errorf("others used %v %%, though what was measured used more than there was", got)
	}
	if got := from.shares(from, 0); got != (CPUShares{}) {
		t.Errorf("shares of no time %+v", got)
	}
}

// A meter of this machine stays within its capacity.
func TestCPUMeter(t *testing.T) {
	m := StartCPUMeter()
	for deadline := time.Now().Add(time.Minute); readCPUTicks().total < m.from.total+5 && time.Now().Before(deadline); {
		_ = CPUTime() // use some
	}
	s := m.Shares()
	if s.StolenPercent < 0 || s.OthersPercent < 0 || s.StolenPercent+s.OthersPercent > 100 {
		t.Errorf("shares %+v", s)
	}
}
