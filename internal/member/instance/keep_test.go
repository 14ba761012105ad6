package instance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

func TestLogIsKeptForWhoCatchesUp(t *testing.T) {
	k := LogKeeper{Bytes: 1000}
	stream := protocol.Index(0)
	snapshot := func(index protocol.Index, bytes int64, first protocol.Index,
		peers ...protocol.PeerStatus) protocol.Index {
		return k.Snapshot(index, 0, bytes, &protocol.Status{First: first, Peers: peers},
			func(protocol.MemberID) protocol.Index { return stream })
	}
	here := func(needs protocol.Index) protocol.PeerStatus {
		return protocol.PeerStatus{ID: 2, Active: true, Needs: needs}
	}
	behind := protocol.PeerStatus{ID: 3, Active: true, Snapshot: true, Needs: 3}

	require.EqualValues(t, 0, snapshot(100, 100, 1), "the log begins with its first entry, and is cut a snapshot later")
	require.EqualValues(t, 100, snapshot(200, 200, 1, here(190)), "as far as the snapshot before")
	require.EqualValues(t, 150, snapshot(300, 300, 101, here(150)), "but not under a member that catches up")
	require.EqualValues(t, 300, snapshot(400, 400, 151, protocol.PeerStatus{ID: 2, Needs: 160}), "unless it is down")
	require.EqualValues(t, 300, snapshot(500, 500, 301, behind), "a stream began, and nobody knows where it stands")
	stream = 450
	require.EqualValues(t, 450, snapshot(600, 600, 301, behind, here(590)))
	require.EqualValues(t, 450, snapshot(1400, 1400, 451, behind), "900 and at most 100 bytes more")
	require.EqualValues(t, 1400, snapshot(1500, 1500, 451, behind), "there are bounds")
	stream = 0
	require.EqualValues(t, 1500, snapshot(1600, 1600, 1401, here(700)), "what is gone cannot be kept")

	k.Begin(5000, 1700)
	require.EqualValues(t, 5000, snapshot(5100, 1800, 5001))
	require.EqualValues(t, 5200, k.Snapshot(5200, 9000, 1900, &protocol.Status{First: 5001}, nil),
		"never above the snapshot")
}

func TestWhereTheLogIsCut(t *testing.T) {
	require.EqualValues(t, 10, CutAt(10, 20, 0))
	require.EqualValues(t, 10, CutAt(10, 20, 7))
	require.EqualValues(t, 17, CutAt(10, 20, 17), "behind the damage")
	require.EqualValues(t, 10, CutAt(10, 20, 21), "which is not in the snapshot yet")
	require.EqualValues(t, 5, CutAt(0, 20, 5))
}
