package braid_test

import (
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid"
)

// Options that make no sense together are refused before anything is started.
func TestPlacementsThatMakeNoSense(t *testing.T) {
	members := []braid.Member{{ID: 1, PeerURLs: []string{"http://127.0.0.1:1"}}, {ID: 2, PeerURLs: []string{"http://127.0.0.1:2"}}}
	for name, o := range map[string]braid.Options{
		"unknown":                           {Protocol: braid.Named("bits")},
		"unknown placement":                 {Protocol: braid.Named("raft", "placement=bits")},
		"no setting":                        {Protocol: braid.Named("raft", "placement")},
		"fragments of copies":               {Protocol: braid.Named("raft", "code-k=2")},
		"whole copies of whole copies":      {Protocol: braid.Named("raft", "extra-whole=1")},
		"whole copies where are none":       {Protocol: braid.Named("rs-raft", "code-k=2", "extra-whole=1")},
		"too many fragments":                {Protocol: braid.CRaft{K: 65}},
		"too many instances":                {Protocol: braid.Niagara{Instances: braid.MaxInstances + 1}},
		"unknown leaders":                   {Protocol: braid.Niagara{Leaders: "all"}},
		"fewer members than fragments":      {Protocol: braid.Named("rs-raft")},
		"relays of a protocol without them": {Protocol: braid.Named("raft", "relays=2")},
		"fewer groups than none":            {Protocol: braid.ISS{Relays: -1}},
		"fixed quorums without a member":    {Protocol: braid.Named("rs-raft", "code-k=2"), Join: true},
	} {
		o.Self, o.Cluster, o.Dir, o.Members = 1, 1, t.TempDir(), members
		var wrong *braid.OptionError
		if n, err := braid.Open(o, newCounts()); !errors.As(err, &wrong) {
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
		Self: 1, Cluster: 1, Dir: t.TempDir(), Protocol: braid.Named("epaxos"),
		Members: []braid.Member{{ID: 1, PeerURLs: []string{"http://127.0.0.1:1"}}},
	}
	var wrong *braid.OptionError
	_, err := braid.Open(o, struct{ braid.DurableStateMachine }{})
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, "Protocol", wrong.Option)
}

// TestProtocolByNameAndByStruct: they are the same, and a member opens with them, on a file system that the program
// names.
func TestProtocolByNameAndByStruct(t *testing.T) {
	t.Parallel()
	o := braid.Options{Self: 1, Cluster: 42, Dir: t.TempDir(), Members: []braid.Member{{ID: 1}}, FS: braid.OSFS(), Logger: slog.New(slog.DiscardHandler)}
	for _, p := range []braid.Protocol{braid.Named("multi-paxos", "relays=1", "quorums=1/1"), braid.MultiPaxos{Relays: 1, Quorums: "1/1"}} {
		o.Protocol = p
		n, err := braid.Open(o, newCounts())
		require.NoError(t, err)
		require.NoError(t, n.ReadBarrier(t.Context()))
		st := n.Status()
		require.Equal(t, []string{"quorums=1/1", "relays=1"}, st.Settings.Texts())
		require.Equal(t, "multi-paxos single copy", st.Protocol+" "+st.Order+" "+st.Placement)
		require.NoError(t, n.Close())
	}
}

// TestOptionErrorsNameTheOption: and they wrap the error of the setting.
func TestOptionErrorsNameTheOption(t *testing.T) {
	for option, o := range map[string]braid.Options{
		"Protocol": {Protocol: braid.CRaft{K: -1}}, "Heartbeat": {Heartbeat: -1}, "ElectionTimeout": {ElectionTimeout: 200 * time.Millisecond},
	} {
		_, err := braid.Open(o, newCounts())
		var wrong *braid.OptionError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, option, wrong.Option)
		require.ErrorAs(t, err, new(*braid.SettingError))
	}
}

// TestAListenerIsUsedOnce: the member closes it when it stops, and Open does when it fails. A closed one is refused.
func TestAListenerIsUsedOnce(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o := braid.Options{
		Cluster: 42, Dir: t.TempDir(), Members: []braid.Member{{ID: 1}, {ID: 2}}, Listeners: []net.Listener{l},
		Logger: slog.New(slog.DiscardHandler),
	}
	var bad *braid.OptionError
	_, err = braid.Open(o, newCounts())
	require.ErrorAs(t, err, &bad)
	require.Equal(t, "Self", bad.Option)
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)

	o.Self = 1
	_, err = braid.Open(o, newCounts())
	require.ErrorAs(t, err, &bad)
	require.Equal(t, "Listeners", bad.Option)
	require.Contains(t, bad.Detail, l.Addr().String())

	o.Listeners = []net.Listener{nil}
	_, err = braid.Open(o, newCounts())
	require.ErrorAs(t, err, &bad)
	require.Equal(t, "Listeners", bad.Option)
}

// hidden is a listener that does not show whether it is closed.
type hidden struct{ net.Listener }

// TestAMemberWhoseListenerIsClosedStops: no other member could connect to it.
func TestAMemberWhoseListenerIsClosedStops(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	n, err := braid.Open(braid.Options{
		Self: 1, Cluster: 42, Dir: t.TempDir(), Members: []braid.Member{{ID: 1}}, Listeners: []net.Listener{hidden{l}},
		Logger: slog.New(slog.DiscardHandler),
	}, newCounts())
	require.NoError(t, err)
	defer n.Close()
	select {
	case <-n.Done():
	case <-time.After(testTimeout):
		require.Fail(t, "it goes on")
	}
	require.ErrorIs(t, n.Err(), net.ErrClosed)
	require.ErrorContains(t, n.Err(), l.Addr().String())
	require.ErrorIs(t, n.ReadBarrier(t.Context()), braid.ErrStopped)
}
