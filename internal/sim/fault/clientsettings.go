package fault

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/sim/client"
	"github.com/braidlog/braid/internal/sim/draw"
)

// ClientSettings are part of [Settings].
type ClientSettings = client.Settings

func (s *Settings) drawClients(d draw.Chance) {
	s.Clients = 1 + d.Below(6)
	s.Keys = 1 + d.Below(4)
	s.Operations = 20 + d.Below(280)
	s.Think = d.Duration(0, s.Chaos/20)
	s.Reads = d.Share()
	s.Padding = d.Limit(0, 100, 3000)
	s.Patience = s.Election * time.Duration(1+d.Below(6))
	s.GiveUp = s.Election * time.Duration(2+d.Below(10))
	s.Depth = d.Limit(0, 1, 4)
	s.BatchCommands = d.Limit(1, 3, 1000)
	s.BatchBytes = d.Limit(1, 500, 1<<20)
	if d.Yes(0.4) {
		s.ApplyMax = d.Duration(0, s.Election)
	}
}

// watchLeaders makes clients write at new leaders and read at members that may no longer lead.
func (s *Settings) watchLeaders(d draw.Chance) {
	s.Clients, s.Keys, s.Operations, s.Reads = 6+d.Below(6), 1, 400, 0.3
	s.Think = max(s.Heartbeat, 2*s.Chaos*time.Duration(s.Clients)/time.Duration(s.Operations))
	s.Patience = s.Election
	s.Load.Pinned, s.Load.Chase, s.Load.Overwrite = 0.5, 0.5+0.5*d.Share(), 0.2
	s.Load.Crowd = 0.5 + 0.5*d.Share()
}

// drawLoad gives most runs a high load.
func (s *Settings) drawLoad(d draw.Chance) {
	l := &s.Load
	l.Overwrite = 0.05
	if d.Yes(0.2) {
		return
	}
	s.Clients = 3 + d.Below(12)
	s.Operations = 200 + d.Below(800)
	l.Overwrite += 0.3 * d.Share()
	// Mostly the load lasts as long as the faults.
	s.Think = time.Duration(2 * d.Share() * float64(s.Chaos) * float64(s.Clients) / float64(s.Operations))
	if s.Reads = d.Share(); d.Yes(0.5) {
		s.Reads = 0.5
	}
	if d.Yes(0.6) {
		s.Patience = s.Election * time.Duration(1+d.Below(3)) / 2
	}
	l.Pinned, l.Leaders = d.Share(), d.Share()
	if d.Yes(0.5) {
		l.Hot = d.Share()
	}
	if d.Yes(0.4) {
		l.Burst, l.Bursts = 2+d.Below(8), 0.3*d.Share()
	}
	if d.Yes(0.7) {
		l.Chase = d.Share()
	}
	l.Crowd = d.Share()
	if s.Bodies.Share > 0 { // reads gather all bodies of a value
		s.Operations /= 2
		l.Overwrite = max(l.Overwrite, 0.2)
	}
	s.Core.MaxUncommittedBytes = max(s.Core.MaxUncommittedBytes,
		min(s.BatchBytes, s.Clients*(l.Burst+client.Pipeline)*(s.Padding+500)))
}

func (s *Settings) describeLoad() string {
	l := &s.Load
	return fmt.Sprintf("clients: %.0f%% stay, %.0f%% ask leaders; %.0f%% on one key, %.0f%% overwrite; "+
		"%.0f%% in bursts of ≤ %d; %.0f%% of writes are read at once; %.0f%% propose without waiting; "+
		"%.0f%% of writes are answered early, %.0f%% of the others are blind\n",
		100*l.Pinned, 100*l.Leaders, 100*l.Hot, 100*l.Overwrite, 100*l.Bursts, l.Burst,
		100*l.Chase, 100*l.Pipes, 100*l.Early, 100*l.Blind)
}

// drawEarly draws how many writes ask for an early answer, and how many of the others may take another path than
// through the leader.
func (s *Settings) drawEarly(d draw.Chance) {
	if s.Proposing().Accepted && d.Yes(0.6) {
		s.Load.Early = d.Share()
	}
	if s.Proposing().Path != nil && d.Yes(0.9) {
		s.Load.Blind = d.Share()
		if d.Yes(0.25) { // accepted commands meet membership changes
			s.Load.Early = 0.6 + 0.4*d.Share()
			s.Faults[faultChange] = s.Election * time.Duration(3+d.Below(6))
		}
	}
}

// drawPipes draws how many clients propose without waiting.
func (s *Settings) drawPipes(d draw.Chance) {
	if d.Yes(0.5) {
		s.Load.Pipes = d.Share()
	}
}

// drawWithdrawals draws how many commands are withdrawn.
func (s *Settings) drawWithdrawals(d draw.Chance) {
	if d.Yes(0.4) {
		s.Load.Withdraw = d.Share() * d.Share()
	}
}
