package datadir

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/protocol"
)

// text is a state machine in memory whose state is a text.
type text struct {
	nothing
	is string
}

func (m *text) Restore(r io.Reader) error {
	b, err := io.ReadAll(r)
	m.is = string(b)
	return err
}

// onDisk is one that keeps it on disk.
type onDisk struct {
	*text
	applied protocol.Position
}

func (m onDisk) Applied() protocol.Position { return m.applied }
func (m onDisk) Sync() error                { return nil }

func birthConfig(fs vfs.FS) Config {
	return Config{
		FS: fs, Dir: "/d", Cluster: 7, Self: 1, Members: []protocol.Member{{ID: 1}}, Begin: order.Begin(1, false),
		Chance: func() uint64 { return 5 }, Cells: true,
	}
}

// A directory that began with a state has it at each start, for a state machine in memory as for one on disk to which
// nothing was applied yet.
func TestADirectoryBeginsWithAState(t *testing.T) {
	fs := vfs.NewMem()
	c := birthConfig(fs)
	begun := func(w io.Writer) error {
		_, err := io.WriteString(w, "begun")
		return err
	}
	c.State, c.Machine = &State{Name: "x", Write: begun}, nothing{}
	for range 3 {
		m := &text{}
		if c.State == nil {
			c.Machine = InMemory(m)
		}
		o, err := Open(c)
		require.NoError(t, err)
		require.Equal(t, "x", o.Birth.State)
		require.NoError(t, member.Damaged(c.Machine))
		require.NoError(t, o.Close())
		if c.State == nil {
			require.Equal(t, "begun", m.is)
		}
		c.State = nil
	}
	for applied, want := range map[protocol.Position]string{0: "begun", 3: "further"} {
		m := onDisk{&text{is: "further"}, applied}
		c.Machine = m
		o, err := Open(c)
		require.NoError(t, err)
		require.NoError(t, o.Close())
		require.Equal(t, want, m.is)
	}
}

// A member in memory that was told of such a state, and ended before it got that of another member, has none at its
// next start: its log does not lead there.
func TestAMemberWithoutTheStateOfItsBirthWaitsForIt(t *testing.T) {
	c := birthConfig(vfs.NewMem())
	c.Join, c.Members = true, nil
	c.Machine = InMemory(&text{})
	o, err := Open(c)
	require.NoError(t, err)
	require.NoError(t, member.Damaged(c.Machine))
	require.NoError(t, o.RecordBirth("x"))
	require.NoError(t, o.Close())
	c.Machine = InMemory(&text{})
	o, err = Open(c)
	require.NoError(t, err)
	require.ErrorContains(t, member.Damaged(c.Machine), "began with the state x")
	require.ErrorContains(t, c.Machine.Apply(nil), "began with the state x")
	require.NoError(t, o.Close())
}

// A directory that was to begin with a state, and has none because of a crash, does not begin empty: the other first
// members have the state.
func TestADirectoryDoesNotBeginWithoutItsState(t *testing.T) {
	for _, sm := range []member.StateMachine{InMemory(&text{}), onDisk{&text{}, 0}} {
		c := birthConfig(vfs.NewMem())
		c.State, c.Machine = &State{Name: "x", Write: func(io.Writer) error { return errors.New("no power") }}, nothing{}
		_, err := Open(c)
		require.ErrorContains(t, err, "no power")
		c.State, c.Machine = nil, sm
		for range 2 {
			_, err = Open(c)
			require.ErrorAs(t, err, new(*member.DirError))
			require.ErrorContains(t, err, "remove the directory")
		}
	}
}

// moved is a machine on disk whose state says where it is.
type moved struct{ *text }

func (m moved) Sync() error { return nil }

func (m moved) Applied() protocol.Position { return protocol.Position(len(m.is)) }

// The commands of a new log must not count as applied because the state at its beginning was that of another log.
func TestAClusterBeginsWithAStateAtNoPosition(t *testing.T) {
	c := birthConfig(vfs.NewMem())
	c.State, c.Machine = &State{Name: "x", Write: func(w io.Writer) error {
		_, err := io.WriteString(w, "7 bytes")
		return err
	}}, nothing{}
	o, err := Open(c)
	require.NoError(t, err)
	require.NoError(t, o.Close())
	c.State, c.Machine = nil, moved{&text{}}
	_, err = Open(c)
	require.ErrorAs(t, err, new(*member.MachineError))
	require.ErrorContains(t, err, "position 7")
}

// The wrapper of a state machine in memory hides no type by which a state machine is refused.
func TestInMemoryHidesNoType(t *testing.T) {
	of := func(protocol.InstanceID) member.StateMachine { return &text{} }
	g, err := apply.NewGroups([]protocol.InstanceID{1, 2}, of)
	require.NoError(t, err)
	at := order.Begin(1, false)
	require.Error(t, apply.CheckMachine(InMemory(g), &at))
	_, err = cluster.BirthOf(InMemory(begun{}))
	require.ErrorAs(t, err, new(*member.MachineError))
}

// begun is a state machine in memory that began with a state.
type begun struct{ nothing }

func (begun) Birth() string { return "x" }
