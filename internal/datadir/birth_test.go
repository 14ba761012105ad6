package datadir

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
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
		Chance: func() uint64 { return 5 }, Cells: &protocol.CellUse{},
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
// next start: its log does not lead there. So it is if it crashed while it began with the state.
func TestAMemberWithoutTheStateOfItsBirthWaitsForIt(t *testing.T) {
	joins := birthConfig(vfs.NewMem())
	joins.Join, joins.Members = true, nil
	crashes := birthConfig(vfs.NewMem())
	crashes.State = &State{Name: "x", Write: func(io.Writer) error { return errors.New("no power") }}
	for _, c := range []Config{joins, crashes} {
		c.Machine = InMemory(&text{})
		o, err := Open(c)
		if c.Join {
			require.NoError(t, err)
			require.NoError(t, member.Damaged(c.Machine))
			require.NoError(t, o.RecordBirth("x"))
			require.NoError(t, o.Close())
		} else {
			require.ErrorContains(t, err, "no power")
		}
		c.State, c.Machine = nil, InMemory(&text{})
		o, err = Open(c)
		require.NoError(t, err)
		require.ErrorContains(t, member.Damaged(c.Machine), "began with the state x")
		require.ErrorContains(t, c.Machine.Apply(nil), "began with the state x")
		require.NoError(t, o.Close())
	}
}
