package leaseclock

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"go.etcd.io/etcd/server/v3/lease"
)

// clockAt is a lease clock of a primary lessor with one lease of 10 s, granted at the beginning.
func clockAt(begin time.Time) *Clock {
	c := &Clock{Extension: time.Second, Checkpoint: 4 * time.Second, Retry: 3 * time.Second}
	c.Reset()
	c.term(begin, 1, false)
	c.Granted(begin, 7, 10)
	return c
}

// term begins a term of this clock, by a claim that takes effect here.
func (c *Clock) term(now time.Time, claim uint64, recorded bool) {
	c.Claimed(now, recorded)
	c.Promote(now, claim, 0, recorded)
}

// cleared is the number of the checkpoint that clears a lease; 0: none is decided.
func (c *Clock) cleared(now time.Time, id int64) uint64 {
	c.Clear(now, id)
	number, _ := c.NextClears(now)
	return number
}

// begin is when tests begin; at is a time after it.
var begin = time.Unix(1000, 0)

func at(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }

// ends calls Due every half second in a span of time and returns the leases that ended, and when at the latest.
func ends(c *Clock, from, to float64) (ids []int64, when float64) {
	for s := from; s <= to; s += 0.5 {
		if out := c.Due(at(s)); len(out.Ends) > 0 {
			return out.Ends, s
		}
	}
	return nil, to
}

func TestLeaseEndsInTime(t *testing.T) {
	c := clockAt(begin)
	ids, when := ends(c, 0, 60)
	require.Equal(t, []int64{7}, ids)
	require.Equal(t, 10.0, when)
	ids, when = ends(c, when+0.5, 60)
	require.Equal(t, []int64{7}, ids, "what may have been lost is wanted again")
	require.Equal(t, 13.0, when)
	c.Revoked(7)
	ids, _ = ends(c, 13.5, 60)
	require.Empty(t, ids)
}

// The confirmation takes longer than the lease, as it does while an instance of the log has no
// leader. Then the lease has its time again.
func TestRenewalInTimeCounts(t *testing.T) {
	c := clockAt(begin)
	renewal := c.Hold(7)
	require.NotNil(t, renewal)
	ids, _ := ends(c, 10, 40)
	require.Empty(t, ids)
	c.Release(at(40), renewal, true)
	ids, when := ends(c, 40.5, 100)
	require.Equal(t, []int64{7}, ids)
	require.Equal(t, 50.0, when, "nobody came again")
}

func TestRenewalAfterTheDecisionIsLate(t *testing.T) {
	c := clockAt(begin)
	_, when := ends(c, 0, 60)
	require.Nil(t, c.Hold(7))
	_, v := c.Answer(at(when+0.2), at(when+0.1), 7)
	require.Equal(t, Ending, v)
	// It did not end, and this member is the primary again.
	c.Demote()
	_, v = c.Answer(at(when+0.3), at(when+0.3), 7)
	require.Equal(t, Elsewhere, v)
	c.term(at(20), 2, false)
	ttl, v := c.Answer(at(20.1), at(20), 7)
	require.Equal(t, Done, v)
	require.EqualValues(t, 10, ttl)
	_, v = c.Answer(at(20.1), at(20), 8)
	require.Equal(t, Unknown, v)
}

// What is promised counts from the beginning of the confirmation, and the extension.
func TestOldConfirmationPromisesLess(t *testing.T) {
	c := clockAt(begin)
	for _, s := range []struct {
		took float64
		ttl  int64
		v    Verdict
	}{{0.5, 10, Done}, {1, 10, Done}, {1.1, 9, Done}, {2, 9, Done}, {9.5, 1, Done}, {10.1, 0, Stale}, {40, 0, Stale}} {
		l := c.Hold(7)
		ttl, v := c.Answer(at(1+s.took), at(1), 7)
		require.Equal(t, s.v, v, "%v", s)
		if v == Done {
			require.Equal(t, s.ttl, ttl, "%v", s)
		}
		c.Release(at(1), l, true)
	}
}

// Before a renewal is answered, what would shorten its lease under the next primary is taken back.
func TestCheckpointIsCleared(t *testing.T) {
	c := clockAt(begin)
	out := c.Due(at(4))
	require.Equal(t, []Shortening{{7, 6}}, out.Checkpoints)
	require.EqualValues(t, 1, out.Number)

	l := c.Hold(7)
	_, v := c.Answer(at(5), at(5), 7)
	require.Equal(t, Shortened, v, "it may be in the log, or come to it")
	require.EqualValues(t, 2, c.cleared(at(5), 7))
	require.Zero(t, c.cleared(at(6), 7), "that is on its way")
	require.EqualValues(t, 3, c.cleared(at(8), 7), "it may be lost")
	require.Empty(t, c.Due(at(9)).Checkpoints, "nothing new while a renewal waits")

	c.Checkpointed(7, 6) // the first one comes
	c.TookEffect(1)
	_, v = c.Answer(at(9), at(9), 7)
	require.Equal(t, Shortened, v)
	c.Checkpointed(7, 0)
	c.TookEffect(3)
	ttl, v := c.Answer(at(9), at(9), 7)
	require.Equal(t, Done, v)
	require.EqualValues(t, 10, ttl)
	c.Release(at(9), l, true)
	require.Equal(t, []Shortening{{7, 6}}, c.Due(at(13)).Checkpoints)

	// A new term under the same claim knows that there may be one on its way.
	c.Promote(at(14), 1, 3, false)
	_, v = c.Answer(at(14), at(14), 7)
	require.Equal(t, Shortened, v)
	require.EqualValues(t, 5, c.cleared(at(14), 7))
	// Under another one it has no effect.
	c.term(at(15), 9, false)
	_, v = c.Answer(at(15), at(15), 7)
	require.Equal(t, Done, v)
}

func TestNewPrimaryGoesByTheCheckpoint(t *testing.T) {
	c := clockAt(begin)
	c.Demote()
	c.Checkpointed(7, 3)
	c.term(at(5), 2, false)
	left, ok := c.Left(at(5), 7)
	require.True(t, ok)
	require.Equal(t, 4*time.Second, left, "and the extension")
	_, when := ends(c, 5, 60)
	require.Equal(t, 9.0, when)
}

// After a member stood still, it handles the renewals that wait first.
func TestNothingEndsRightAfterAStall(t *testing.T) {
	c := clockAt(begin)
	_, _ = ends(c, 0, 9.5)
	require.Empty(t, c.Due(at(30)).Ends)
	l := c.Hold(7)
	require.NotNil(t, l)
	c.Release(at(30.2), l, true)
	require.Empty(t, c.Due(at(32)).Ends)
	_, when := ends(c, 32.5, 60)
	require.InDelta(t, 40.2, when, 0.5)

	c = clockAt(begin)
	_, _ = ends(c, 0, 9.5)
	c.Due(at(30))
	_, when = ends(c, 30.5, 60)
	require.Equal(t, 31.0, when, "nobody was there")
}

func TestManyLeasesEndOneAfterAnother(t *testing.T) {
	c := clockAt(begin)
	for id := range int64(1200) {
		c.Granted(begin, 100+id, 1)
	}
	c.Granted(begin, 8, lease.MaxLeaseTTL)
	c.term(begin, 2, false)
	require.Empty(t, c.Due(at(1)).Ends)
	require.Empty(t, c.Due(at(1.5)).Ends)
	first := c.Due(at(2)).Ends
	require.Len(t, first, mostEnds)
	late := int64(100)
	for ; slices.Contains(first, late); late++ {
	}
	require.NotNil(t, c.Hold(late), "it was not its turn")
	require.Len(t, c.Due(at(2.5)).Ends, mostEnds)
	require.Len(t, c.Due(at(3)).Ends, 199)
	left, ok := c.Left(begin, 8)
	require.True(t, ok)
	require.EqualValues(t, lease.MaxLeaseTTL, left.Seconds()-1, "a second is added in a new term")
	require.Less(t, seconds(math.MaxInt64), time.Duration(math.MaxInt64)-365*24*time.Hour)
}

// Many terms, one soon after the other, do not add up: a lease that is not renewed has the time that it had.
func TestTermsDoNotAddUp(t *testing.T) {
	c := clockAt(begin)
	require.True(t, c.FollowsSoon(at(3)))
	require.False(t, c.FollowsSoon(at(4)), "checkpoints are ordered by then")
	c.term(at(3), 2, true)
	require.Equal(t, at(14), c.leases[7].expiry, "it may have been renewed in the term before")
	c.term(at(6), 3, true)
	require.Equal(t, at(14), c.leases[7].expiry)
	for i := range mostGraces {
		now := at(12.5 + float64(i)) // too short for anything
		c.term(now, uint64(4+i), true)
		require.Equal(t, now.Add(3*time.Second), c.leases[7].expiry, "its client may come")
	}
	c.term(at(16), 9, true)
	require.Equal(t, at(14), c.leases[7].expiry, "it had its chances")
	require.Equal(t, []int64{7}, c.Due(at(16)).Ends)

	c = clockAt(begin)
	c.term(at(3), 2, true)
	c.Claimed(at(6), false)
	c.term(at(8), 3, true)
	require.Equal(t, at(19), c.leases[7].expiry, "the term before was not recorded")
	c.Reset()
	c.Load(7, 10, 0)
	require.False(t, c.FollowsSoon(at(9)))
	c.Promote(at(9), 3, 0, true)
	require.Equal(t, at(20), c.leases[7].expiry, "this member does not know the term")
	c.term(at(10), 4, true)
	require.Equal(t, at(21), c.leases[7].expiry)
}

// In a recorded term a renewal is answered when the state has that the lease was renewed. Then it has its full time
// again in the next term.
func TestRenewalIsRecorded(t *testing.T) {
	c := clockAt(begin)
	c.term(at(1), 2, true)
	l := c.Hold(7)
	_, v := c.Answer(at(2), at(2), 7)
	require.Equal(t, Shortened, v)
	require.EqualValues(t, 1, c.cleared(at(2), 7))
	require.Zero(t, c.cleared(at(2.5), 7), "that is on its way")
	c.Checkpointed(7, 0)
	c.TookEffect(1)
	ttl, v := c.Answer(at(3), at(3), 7)
	require.Equal(t, Done, v)
	require.EqualValues(t, 10, ttl)
	c.Release(at(3), l, true)
	_, v = c.Answer(at(5), at(5), 7)
	require.Equal(t, Done, v, "once is enough")
	c.term(at(6), 3, true)
	require.Equal(t, at(17), c.leases[7].expiry)
	_, v = c.Answer(at(6), at(6), 7)
	require.Equal(t, Shortened, v, "it is another term")
}

// Renewals that come while a checkpoint is on its way share the next one.
func TestRenewalsShareACheckpoint(t *testing.T) {
	c := clockAt(begin)
	for id := range int64(mostCheckpoints + 10) {
		c.Granted(begin, 100+id, 10)
	}
	c.term(at(1), 2, true)
	require.EqualValues(t, 1, c.cleared(at(2), 7))
	for id := range int64(mostCheckpoints + 10) {
		require.Zero(t, c.cleared(at(2), 100+id))
		require.Zero(t, c.cleared(at(2), 100+id))
	}
	c.TookEffect(1)
	number, of := c.NextClears(at(3))
	require.EqualValues(t, 2, number)
	require.Len(t, of, mostCheckpoints)
	c.Revoked(100 + mostCheckpoints)
	number, of = c.NextClears(at(6))
	require.EqualValues(t, 3, number, "the one before may be lost")
	require.Len(t, of, 9)
	number, _ = c.NextClears(at(9))
	require.Zero(t, number)
}
