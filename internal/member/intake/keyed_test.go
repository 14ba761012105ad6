package intake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

func keyedProposals() *Proposals {
	p := &Proposals{MaxBatch: 1000, MaxBytes: 1 << 20}
	p.SetGroups([]protocol.InstanceID{1, 2, 3})
	return p
}

func noTime() time.Duration { return 0 }

func ofKeys(keys ...uint64) *protocol.ProposeOptions { return &protocol.ProposeOptions{Keys: keys} }

func TestCommandsGoToTheGroupOfTheirKeys(t *testing.T) {
	p := keyedProposals()
	for _, key := range []uint64{4, 7, 3, 1} { // of the groups 2, 2, 1 and 2
		_, err := p.AddWith(noTime, []byte{byte(key)}, ofKeys(key, key+3), func(any, error) {})
		require.NoError(t, err)
	}
	require.NoError(t, p.Check())
	require.Nil(t, p.TakeFor(3))
	first, second := p.TakeFor(1), p.TakeFor(2)
	require.Len(t, first.Done, 1)
	require.Len(t, second.Done, 3)
	require.EqualValues(t, 1, first.Entry.ID.Seq)
	require.EqualValues(t, 1, second.Entry.ID.Seq, "each group has numbers of its own")

	require.NoError(t, p.Again([]*Batch{first, second}))
	require.Same(t, second, p.TakeFor(2), "however often, it goes to the same group")
	require.Same(t, first, p.TakeFor(1))
	for _, b := range []*Batch{first, second} {
		p.Settled(0, b)
	}
	require.NoError(t, p.Check())
	require.Zero(t, p.Bytes())
}

func TestCommandsWithoutAGroupAreRefused(t *testing.T) {
	p := keyedProposals()
	client := &ClientQueue{Proposals: p}
	for name, o := range map[string]*protocol.ProposeOptions{
		"does not say which keys":  {},
		"belong to several groups": ofKeys(1, 2),
		"names commands after which": {Keys: []uint64{1},
			After: []protocol.Token{{Session: protocol.NewSession(1, protocol.LogID{}, 1, false), Seq: 1}}},
		"braid: options of a proposal": {Keys: make([]uint64, protocol.MaxKeys+1)},
	} {
		_, err := p.AddWith(noTime, []byte("x"), o, nil)
		require.ErrorContains(t, err, name)
		_, err = client.AddWith(noTime, []byte("x"), o, nil)
		require.ErrorContains(t, err, name)
	}
	for _, to := range []interface {
		Add(func() time.Duration, []byte, Done) (bool, error)
		AddBody(func() time.Duration, *Batch) (bool, error)
	}{p, client} {
		_, err := to.Add(noTime, []byte("x"), nil)
		require.ErrorAs(t, err, new(*GroupError))
		_, err = to.AddBody(noTime, NewBodyBatch([]byte("x"), []byte("body"), nil))
		require.ErrorContains(t, err, "has a body")
	}
	require.Zero(t, p.Bytes())
}

// A client's commands of different groups follow each other, although the groups have no common order.
func TestAClientsCommandsKeepTheirOrderOverGroups(t *testing.T) {
	p := keyedProposals()
	q := &ClientQueue{Proposals: p}
	for _, key := range []uint64{3, 6, 4, 3} { // of the groups 1, 1, 2 and 1
		_, err := q.AddWith(noTime, []byte("x"), ofKeys(key), func(any, error) {})
		require.NoError(t, err)
	}
	for _, group := range []protocol.InstanceID{1, 1, 2, 1} {
		for other := range protocol.InstanceID(4) {
			if b := p.TakeFor(other); other != group {
				require.Nil(t, b)
			} else {
				require.NotNil(t, b)
				_, _, err := q.Settled(noTime, b)
				require.NoError(t, err)
				break
			}
		}
		require.NoError(t, q.Check())
		require.NoError(t, p.Check())
	}
}

func TestProposalsOfAllGroupsExpireAndClose(t *testing.T) {
	p := keyedProposals()
	for key := range uint64(3) {
		_, err := p.AddWith(noTime, []byte("x"), ofKeys(key), nil)
		require.NoError(t, err)
	}
	require.Empty(t, p.Expired(time.Second, time.Minute))
	require.Len(t, p.Expired(time.Hour, time.Minute), 3)
	_, err := p.AddWith(noTime, []byte("x"), ofKeys(2), nil)
	require.NoError(t, err)
	require.Len(t, p.Close(member.ErrStopped), 1)
	_, err = p.AddWith(noTime, []byte("x"), ofKeys(2), nil)
	require.ErrorIs(t, err, member.ErrStopped)
}
