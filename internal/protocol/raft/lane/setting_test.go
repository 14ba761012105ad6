package lane_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/protocol/raft"
	"github.com/braidlog/braid/internal/protocol/raft/lane"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// What members accepted by lanes may be on their disks alone. So a log that has lanes is not opened without them. A log
// without lanes opens with them, and so does a snapshot that has no section.
func TestALogWithLanesIsNotOpenedWithout(t *testing.T) {
	config := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}}
	config.Number()
	opens := func(lanes bool, kinds ...protocol.EntryKind) error {
		rec := protocol.Recovered{Base: protocol.Base{Index: 7, Term: 1, Config: config}}
		for i, kind := range kinds {
			e := protocol.Entry{Kind: kind}
			if kind == protocol.EntryGeneration {
				e = protocol.NewGeneration(1)
			}
			e.SealPayload()
			e.Seal(protocol.Index(8+i), 1, make([]byte, protocol.HeadSize))
			rec.Entries = append(rec.Entries, e)
		}
		_, err := raft.New(protocol.Settings{Self: 1, Instance: protocol.FirstInstance, Heartbeat: time.Millisecond,
			ElectionTimeout: 10 * time.Millisecond, Own: lane.On.Set(setting.Values{}, lanes)}, rec)
		return err
	}
	require.NoError(t, opens(false, protocol.EntryNoop))
	require.NoError(t, opens(true, protocol.EntryNoop))
	require.NoError(t, opens(true, protocol.EntryNoop, protocol.EntryGeneration))
	var wrong *protocol.SettingsError
	require.ErrorAs(t, opens(false, protocol.EntryNoop, protocol.EntryGeneration), &wrong)
	require.ErrorContains(t, wrong, "the log has lanes")
}

// A profile neither turns lanes on nor off.
func TestAProfileKeepsLanes(t *testing.T) {
	config := protocol.Config{Members: []protocol.Member{{ID: 1}}}
	config.Number()
	core, err := raft.New(protocol.Settings{Self: 1, Instance: protocol.FirstInstance, Heartbeat: time.Millisecond,
		ElectionTimeout: 10 * time.Millisecond}, protocol.Recovered{Base: protocol.Base{Config: config}})
	require.NoError(t, err)
	now := time.Duration(0)
	step := func(in protocol.Input) []protocol.Rejection {
		now += 5 * time.Millisecond
		var out, later protocol.Effects
		core.Step(now, in, &out)
		for seq := out.Seq; seq > 0; seq = later.Seq {
			later = protocol.Effects{}
			core.Step(now, protocol.Persisted{Seq: seq}, &later)
		}
		return out.Reject
	}
	for range 20 {
		step(protocol.Tick{Random: 1})
	}
	require.Equal(t, protocol.Leader, core.Status().Role)
	tune := func(values ...string) []protocol.Rejection {
		p := &protocol.Profile{Version: core.Status().Config.Profile.Version + 1, Values: setting.MustParse(values...)}
		return step(protocol.ProposeChange{Context: 9, Changes: []protocol.Change{{Kind: protocol.Tune, Profile: p}}})
	}
	require.Equal(t, protocol.ReasonInvalidChange, tune("lanes=true")[0].Reason)
	require.Empty(t, tune("extra-whole=1"))
	require.EqualValues(t, 1, core.Status().Config.Profile.Version)
}
