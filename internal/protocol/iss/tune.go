package iss

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// Settings that a profile changes. Members may differ in them: they determine when something is sent, to which member
// first, and when a leader is suspected. No rule of safety or of reads depends on that. So a profile is active as soon
// as a member's log has it. Unlike other members it costs no end of an epoch: the voters are the same.

// tunesOnly reports whether a configuration differs from the log's last one in the profile alone.
func (s *ISS) tunesOnly(e *protocol.Entry) bool {
	c, err := protocol.DecodeConfig(e.Payload)
	if err != nil {
		return false
	}
	c.Profile = s.conf.Profile
	return c.Equal(&s.conf)
}

// setOwn takes the protocol's own settings.
func (s *ISS) setOwn() {
	s.opt, s.quorums, s.relayGroups = optionsOf(s.cfg.Own), quorum.Setting.In(s.cfg.Own), relay.Groups.In(s.cfg.Own)
}

// takeProfile takes the profile that the disk has. The error is a [*protocol.ProfileError] or a
// [*protocol.SettingsError].
func (s *ISS) takeProfile() error {
	if s.cfg.Mutant != MutantProfileForgotten {
		if _, err := s.tuning.Follow(&s.cfg, &s.epochConf.Profile); err != nil {
			return err
		}
	}
	s.setOwn()
	return slots.Fit(s.quorums, &s.conf)
}

// tune changes the settings to those under the profile of a configuration that becomes active. It reports whether
// this member continues: it stops if its program cannot have the profile.
func (s *ISS) tune(c *protocol.Config) bool {
	before := s.cfg.ElectionTimeout
	changed, ok := s.tuning.Tune(&s.cfg, c, s.out)
	if changed {
		s.setOwn()
		s.restartTimers(before)
	}
	s.stopped = s.stopped || !ok
	return ok
}

// restartTimers lets what waits follow other settings. Members that are active remain so for a timeout: they may have
// had more time for their next message. Messages that are on the way through a relay are sent again if they are lost,
// whatever the groups are now.
func (s *ISS) restartTimers(before time.Duration) {
	timeout := s.cfg.ElectionTimeout
	for _, o := range s.others {
		if o.answered && s.now < o.heard+before {
			o.heard = s.now
		}
		o.sending.retryAfter = min(o.sending.retryAfter, maxRetryTimeouts*timeout)
	}
	s.heartbeatAt = s.now
	s.fillAt = min(s.fillAt, s.now+s.opt.skipWait)
	s.catchUp.retryAfter = min(s.catchUp.retryAfter, timeout)
	for _, b := range s.parts {
		b.pacing = relay.Pacing{}
		b.heartbeatAt = min(b.heartbeatAt, s.now+s.cfg.Heartbeat)
		for _, a := range b.prop.Requests {
			a.RetryAt = min(a.RetryAt, s.now+timeout)
		}
		if timeout != before {
			if s.now < b.heardAt+before {
				b.heardAt = s.now
			}
			b.resetTimeout()
		}
	}
	s.groupOthers()
}
