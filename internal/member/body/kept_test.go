package body

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

func (h *heldBodies) Each(yield func(wal.Body) bool) {
	var indexes []uint64
	for index := range h.held {
		indexes = append(indexes, index)
	}
	slices.Sort(indexes)
	for _, index := range indexes {
		if !yield(h.held[index]) {
			return
		}
	}
}

func (h *heldBodies) Release(_ uint32, index uint64) { delete(h.held, index) }

// keptOf is what a member knows that has active instances from 1 on. It also returns the instances whose cores were
// made to look at their news.
func keptOf(store *heldBodies, instances int) (k *Kept, changed map[protocol.InstanceID]bool) {
	changed = map[protocol.InstanceID]bool{}
	k = &Kept{self: 1, store: store, keeper: true, hooks: KeptHooks{
		Changed: func(id protocol.InstanceID) { changed[id] = true }, Wanting: func() {},
	}}
	for i := range instances {
		k.shape = append(k.shape, protocol.InstanceID(i+1))
		k.host(protocol.InstanceID(i + 1))
	}
	return k, changed
}

func refOfInstance(instance protocol.InstanceID, index protocol.Index, k uint8) protocol.BodyRef {
	ref := someRef(index, k)
	ref.Instance = instance
	return ref
}

// TestTheFirstInstanceAnswersForThoseThatAreRetired: it does so at once, even while the retired
// one's own core is still told.
func TestTheFirstInstanceAnswersForThoseThatAreRetired(t *testing.T) {
	k, changed := keptOf(newHeld(), 2)
	ref := refOfInstance(2, 5, 3)
	k.Committed(2, []protocol.Entry{committedEntry(ref, protocol.RowForm(1))})
	k.Given(ref)
	_, news := k.News(1)
	require.True(t, news, "it began")
	in, news := k.News(2)
	require.True(t, news)
	require.Equal(t, protocol.Bodies{MaxK: 3, Partial: 3}, in)

	clear(changed)
	k.Reshaped([]protocol.InstanceID{1})
	require.True(t, changed[1])
	_, news = k.News(2) // its core stays
	require.False(t, news)
	in, news = k.News(1)
	require.True(t, news, "the cluster may not become too small for the retired instance's bodies")
	require.Equal(t, protocol.Bodies{MaxK: 3, Partial: 3}, in)
	_, news = k.News(1)
	require.False(t, news, "once")

	clear(changed)
	require.True(t, k.Damaged(ref))
	require.True(t, changed[1])
	k.News(2)
	in, news = k.News(1)
	require.True(t, news)
	require.Equal(t, protocol.Bodies{Missing: 1, MaxK: 3, Partial: 3}, in)
}

// TestASnapshotBringsBodiesOfAnInstanceThatCameAndWent while the member was away. These bodies are
// restored. They are given up when the state does not refer to them any more.
func TestASnapshotBringsBodiesOfAnInstanceThatCameAndWent(t *testing.T) {
	for _, install := range []func(*Kept, *order.Cursor, []protocol.BodyRef){
		func(k *Kept, c *order.Cursor, refs []protocol.BodyRef) {
			k.Installing(1, 20)
			k.Installed(1, 20, c, refs)
		},
		func(k *Kept, c *order.Cursor, refs []protocol.BodyRef) { k.Mended(c, refs) },
	} {
		store := newHeld()
		k, _ := keptOf(store, 1)
		ref := refOfInstance(2, 5, 2)
		cursor := order.Begin(1, true)
		install(k, &cursor, []protocol.BodyRef{ref})
		require.True(t, k.Wants(ref))
		require.Equal(t, []protocol.BodyRef{ref}, k.Due(0, 1))
		store.put(ref, protocol.FormWhole, make([]byte, 1000))
		require.True(t, k.Restore(ref, protocol.FormWhole, false))
		k.Restored(ref)
		require.Zero(t, k.Lacking())
		k.Sweep()
		require.Len(t, store.held, 1)
		k.Release(ref)
		require.Empty(t, store.held)
		require.NoError(t, k.Check())
	}
}

// TestASnapshotMayComeBeforeItsInstancesBegin: those behind a seal begin when the ones before it are closed. What is in
// their logs then is kept.
func TestASnapshotMayComeBeforeItsInstancesBegin(t *testing.T) {
	store := newHeld()
	k, _ := keptOf(store, 1)
	referred, logged := refOfInstance(2, 5, 2), refOfInstance(2, 7, 2)
	cursor := order.Begin(1, true)
	k.Installing(1, 20)
	k.Installed(1, 20, &cursor, []protocol.BodyRef{referred})
	k.Begin(2, &protocol.Base{Index: 6})
	store.put(referred, protocol.FormWhole, make([]byte, 1000))
	store.put(logged, protocol.FormWhole, make([]byte, 1000))
	k.Sweep()
	require.Len(t, store.held, 2)
}

// TestASnapshotForAnInstanceThatIsRetiredMeanwhile is never installed. What is not live is given
// up all the same.
func TestASnapshotForAnInstanceThatIsRetiredMeanwhile(t *testing.T) {
	store := newHeld()
	k, _ := keptOf(store, 2)
	ref := refOfInstance(2, 5, 2)
	k.Committed(2, []protocol.Entry{committedEntry(ref, protocol.FormWhole)})
	store.put(ref, protocol.FormWhole, make([]byte, 1000))
	k.Installing(2, 4)
	k.Reshaped([]protocol.InstanceID{1})
	k.Sweep()
	require.Contains(t, store.held, uint64(5), "the snapshot may refer to it")
	meta := membertest.WovenMeta(1)
	meta.Cursor.Fresh = 3
	k.Applied(&meta.Cursor)
	k.Installing(2, 4)
	k.Compacted(2, member.AllIndexes)
	k.Sweep()
	require.NotContains(t, store.held, uint64(5))
}

// TestAFragmentOfAnySizeHasRoomAlone: otherwise a body of that size could never be gathered.
func TestAFragmentOfAnySizeHasRoomAlone(t *testing.T) {
	i := NewBodyInbox(BodyLimits{Bytes: 1000, Asks: 1, Trims: 1})
	large, small := &protocol.Message{Blob: make([]byte, 2000)}, &protocol.Message{Blob: make([]byte, 10)}
	require.True(t, i.Answer(large))
	require.False(t, i.Answer(small), "the limit is passed")
	require.Len(t, i.Take().answers, 1)
	require.True(t, i.Answer(small))
	require.False(t, i.Answer(large))
	require.Len(t, i.Take().answers, 1)
}

func TestQuestionsHaveABound(t *testing.T) {
	i := NewBodyInbox(BodyLimits{Asks: 2})
	i.Want([]protocol.BodyRef{someRef(1, 2), someRef(1, 2), someRef(2, 2), someRef(3, 2)})
	require.NoError(t, i.Ask(GatherRequest{Ref: someRef(4, 2)}, nil))
	require.NoError(t, i.Ask(GatherRequest{Ref: someRef(5, 2)}, nil))
	require.ErrorIs(t, i.Ask(GatherRequest{Ref: someRef(6, 2)}, nil), member.ErrOverloaded)
	in := i.Close(member.ErrStopped)
	require.Equal(t, []protocol.BodyRef{someRef(1, 2), someRef(2, 2)}, in.wants)
	require.Len(t, in.asks, 2)
	require.ErrorIs(t, i.Ask(GatherRequest{Ref: someRef(6, 2)}, nil), member.ErrStopped)
	require.False(t, i.Answer(&protocol.Message{Blob: make([]byte, 10)}), "nobody takes it")
}

// TestAnInstanceThatBeginsLaterObeysItsOwnMembership: the state machine has not come to its beginning, and
// applies an older membership of the cluster meanwhile.
func TestAnInstanceThatBeginsLaterObeysItsOwnMembership(t *testing.T) {
	k, _ := keptOf(newHeld(), 2)
	k.Begin(3, &protocol.Base{Config: protocol.Config{Restripes: 2}})
	k.Reshaped([]protocol.InstanceID{1, 2, 3})
	restripes := func(instance protocol.InstanceID) int {
		in, _ := k.News(instance)
		return int(in.Restripes)
	}
	ids, configs := []protocol.InstanceID{1, 2}, []protocol.Config{{Restripes: 1}, {}}
	k.Obey(ids, configs)
	require.Equal(t, 1, restripes(1))
	require.Equal(t, 2, restripes(3))
	k.Reshaped([]protocol.InstanceID{1})
	k.Obey(ids[:1], configs[:1])
	require.Equal(t, 1, restripes(3), "it is retired, and obeys the first one's")
}

// TestABodyIsNotRestoredInPlaceOfAnotherEntrys: the log has another entry where the state has one already.
// After a crash the log may still have it, and the member acknowledged it.
func TestABodyIsNotRestoredInPlaceOfAnotherEntrys(t *testing.T) {
	store := newHeld()
	k, _ := keptOf(store, 1)
	ref, old := someRef(5, 2), someRef(5, 2)
	old.Term--
	store.put(old, protocol.FormWhole, make([]byte, 1000))
	k.Of(1).Renew(0, 0, []protocol.BodyRef{ref})
	require.Equal(t, []protocol.BodyRef{ref}, k.Due(0, 1))
	require.False(t, k.Restore(ref, protocol.RowForm(1), false))
	require.True(t, k.Wants(ref))

	store.put(ref, protocol.FormWhole, make([]byte, 1000))
	require.True(t, k.Restore(ref, protocol.FormWhole, false))
	k.Restored(ref)
	require.False(t, k.Wants(ref))
	require.NoError(t, k.Check())
}
