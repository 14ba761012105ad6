package iss

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// TestFollowedMembers: an instance whose log is merged with others follows the first one. Another member is to replace
// the last voter. It comes before the voter goes, as soon as it is caught up, unless those that answer could not decide
// with both.
func TestFollowedMembers(t *testing.T) {
	type ids = []protocol.MemberID
	for _, c := range []struct {
		name, quorums                 string
		voters, active, caughtUp, new ids
		joins                         bool // it is a learner before
		want                          ids  // the next voters; nil: the instance waits
		learner                       bool // it is a learner then
	}{
		{"both answer", "majority", ids{1, 2, 3}, ids{2, 3, 9}, ids{2, 3, 9}, ids{9}, true, ids{1, 2, 3, 9}, false},
		{"the new one is behind", "majority", ids{1, 2, 3}, ids{2, 3, 9}, ids{2, 3}, ids{9}, true, nil, false},
		{"the old one is dead", "majority", ids{1, 2, 3}, ids{2, 9}, ids{2, 9}, ids{9}, true, ids{1, 2, 3, 9}, false},
		{"it is dead, and the new one behind", "majority", ids{1, 2, 3}, ids{2, 9}, ids{2}, ids{9}, true, nil, false},
		{"both are dead", "majority", ids{1, 2, 3}, ids{2}, ids{2}, ids{9}, true, ids{1, 2}, true},
		{"the new one is not known", "majority", ids{1, 2, 3}, ids{2, 3}, ids{2, 3}, ids{9}, false, ids{1, 2, 3}, true},
		{"sizes for which fewer are too few", "4/2", ids{1, 2, 3, 4}, ids{2, 3, 4}, ids{2, 3, 4}, ids{9}, true,
			ids{1, 2, 3, 4, 9}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := protocol.Config{}
			for _, id := range c.voters {
				now.Members = append(now.Members, protocol.Member{ID: id})
			}
			now.Number()
			known, reason := now.Changed([]protocol.Change{{Kind: protocol.AddJoining, Member: protocol.Member{ID: 9}}})
			require.Equal(t, protocol.ReasonNone, reason)
			target, reason := known.Changed([]protocol.Change{{Kind: protocol.AddVoter, Member: protocol.Member{ID: 9}},
				{Kind: protocol.RemoveMember, Member: protocol.Member{ID: c.voters[len(c.voters)-1]}}})
			require.Equal(t, protocol.ReasonNone, reason)
			if c.joins {
				now = known
			}
			core, err := Info.New(protocol.Settings{Self: 1, Instance: 2, Merged: true, Heartbeat: time.Second,
				ElectionTimeout: 10 * time.Second, Own: setting.MustParse("quorums=" + c.quorums)},
				protocol.Recovered{Base: protocol.Base{Config: now}, Follows: true})
			require.NoError(t, err)
			s := core.(*ISS)
			s.now = time.Minute
			for _, o := range s.others {
				if o.answered = slices.Contains(c.active, o.id); o.answered {
					o.heard = s.now
				}
				o.lacking = !slices.Contains(c.caughtUp, o.id)
			}
			next, ok := s.conf.Follow(&target)
			require.True(t, ok)
			step, reason := s.nearer(next)
			if c.want == nil {
				require.Equal(t, protocol.ReasonUnsafeChange, reason)
				return
			}
			require.Equal(t, protocol.ReasonNone, reason)
			require.Equal(t, c.want, step.Voters())
			require.Equal(t, c.learner, step.Find(9).Learner)
			require.NoError(t, step.Validate())
			_, ok = step.Follow(&target)
			require.True(t, ok, "it leads to the members of the first instance")
		})
	}
}

// TestASkipOutlastsASeal: a skip that is asked for while the log waits for the verdict of a seal is proposed as soon as
// the log continues.
func TestASkipOutlastsASeal(t *testing.T) {
	config := protocol.Config{Members: []protocol.Member{{ID: 1}}, Profile: protocol.Profile{Version: 1}}
	core, err := Info.New(protocol.Settings{Self: 1, Instance: 2, Merged: true, Heartbeat: time.Second,
		ElectionTimeout: 10 * time.Second}, protocol.Recovered{Base: protocol.Base{Config: config}})
	require.NoError(t, err)
	step := func(in protocol.Input) (decided []protocol.Entry) {
		for in != nil {
			out := protocol.Effects{}
			core.Step(time.Second, in, &out)
			require.NoError(t, core.Check())
			decided = append(decided, out.Commit...)
			if in = nil; len(out.Persist) > 0 {
				in = protocol.Persisted{Seq: out.Seq}
			}
		}
		return decided
	}
	of := func(kind protocol.EntryKind) func(protocol.Entry) bool {
		return func(e protocol.Entry) bool { return e.Kind == kind }
	}
	step(protocol.Tick{Random: 1})
	seal := protocol.NewSeal(protocol.Seal{Instances: 1, Members: config,
		Profile: protocol.Profile{Version: 2, Core: "raft"}})
	decided := step(protocol.Propose{Entries: []protocol.Entry{seal}})
	at := slices.IndexFunc(decided, of(protocol.EntrySeal))
	require.GreaterOrEqual(t, at, 0)
	require.Equal(t, protocol.SealSuspended, core.Status().Sealed)
	require.Empty(t, step(protocol.Propose{Entries: []protocol.Entry{protocol.NewSkip(7)}}))
	decided = step(protocol.Sealed{Index: decided[at].Index})
	at = slices.IndexFunc(decided, of(protocol.EntrySkip))
	require.GreaterOrEqual(t, at, 0)
	require.EqualValues(t, 7, decided[at].Round())
}
