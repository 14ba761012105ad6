package braid

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/replica"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// starts are flags of all protocols, and of one with other settings that are fixed otherwise.
func starts() (all []Protocol) {
	for _, name := range registry.Serving() {
		all = append(all, Named(name))
	}
	epochs := "epochs=slots 32-64, shares by load, policy combined, bans 8-256"
	return append(all, Named("multi-paxos", "quorums=2/2"), Named("iss", epochs), Named("niagara", "instances=7"))
}

// TestAnyFlagsOpenASealedLog: a directory whose log was sealed is opened as it began, whatever the flags name. Before
// that another core is refused.
func TestAnyFlagsOpenASealedLog(t *testing.T) {
	members := []Member{{ID: 1, PeerURLs: []string{"http://127.0.0.1:1"}}}
	for _, began := range []Protocol{Named("raft"), Named("lcr"), Named("niagara", "instances=3"),
		Named("multi-paxos", "quorums=1/1"),
		Named("iss", "epochs=slots 16-32, shares equal, policy simple, bans 8-256")} {
		fs := vfs.NewMem()
		options := func(p Protocol) Options {
			return Options{Self: 1, Cluster: 7, Dir: "d", FS: fs, Members: members, Protocol: p}
		}
		o := options(began)
		first, err := o.complete()
		require.NoError(t, err)
		r := first.replica(nil)
		require.NoError(t, replica.Found(r, "", nil))

		refused := 0
		for _, flags := range starts() {
			if options(flags).CheckDir() != nil {
				refused++
			}
		}
		require.Positive(t, refused)
		require.NoError(t, datadir.RecordSeal(fs, "d", 7, 1))
		for _, flags := range starts() {
			name, _, _ := flags.chosen()
			require.NoError(t, options(flags).CheckDir(), name)
			o := options(flags)
			c, err := o.complete()
			require.NoError(t, err)
			require.Equal(t, first.logKind(), c.logKind(), name)
			require.Equal(t, first.begin(), c.begin(), name)
			require.Equal(t, first.quorums(), c.quorums(), name)
			require.Equal(t, r.Epochs, c.replica(nil).Epochs, name)
		}
	}
}

// TestFlagsBehindASeal: a member tells what the profile says, and lists the flags that the log does not have.
func TestFlagsBehindASeal(t *testing.T) {
	o := Options{Self: 1, Cluster: 7, Dir: "d", FS: vfs.NewMem(), Protocol: Named("raft", "code-k=2", "placement=code"),
		Members: []Member{{ID: 1, PeerURLs: []string{"http://127.0.0.1:1"}}}}
	c, err := o.complete()
	require.NoError(t, err)
	shared := c.settings()
	s, err := c.choice.Switch(&protocol.Profile{Version: 1, Values: c.choice.Profile()}, 1, "multi-paxos",
		map[string]string{"placement": "copy", "relays": "2"})
	require.NoError(t, err)
	begin := s.Seal.Begin(&protocol.Config{Profile: protocol.Profile{Version: 1}})
	told := shared.Told(&begin.Profile, false, false)
	require.True(t, told.Sealed)
	require.Contains(t, told.All, replica.Setting{Name: "protocol", Value: "braid/1 multi-paxos"})
	require.Contains(t, told.All, replica.Setting{Name: "relays", Value: "2"})
	require.Equal(t, []replica.Overruled{{Name: "protocol", Here: "raft", Used: "multi-paxos"},
		{Name: "code-k", Here: "2", Used: "0"}, {Name: "placement", Here: "code", Used: "copy"}},
		shared.Overruled(&begin.Profile))

	later := begin.Profile
	later.Core = "unheard-of"
	_, table := shared.Behind(&later)
	_, err = table.Complete(setting.MustParse("order=single"))
	require.Error(t, err, "a later version's core")
	_, err = c.program(&later)
	require.ErrorAs(t, err, new(*protocol.ProfileError))
}

// TestAMemberJoinsASealedLog with the flags of any protocol.
func TestAMemberJoinsASealedLog(t *testing.T) {
	for _, flags := range starts() {
		name, _, _ := flags.chosen()
		o := Options{Self: 2, Cluster: 7, Dir: "d", FS: vfs.NewMem(), Join: true, Protocol: flags,
			Listen: []string{"127.0.0.1:1"}, Members: []Member{{ID: 1, PeerURLs: []string{"http://127.0.0.1:1"}}}}
		found := &Running{Kind: LogKind{Core: "iss", Order: order.KindSingle}, Sealed: true}
		require.NoError(t, o.follow(found))
		c, err := o.complete()
		require.NoError(t, err, name)
		require.Equal(t, found.Kind, c.logKind(), name)
		r := c.replica(nil)
		require.True(t, r.Profiled && r.Sealed, name)
	}
}
