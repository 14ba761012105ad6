package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// saver is the disk of a member's register.
type saver struct {
	err, failed    error
	adopted, noted []string
	formats        []int
}

func (s *saver) Save(*Register) error { return s.err }
func (s *saver) Fail(err error)       { s.failed = err }

func (s *saver) Adopt(state string) error {
	s.adopted = append(s.adopted, state)
	return nil
}

func (s *saver) WriteFormat(to int) error {
	if s.err == nil {
		s.formats = append(s.formats, to)
	}
	return s.err
}

func (s *saver) RecordBirth(state string) error {
	if s.err == nil {
		s.noted = append(s.noted, state)
	}
	return s.err
}

func handshakesOf(id protocol.MemberID) (*Handshakes, *saver) {
	s := &saver{}
	h := NewHandshakes(NewRegister(OwnIdentity{Member: id, Log: protocol.LogID{byte(id)}, Incarnation: 3,
		Marks: []uint64{7}}),
		Birth{Unknown: true}, s)
	return &h, s
}

// TestAFullDiskKeepsALinkAway: a member whose disk is full continues. It has no link with whom it cannot
// note, and gets one when there is space.
func TestAFullDiskKeepsALinkAway(t *testing.T) {
	h, disk := handshakesOf(1)
	who := protocol.Who{Log: protocol.LogID{2}, Incarnation: 1, Mark: 9}
	require.NoError(t, h.Met(2, who))
	later := protocol.Who{Log: who.Log, Incarnation: 2, Mark: 5}
	disk.err = &wal.FullError{}
	for range 2 {
		require.NoError(t, h.Meet(2, later, protocol.Who{}))
		require.Error(t, h.Met(2, later))
	}
	require.NoError(t, disk.failed)
	require.Equal(t, who, h.Takes(2), "what the disk has")
	disk.err = nil
	require.NoError(t, h.Met(2, later))
	require.Equal(t, later, h.Takes(2))

	disk.err = errors.New("input/output error")
	require.Error(t, h.Met(3, who))
	require.ErrorIs(t, disk.failed, disk.err, "nobody knows what the disk has")
}

func TestAMemberThatOthersKnowAsAnotherStops(t *testing.T) {
	h, disk := handshakesOf(1)
	var stranger *StrangerError
	require.NoError(t, h.Met(2, protocol.Who{Log: protocol.LogID{2}, Incarnation: 2, Mark: 1}))
	require.ErrorAs(t, h.Meet(2, protocol.Who{Log: protocol.LogID{5}, Incarnation: 1, Mark: 1}, protocol.Who{}), &stranger)
	require.NoError(t, disk.failed)
	another := protocol.Config{Members: []protocol.Member{{ID: 2, Log: protocol.LogID{6}}}}
	strangers := h.Learn(&another, &protocol.Config{}, false)
	require.Equal(t, []protocol.MemberID{2}, strangers)
	require.NoError(t, disk.failed)
	var forgotten *ForgottenError
	who, takes := protocol.Who{Log: protocol.LogID{3}, Incarnation: 1},
		protocol.Who{Log: protocol.LogID{1}, Incarnation: 4}
	require.ErrorAs(t, h.Meet(3, who, takes), &forgotten)
	require.NoError(t, disk.failed, "the other one may be of another log")
	h.Unmet(3, who, takes)
	require.ErrorAs(t, disk.failed, &forgotten)
	disk.failed = nil
	h.Learn(&protocol.Config{Members: []protocol.Member{{ID: 1, Log: protocol.LogID{9}}}}, &protocol.Config{}, false)
	require.ErrorAs(t, disk.failed, &forgotten)
}

func TestANewbornHearsOthersFirst(t *testing.T) {
	members := []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}
	empty := []member.InstanceLog{{Instance: 1, Recovered: &protocol.Recovered{}}}
	h, _ := handshakesOf(1)
	h.Begin(5*time.Second, time.Second, empty, members)
	require.Equal(t, time.Second, h.Waits(5*time.Second))
	h.Answered(2)
	h.Answered(2)
	h.Answered(9)
	require.Equal(t, time.Second/2, h.Waits(5*time.Second+time.Second/2))
	require.Zero(t, h.Waits(7*time.Second), "it waits no longer than an election timeout")
	h.Answered(3)
	require.Zero(t, h.Waits(5*time.Second))

	voted := []member.InstanceLog{{Instance: 1, Recovered: &protocol.Recovered{State: protocol.HardState{Term: 1}}}}
	for name, logs := range map[string][]member.InstanceLog{"it has voted": voted,
		"one of two has": append(empty, voted...)} {
		h, _ := handshakesOf(1)
		h.Begin(0, time.Second, logs, members)
		require.Zero(t, h.Waits(0), name)
	}
	h, _ = handshakesOf(1)
	h.Begin(0, time.Second, empty, members[:1])
	require.Zero(t, h.Waits(0), "there is nobody else")
}

// A member that joins learns with which state its cluster began from the first link, and has no link to a member that
// says otherwise. On a full disk it learns nothing; an error of the disk stops it.
func TestAMemberThatJoinsLearnsTheBirth(t *testing.T) {
	h, disk := handshakesOf(1)
	require.True(t, h.Agrees(Birth{State: "x"}))
	disk.err = &wal.FullError{}
	learned, err := h.Born("x")
	require.ErrorIs(t, err, disk.err)
	require.False(t, learned)
	require.NoError(t, disk.failed)
	require.True(t, h.Birth().Unknown)

	disk.err = nil
	learned, err = h.Born("x")
	require.NoError(t, err)
	require.True(t, learned)
	require.Equal(t, Birth{State: "x"}, h.Birth())
	require.Equal(t, []string{"x"}, disk.noted)

	learned, err = h.Born("x")
	require.NoError(t, err)
	require.False(t, learned, "it knows")
	require.False(t, h.Agrees(Birth{}))
	require.True(t, h.Agrees(Birth{Unknown: true}))
	_, err = h.Born("")
	require.ErrorAs(t, err, new(*BirthError))
	require.NoError(t, disk.failed)
	require.Equal(t, []string{"x", "x"}, disk.adopted)

	h, disk = handshakesOf(1)
	disk.err = errors.New("input/output error")
	_, err = h.Born("x")
	require.ErrorIs(t, err, disk.err)
	require.ErrorIs(t, disk.failed, disk.err, "it is not known what the disk has")
}
