package replica

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/protocol/iss"
	"github.com/braidlog/braid/internal/protocol/multipaxos"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	settings "github.com/braidlog/braid/protocol/setting"
)

// otherProgram is that of instances whose core is multi-Paxos or ISS; nil: it is another one.
func (c *testCluster) otherProgram(self protocol.MemberID, p *protocol.Profile) *Program {
	for _, core := range []*protocol.Info{&multipaxos.Info, &iss.Info} {
		if core.Name == p.Core {
			return &Program{
				Core: func(id protocol.InstanceID, _ protocol.Session, rec protocol.Recovered) (protocol.Core, error) {
					return core.New(protocol.Settings{
						Self: self, Instance: id, Heartbeat: testHeartbeat, ElectionTimeout: testElection,
						MaxFrameBytes: 1 << 20,
					}, rec)
				},
				Codec: core.Codec, Accepted: core.Cells.Accepted(), Derive: core.Deriving(settings.Values{}),
				Profile: *p,
			}
		}
	}
	return nil
}

// twoCores begins the directories of members with two groups of keys. The second one has another core.
func (c *testCluster) twoCores() {
	meta := member.Bootstrap(order.BeginKeyed(2), c.members)
	meta.Found(protocol.Profile{Version: 1, Values: c.flags()})
	meta.Others[0].Profile.Core = multipaxos.Info.Name
	for _, m := range c.members {
		s, err := datadir.OpenSnapshots(c.disks[m.ID], filepath.Join("d", "snapshots"))
		require.NoError(c.t, err)
		require.NoError(c.t, s.Write(datadir.SnapshotHeader{Meta: meta}, nil))
	}
}

func (c *testCluster) flags() settings.Values {
	v := common.ElectionTimeout.Set(settings.Values{}, testElection)
	return common.Heartbeat.Set(v, testHeartbeat)
}

// begin opens a member with two groups of keys. They keep no state when it stops.
func (c *testCluster) begin(m *protocol.Member) {
	o := c.options(m.ID)
	o.Begin = order.BeginKeyed(2)
	groups, err := apply.NewGroups(o.Begin.Instances(), func(protocol.InstanceID) member.StateMachine {
		return &machine{}
	})
	require.NoError(c.t, err)
	c.running[m.ID], err = Open(o, groups)
	require.NoError(c.t, err)
}

// TestInstancesOfTwoCores: each decodes the messages of its own core, keeps its own cells, and comes back so. The
// directory records the cells, with which the first core does not begin.
func TestInstancesOfTwoCores(t *testing.T) {
	inBubble(t, setting{size: 3, waits: true}, func(c *testCluster) {
		c.twoCores()
		done := protocol.Index(0)
		for range 3 {
			for i := range c.members {
				c.begin(&c.members[i])
			}
			r := c.running[2]
			for key := range uint64(20) {
				_, err := r.ProposeWith(c.t.Context(), []byte("x"), nil, protocol.ProposeOptions{Keys: []uint64{key}})
				require.NoError(c.t, err)
			}
			loops := r.all()
			require.Same(c.t, message.Codec, loops[0].program.Codec)
			require.Same(c.t, multipaxos.Info.Codec, loops[1].program.Codec)
			c.until("it goes on from what the disk has", func() bool { return loops[1].status.Load().Commit > done })
			done = loops[1].status.Load().Commit
			for _, m := range c.members {
				require.NoError(c.t, c.running[m.ID].Close())
				delete(c.running, m.ID)
				require.Equal(c.t, 6, c.format(m.ID), "there are cells")
			}
		}
	})
}

// TestAnUnknownCoreStopsTheMember: the log is as it was, and a program that knows the core continues it.
func TestAnUnknownCoreStopsTheMember(t *testing.T) {
	inBubble(t, setting{size: 1, waits: true}, func(c *testCluster) {
		c.twoCores()
		o := c.options(1)
		o.Begin = order.BeginKeyed(2)
		known := o.Program
		o.Program = func(p *protocol.Profile) (*Program, error) {
			if p.Core != "" {
				return nil, &protocol.ProfileError{Version: p.Version, Err: errors.New("unknown")}
			}
			return known(p)
		}
		groups, err := apply.NewGroups(o.Begin.Instances(), func(protocol.InstanceID) member.StateMachine {
			return &machine{}
		})
		require.NoError(c.t, err)
		_, err = Open(o, groups)
		require.ErrorAs(c.t, err, new(*protocol.ProfileError))
		c.begin(&c.members[0])
		_, err = c.running[1].ProposeWith(c.t.Context(), []byte("x"), nil, protocol.ProposeOptions{Keys: []uint64{7}})
		require.NoError(c.t, err)
		require.NoError(c.t, c.running[1].Close())
		delete(c.running, 1)
	})
}

// TestALogContinuesWithAnotherCore and back, merged then, under load and after restarts, with what each core derives.
func TestALogContinuesWithAnotherCore(t *testing.T) {
	inBubble(t, setting{size: 3, tune: grows(true), durable: true}, func(c *testCluster) {
		for i, core := range []string{multipaxos.Info.Name, iss.Info.Name, "raft", multipaxos.Info.Name} {
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.fill(protocol.MemberID(3-i%3), fmt.Sprint("during ", i), 30)
			}()
			at := protocol.MemberID(i%3 + 1)
			c.until("the profile is known", func() bool { return c.running[at].Profile().Version == uint64(i+1) })
			s := c.seal(at, 1)
			if s.Profile.Core = core; core == "raft" {
				s.Instances, s.Merged = 3, true
			}
			require.NoError(c.t, c.running[at].Switch(c.t.Context(), s))
			<-done
			for range 2 {
				c.until("all have begun", func() bool {
					for _, r := range c.running {
						if st := r.Status(); len(st.Instances) != s.Instances || st.Config.Profile.Core != core {
							return false
						}
					}
					return true
				})
				c.fill(c.leader(), fmt.Sprint("after ", i), 10)
				for _, r := range c.running {
					program := r.first().program
					require.Equal(c.t, core == "raft", program.Codec == message.Codec)
					require.Equal(c.t, core == iss.Info.Name, program.Derive != nil)
				}
				for _, m := range c.members {
					c.close(m.ID)
				}
				for _, m := range c.members {
					c.start(m.ID)
				}
			}
		}
		leader := c.leader()
		c.fill(leader, "again", 1)
		for i := range 4 {
			require.True(c.t, c.machines[leader].has(fmt.Sprintf("during %d 29", i)))
		}
		var refused *member.RefusedError
		require.ErrorAs(c.t, c.running[leader].Reshape(c.t.Context(), 2), &refused, "multi-Paxos has one instance")
	})
}
