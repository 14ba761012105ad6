package multipaxos

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// Settings that a profile changes. Members may differ in them: an election timeout, a heartbeat and relays determine
// when something is sent and to which member first, and no rule of safety or of reads depends on that. A read asks a
// quorum; there are no leases.

// setOwn takes the protocol's own settings.
func (s *Paxos) setOwn() {
	s.quorums, s.relayGroups = quorum.Setting.In(s.cfg.Own), relay.Groups.In(s.cfg.Own)
}

// tune changes the settings to those under the profile of a configuration that becomes active. It reports whether
// this member continues: it stops if its program cannot have the profile.
func (s *Paxos) tune(c *protocol.Config) bool {
	before := s.cfg.ElectionTimeout
	changed, ok := s.tuning.Tune(&s.cfg, c, s.out)
	if changed {
		s.setOwn()
		s.restartTimers(before)
	}
	s.stopped = s.stopped || !ok
	return ok
}

// restartTimers lets what waits follow other settings. A leader sends a heartbeat now: the others learn by it that the
// profile is decided, before heartbeats become rarer. It then waits for answers for a whole timeout. Messages that are
// on the way through a relay are sent again if they are lost, whatever the groups are now.
func (s *Paxos) restartTimers(before time.Duration) {
	if s.role != protocol.Follower {
		s.lead.tunedAt, s.lead.heartbeatAt = s.now, s.now
	}
	if s.cfg.ElectionTimeout != before {
		s.resetElectionTimer()
	}
	if h := &s.lead.transfer; h.to != 0 {
		h.until, h.retryAt = min(h.until, s.now+s.cfg.ElectionTimeout), min(h.retryAt, s.now+s.cfg.Heartbeat)
	}
	s.lead.pacing = relay.Pacing{}
	s.lead.groupPeers(&s.conf, s.relayGroups)
}
