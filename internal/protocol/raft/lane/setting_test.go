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

// open starts a member from a log with entries of these kinds behind a base. lanes is what its flags say.
func open(config protocol.Config, lanes bool, kinds []protocol.EntryKind) (*raft.Raft, error) {
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
	return raft.New(protocol.Settings{Self: 1, Instance: protocol.FirstInstance, Heartbeat: time.Millisecond,
		ElectionTimeout: 10 * time.Millisecond, Own: lane.On.Set(setting.Values{}, lanes)}, rec)
}

// What members accepted by lanes may be on their disks alone. So a log that has lanes is not opened without them. A log
// without lanes opens with them, and so does a snapshot that has no section.
func TestALogWithLanesIsNotOpenedWithout(t *testing.T) {
	config := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}}
	config.Number()
	opens := func(lanes bool, kinds ...protocol.EntryKind) error {
		_, err := open(config, lanes, kinds)
		return err
	}
	require.NoError(t, opens(false, protocol.EntryNoop))
	require.NoError(t, opens(true, protocol.EntryNoop))
	require.NoError(t, opens(true, protocol.EntryNoop, protocol.EntryGeneration))
	var wrong *protocol.SettingsError
	require.ErrorAs(t, opens(false, protocol.EntryNoop, protocol.EntryGeneration), &wrong)
	require.ErrorContains(t, wrong, "the log has lanes")
}

// The profile of the log says whether there are lanes, and not what a member was started with.
func TestTheProfileDecides(t *testing.T) {
	starts := func(profile, flags bool, kinds ...protocol.EntryKind) bool {
		config := protocol.Config{Members: []protocol.Member{{ID: 1}}}
		config.Number()
		config.Profile = protocol.Profile{Version: 1, Values: lane.On.Set(setting.Values{}, profile)}
		core, err := open(config, flags, kinds)
		require.NoError(t, err)
		return core.Status().Lanes != nil
	}
	for _, flags := range []bool{false, true} {
		require.True(t, starts(true, flags, protocol.EntryNoop))
		require.True(t, starts(true, flags, protocol.EntryNoop, protocol.EntryGeneration))
		require.False(t, starts(false, flags, protocol.EntryNoop))
		require.False(t, starts(false, flags, protocol.EntryNoop, protocol.EntryGeneration))
	}
}
