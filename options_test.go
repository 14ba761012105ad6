package braid_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/protocol/setting"
)

// Options that make no sense together are refused before anything is started.
func TestPlacementsThatMakeNoSense(t *testing.T) {
	members := []braid.Member{{ID: 1, PeerURLs: []string{"http://127.0.0.1:1"}}, {ID: 2, PeerURLs: []string{"http://127.0.0.1:2"}}}
	for name, o := range map[string]braid.Options{
		"unknown":                           {Placement: "bits"},
		"fragments of copies":               {CodeK: 2},
		"whole copies of whole copies":      {ExtraWhole: 1},
		"whole copies where are none":       {Placement: braid.PlacementRS, CodeK: 2, ExtraWhole: 1},
		"too many fragments":                {Placement: braid.PlacementCode, CodeK: 65},
		"fewer members than fragments":      {Placement: braid.PlacementRS},
		"relays of a protocol without them": {Protocol: "raft", Settings: setting.MustParse("relays=2")},
		"fewer groups than none":            {Protocol: "iss", Settings: setting.MustParse("relays=-1")},
		"fixed quorums without a member":    {Placement: braid.PlacementRS, CodeK: 2, Join: true},
	} {
		o.Self, o.Cluster, o.Dir, o.Members = 1, 1, t.TempDir(), members
		var wrong *braid.OptionError
		if n, err := braid.Open(o, nil); !errors.As(err, &wrong) {
			if err == nil {
				_ = n.Close()
			}
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A protocol that orders only commands with a key in common has snapshots at certain places alone, and a state machine
// that keeps its own state on disk is never known to be there.
func TestStatesOnDiskNeedOneOrder(t *testing.T) {
	o := braid.Options{
		Self: 1, Cluster: 1, Dir: t.TempDir(), Protocol: "epaxos",
		Members: []braid.Member{{ID: 1, PeerURLs: []string{"http://127.0.0.1:1"}}},
	}
	var wrong *braid.OptionError
	_, err := braid.Open(o, struct{ braid.DurableStateMachine }{})
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "Protocol", wrong.Option)
}

// TestSettingsByNameAndByStruct are the same, and a member opens with them, on a file system that the program names.
func TestSettingsByNameAndByStruct(t *testing.T) {
	t.Parallel()
	named, err := braid.ParseSettings("relays=1", "quorums=1/1")
	require.NoError(t, err)
	typed, err := braid.MultiPaxos{Relays: 1, Quorums: "1/1"}.Settings()
	require.NoError(t, err)
	require.Equal(t, typed, named)
	_, err = braid.ISS{Relays: -1}.Settings()
	require.ErrorAs(t, err, new(*braid.SettingError))
	n, err := braid.Open(braid.Options{
		Self: 1, Cluster: 42, Dir: t.TempDir(), Members: []braid.Member{{ID: 1}}, Protocol: "multi-paxos", Settings: named,
		FS: braid.OSFS(), Logger: slog.New(slog.DiscardHandler),
	}, newCounts())
	require.NoError(t, err)
	defer n.Close()
	require.NoError(t, n.ReadBarrier(t.Context()))
	require.Equal(t, typed, n.Status().Settings)
}
