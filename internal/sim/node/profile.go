package node

import (
	"github.com/braidlog/braid/protocol"
)

// The settings that members share: the profile of a configuration.

// judgeProfile judges the profile that a member has applied, or saves in a snapshot.
func judgeProfile(m *Member, c *protocol.Config) {
	if m.Strange() || m.Misled || m.Apart || len(c.Members) == 0 {
		return // it may belong to another log, or does not know the cluster's members yet
	}
	m.Env.Violate(m.ID, m.Env.Court.Profile(&c.Profile, m.profile))
	m.profile = c.Profile.Version
}

// JudgeLastProfile checks, when nothing is in progress, that the member has the cluster's last profile.
func (m *Member) JudgeLastProfile() error {
	if m.Strange() || m.Misled || m.Apart || m.Env.Set.Protocol.Core.Judged.Fixed {
		return nil
	}
	config := m.Applier.Config()
	if err := m.Env.Court.FollowsProfile(m.Instance, &config.Profile); err != nil {
		return err
	}
	if !m.Settled() {
		return nil // the other instances still follow the first one
	}
	for _, s := range m.InForce {
		if st := s.Inst.Core().Status(); !st.Undecided {
			if err := m.Env.Court.FollowsProfile(s.Instance, &st.Config.Profile); err != nil {
				return err
			}
		}
	}
	return nil
}
