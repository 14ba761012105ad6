package damage

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDiskNeed(t *testing.T) {
	const mib = 1 << 20
	require.EqualValues(t, 64*mib, SegmentBytes(256*mib), "the default")
	require.EqualValues(t, 64*mib, SegmentBytes(4<<30))
	require.EqualValues(t, 8*mib, SegmentBytes(32*mib))
	require.EqualValues(t, 4*mib, SegmentBytes(1))

	n := DiskNeed{Segment: 64 * mib, Command: 32 * mib, Snapshot: mib}
	require.EqualValues(t, 321*mib, n.Bytes())
	n.SpareLog = 64 * mib
	require.EqualValues(t, 257*mib, n.Bytes(), "what is there need not be free")
	n.SpareLog = 1 << 30
	require.EqualValues(t, 161*mib, n.Bytes(), "but bodies cannot use segments of the log")
	n.SpareBodies = 1 << 30
	require.EqualValues(t, mib, n.Bytes())
}
