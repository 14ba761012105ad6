package datadir

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// oneCore is a guess that knows one core.
type oneCore struct{}

func (oneCore) Record(*protocol.Record)   {}
func (oneCore) Snapshot(string)           {}
func (oneCore) Cores(order.Kind) []string { return []string{"raft"} }
func (oneCore) Core(name string) string   { return name }

// A first start of an earlier version ended before it had created a log: then any kind may begin. Once there is a
// record, the log is one of a single instance, because there is no sign of several.
func TestADirectoryWithoutALogIsOfAnyKind(t *testing.T) {
	fs := vfs.NewMem()
	who := Owner{Cluster: 7, Member: 1, Guess: func() member.KindGuess { return oneCore{} }}
	_, lock, err := Enter(fs, "/d", who, func() uint64 { return 5 })
	require.NoError(t, err)
	require.NoError(t, lock.Close())
	opens := func(o order.Kind) error {
		who.Kind = member.LogKind{Core: "raft", Order: o}
		return Check(fs, "/d", who)
	}
	for _, o := range []order.Kind{order.KindSingle, order.KindNiagara, order.KindKeyed} {
		require.NoError(t, opens(o))
	}

	log, err := wal.Open(wal.Options{FS: fs, Dir: "/d/" + logDir, SegmentBytes: 1 << 16})
	require.NoError(t, err)
	require.NoError(t, opens(order.KindNiagara))
	require.NoError(t, log.Append([]wal.Record{{Instance: 1, Kind: wal.KindState, Parts: [2][]byte{make([]byte, 24)}}}))
	require.NoError(t, log.Sync())
	require.NoError(t, log.Close())
	require.NoError(t, opens(order.KindSingle))
	require.ErrorAs(t, opens(order.KindNiagara), new(*member.LogKindError))
}
