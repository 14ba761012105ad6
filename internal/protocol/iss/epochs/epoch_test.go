package epochs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		shares []uint8
		want   string
	}{
		{[]uint8{1}, "0"},
		{[]uint8{4, 4, 4}, "0 1 2 0 1 2 0 1 2 0 1 2"},
		{[]uint8{4, 1, 1}, "0 0 1 0 2 0"},
		{[]uint8{1, 4, 1}, "1 0 1 1 2 1"},
		{[]uint8{4, 2, 1}, "0 1 0 2 0 1 0"},
		{[]uint8{2, 2, 1, 1}, "0 1 2 3 0 1"},
		{[]uint8{4, 4, 1}, "0 1 0 1 2 0 1 0 1"},
	} {
		require.Equal(t, "["+c.want+"]", fmt.Sprint(spread(c.shares)), "%v", c.shares)
	}
}

// At each place of a round, each leader has had its share of the turns so far, within one.
func TestTurnsAreSpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		shares, sum := randomShares(rng, 1+rng.IntN(MaxLeaders)), 0
		for _, s := range shares {
			sum += int(s)
		}
		had := make([]int, len(shares))
		for n, at := range spread(shares) {
			had[at]++
			for at, s := range shares {
				if off := had[at]*sum - int(s)*(n+1); max(off, -off) >= 2*sum {
					t.Fatalf("%v: leader %d had %d of %d turns", shares, at, had[at], n+1)
				}
			}
		}
		for at, s := range shares {
			require.Equal(t, int(s), had[at])
		}
	}
}

func randomShares(rng *rand.Rand, n int) []uint8 {
	shares := make([]uint8, n)
	for at := range shares {
		shares[at] = 1 << rng.IntN(3)
	}
	return shares
}

// randomIDs are ascending.
func randomIDs(rng *rand.Rand, n int) (ids []protocol.MemberID) {
	for len(ids) < n {
		id := protocol.MemberID(rng.Uint64())
		if rng.IntN(2) == 0 {
			id = 1 + id%200
		}
		if at, found := slices.BinarySearch(ids, id); !found && id > 0 {
			ids = slices.Insert(ids, at, id)
		}
	}
	return ids
}

// A segment's methods agree with a list of its slots.
func TestSegments(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 60 {
		n := 1 + rng.IntN(7)
		ids := randomIDs(rng, n)
		e := newEpoch(7, 1+protocol.Index(rng.IntN(50)), 1+rng.IntN(4), ids, ids, randomShares(rng, n))
		slots := map[protocol.MemberID][]protocol.Index{}
		for i := e.First; i <= e.Last; i++ {
			id := e.Leaders[e.Place(i)]
			slots[id] = append(slots[id], i)
			require.Equal(t, id, e.SegmentOf(i).Leader())
		}
		require.Len(t, slots, n, "each leader has slots")
		for _, id := range ids {
			compareSegment(t, e, id, slots[id])
		}
	}
}

func compareSegment(t *testing.T, e *Epoch, id protocol.MemberID, slots []protocol.Index) {
	s, ok := e.Segment(id)
	require.True(t, ok)
	require.Equal(t, e, s.Epoch())
	require.Equal(t, []any{id, slots[0], slots[len(slots)-1], len(slots)}, []any{s.Leader(), s.First(), s.Last(), s.Len()})
	for i := protocol.Index(0); i < e.Last+5; i++ {
		at, has := slices.BinarySearch(slots, i)
		require.Equal(t, has, s.Has(i), "slot %d", i)
		require.Equal(t, at, s.Before(i), "slot %d", i)
		if has {
			at++
		}
		after := protocol.Index(0)
		if at < len(slots) {
			after = slots[at]
		}
		require.Equal(t, after, s.After(i), "slot %d", i)
	}
}

func TestWhoDoesNotLeadHasNoSegment(t *testing.T) {
	e := newEpoch(1, 1, 2, []protocol.MemberID{1, 2, 3}, []protocol.MemberID{1, 3}, []uint8{1, 4})
	for id, leads := range map[protocol.MemberID]bool{0: false, 1: true, 2: false, 3: true, 4: false} {
		_, ok := e.Segment(id)
		require.Equal(t, leads, ok)
		require.Equal(t, leads, e.Leads(id))
		require.Equal(t, leads, len(e.Owned(id)) > 0)
	}
	require.Equal(t, 10, e.Slots())
	require.PanicsWithValue(t, "epochs: slot 11 in epoch 1 of 1…10", func() { e.Place(11) })
}

// Methods that the core calls for each slot do not allocate.
func TestAskingAllocatesNothing(t *testing.T) {
	ids := randomIDs(rand.New(rand.NewPCG(3, 3)), 7)
	e := newEpoch(1, 1, 16, ids, ids, []uint8{4, 4, 4, 4, 2, 1, 1})
	sum := protocol.Index(0)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		for _, id := range ids {
			s, _ := e.Segment(id)
			for i := s.First(); i != 0; i = s.After(i) {
				sum += protocol.Index(s.Before(i))
			}
		}
	}))
	require.NotZero(t, sum)
}

// owners are the leaders of all buckets.
func owners(leaders ...protocol.MemberID) (ids [Buckets]protocol.MemberID) {
	e := newEpoch(1, 1, 1, leaders, leaders, slices.Repeat([]uint8{1}, len(leaders)))
	for b := range ids {
		ids[b] = e.Owner(Bucket(b))
	}
	return ids
}

// If a leader goes, its buckets move and no others. If one comes, buckets move only to it.
func TestBucketsMoveOnlyWithTheirLeader(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 100 {
		ids := randomIDs(rng, 2+rng.IntN(8))
		gone := rng.IntN(len(ids))
		with, without := owners(ids...), owners(slices.Delete(slices.Clone(ids), gone, gone+1)...)
		for b := range with {
			if with[b] != ids[gone] {
				require.Equal(t, with[b], without[b])
			} else {
				require.NotEqual(t, with[b], without[b])
			}
		}
	}
}

func TestBucketsAreEven(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 100 {
		ids := randomIDs(rng, 1+rng.IntN(7))
		e := newEpoch(1, 1, 1, ids, ids, slices.Repeat([]uint8{1}, len(ids)))
		sum := 0
		for _, id := range ids {
			n := len(e.Owned(id))
			require.Greater(t, 3*n*len(ids), Buckets, "more than a third of an equal part")
			require.Less(t, n*len(ids), 2*Buckets)
			sum += n
		}
		require.Equal(t, Buckets, sum)
	}
}

// The owner of a bucket and the bucket of a client must not change between versions: members of two versions would
// disagree.
func TestBucketsStayWhatTheyAre(t *testing.T) {
	all := owners(1, 2, 3, 5)
	require.Equal(t, "[1 1 1 5 1 3 5 5]", fmt.Sprint(all[:8]))
	require.Equal(t, []Bucket{226, 145, 72}, []Bucket{BucketOf(0), BucketOf(1), BucketOf(1 << 63)})
	had := [Buckets]int{}
	for client := range uint64(Buckets * 100) {
		had[BucketOf(client)]++
	}
	require.Greater(t, slices.Min(had[:]), 50)
	require.Less(t, slices.Max(had[:]), 150)
}

// If some leaders are not active, the buckets of the others stay where they are.
func TestOwnerAmong(t *testing.T) {
	ids := []protocol.MemberID{1, 2, 3}
	e := newEpoch(1, 1, 1, ids, ids, []uint8{1, 1, 1})
	for b := range Buckets {
		bucket := Bucket(b)
		to := e.OwnerAmong(bucket, func(id protocol.MemberID) bool { return id != 2 })
		if owner := e.Owner(bucket); to == 2 || owner != 2 && to != owner {
			t.Errorf("bucket %d of %d goes to %d without 2", b, owner, to)
		}
		if none := e.OwnerAmong(bucket, func(protocol.MemberID) bool { return false }); none != e.Owner(bucket) {
			t.Errorf("bucket %d goes to %d if nobody is heard of", b, none)
		}
	}
}
