package store

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
)

func TestLowSpace(t *testing.T) {
	require.False(t, lowSpace(false, 801, 800))
	require.True(t, lowSpace(false, 800, 800))
	require.True(t, lowSpace(true, 850, 800), "a little more does not end it")
	require.False(t, lowSpace(true, 901, 800))
	require.False(t, lowSpace(true, 0, -1), "no limit")
}

// TestSpaceDecisions lists all that a member can know, and what it does about its alarm.
func TestSpaceDecisions(t *testing.T) {
	const mark, raise, disarm = 1, 2, 4
	for v, want := range map[spaceView]int{
		{}:                                       0,
		{over: true}:                             0,
		{low: true}:                              mark | raise,
		{low: true, over: true}:                  mark | raise,
		{marked: true}:                           0, // it was disarmed
		{marked: true, over: true}:               0,
		{low: true, marked: true}:                mark | raise, // disarmed too early
		{raised: true}:                           0,            // the quota's: the operator's affair
		{raised: true, over: true}:               0,
		{raised: true, low: true}:                0,
		{raised: true, marked: true}:             mark | disarm,
		{raised: true, marked: true, low: true}:  mark,
		{raised: true, marked: true, over: true}: 0, // the quota's by now
		{raised: true, marked: true, over: true, low: true}: mark,
	} {
		marked, raised, disarmed := v.decide()
		got := 0
		for i, yes := range []bool{marked, raised, disarmed} {
			if yes {
				got |= 1 << i
			}
		}
		require.Equal(t, want, got, "%+v", v)
	}
}

// TestDiskAlarm fills and empties the disk of a member to which no client writes: it raises its alarm by itself, and
// disarms it, also if it was restarted meanwhile.
func TestDiskAlarm(t *testing.T) {
	o := testOptions(t.TempDir())
	var need atomic.Int64
	o.Reserve = need.Load
	n := open(t, o)
	require.NoError(t, n.CheckQuota(put("a", "1")))
	need.Store(1 << 60)
	n.raw(within(t, n.Wanted()))
	require.Len(t, n.Alarms(), 1)
	require.ErrorIs(t, n.CheckQuota(put("a", "1")), etcderrors.ErrNoSpace)
	n.must(del("a", ""))
	n.Close()

	n = open(t, o)
	defer func() { n.Close() }()
	require.Len(t, n.Alarms(), 1)
	need.Store(0)
	n.raw(within(t, n.Wanted()))
	require.Empty(t, n.Alarms())
	require.Eventually(t, func() bool { return n.CheckQuota(put("a", "1")) == nil }, 10*time.Second, time.Millisecond)
	n.must(put("a", "1"))
}

// TestAlarmOfAnother refuses a write because another member's disk is full: this member's is not.
func TestAlarmOfAnother(t *testing.T) {
	n := open(t, testOptions(t.TempDir()))
	defer n.Close()
	other := disarm(77)
	other.Alarm.Action = 1
	n.must(other)
	require.ErrorIs(t, n.do(put("a", "1")).Err, etcderrors.ErrNoSpace)
	select {
	case <-n.Wanted():
		t.Fatal("it raises an alarm of its own")
	case <-time.After(2 * spaceWatch):
	}
}
