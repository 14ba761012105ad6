package members

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// configOf has the given voters, with rows in their order.
func configOf(ids ...protocol.MemberID) protocol.Config {
	c := protocol.Config{Slots: len(ids)}
	for i, id := range ids {
		c.Members = append(c.Members, protocol.Member{ID: id, Slot: uint8(i)})
	}
	return c
}

// TestTheLastConfigurationIsActive: as the log grows, is cut and compacted.
func TestTheLastConfigurationIsActive(t *testing.T) {
	c, err := Start(&protocol.Base{Index: 10, Config: configOf(1, 2, 3)}, &protocol.Settings{Instance: 2}, setting.Table{})
	require.NoError(t, err)
	require.Equal(t, 1, c.Seat)
	require.Nil(t, c.Before())
	require.NoError(t, c.Append(12, configOf(1, 2, 3, 4)))
	require.NoError(t, c.Append(20, configOf(1, 2)))
	require.Equal(t, protocol.Index(20), c.At)
	require.Len(t, c.Voters.Incoming, 2)
	require.True(t, c.Before().Voter(4))

	row, ok := c.Slot(4)
	require.True(t, ok && row == 3, "a member that left has the row of an older configuration")
	_, ok = c.Slot(5)
	require.False(t, ok)

	require.Len(t, c.Electorate(11).Incoming, 3)
	require.Len(t, c.Electorate(19).Incoming, 4)
	require.Len(t, c.Electorate(20).Incoming, 2)

	require.False(t, c.Cut(21))
	require.True(t, c.Cut(13))
	require.Equal(t, protocol.Index(12), c.At)
	require.True(t, c.Cut(11))
	require.Equal(t, protocol.Index(10), c.At, "the base's configuration stays")

	require.NoError(t, c.Append(11, configOf(7)))
	c.Compact(11)
	require.True(t, c.Alone(7))
	_, ok = c.Slot(1)
	require.False(t, ok, "configurations before the base are forgotten")
}

// TestQuorumsMeet: those that confirm a leader meet those that elect, for all quorums that may be set.
func TestQuorumsMeet(t *testing.T) {
	for read := 2; read <= 3; read++ {
		c, err := Start(&protocol.Base{Config: configOf(1, 2, 3)},
			&protocol.Settings{Instance: 1, ReadQuorum: read, WriteQuorum: 3}, setting.Table{})
		require.NoError(t, err)
		require.Equal(t, read, c.Deciders().Need)
		require.Equal(t, 3, c.Writers().Need)
		require.Equal(t, 4, c.Confirmers(c.Deciders()).Need+read)
	}
}

// TestFenced: a fence is needed for other voters and for members that leave, not for members that join as learners.
func TestFenced(t *testing.T) {
	now := configOf(1, 2, 3)
	learner := now.Clone()
	learner.Members = append(learner.Members, protocol.Member{ID: 4, Learner: true})
	require.False(t, Fenced(&now, &learner))
	require.True(t, Fenced(&learner, &now), "the learner may have a lane")
	more := configOf(1, 2, 3, 4)
	require.True(t, Fenced(&now, &more))
	require.True(t, OneApart(now.Voters(), more.Voters()))
	require.False(t, OneApart(more.Voters(), []protocol.MemberID{1, 2}))
}
