package replica

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
)

func TestMendingAsksOneAfterTheOther(t *testing.T) {
	const election = time.Second
	st := &protocol.Status{Self: 2, Config: protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}}}
	var m member.StateRepair
	asked := []protocol.MemberID{}
	for now := time.Duration(0); now < 200*election; now += election / 10 {
		to := m.Next(now, election, st)
		if to == 0 {
			continue
		}
		asked = append(asked, to)
		if len(asked) < 4 {
			m.Refused(now, election)
		}
	}
	// Members that refuse are left at once. A member that sends its state gets time.
	require.Equal(t, []protocol.MemberID{3, 1, 3, 1, 3, 1, 3}, asked)
	require.Zero(t, new(member.StateRepair).Next(0, election, &protocol.Status{Self: 1, Config: protocol.Config{Members: []protocol.Member{{ID: 1}}}}), "there is nobody")
}

// fragile is a state machine whose state can be damaged.
type fragile struct {
	applied []member.Command
	damaged error
}

func (f *fragile) Apply(commands []member.Command) error {
	if f.damaged == nil {
		f.applied = append(f.applied, commands...)
	}
	return f.damaged
}
func (f *fragile) Snapshot() (member.Snapshot, error) { return nil, f.damaged }
func (f *fragile) Restore(r io.Reader) error          { f.damaged = nil; return nil }
func (f *fragile) Applied() protocol.Position         { return 0 }
func (f *fragile) Sync() error                        { return f.damaged }
func (f *fragile) Damaged() error                     { return f.damaged }
func (f *fragile) Condemn(cause error)                { f.damaged = cause }

// TestDamagedStateIsReplaced applies nothing to a damaged state. It goes on after a snapshot that is
// not behind the state's place in the order. A snapshot of the same place is enough.
func TestDamagedStateIsReplaced(t *testing.T) {
	entry := func(index protocol.Index) protocol.Entry {
		e := protocol.Entry{Kind: protocol.EntryBatch, ID: protocol.ProposalID{Session: protocol.Session{Member: 1}, Seq: uint64(index)}, Count: 1}
		e.Payload = protocol.AppendCommand(nil, []byte{byte(index)})
		e.Seal(index, 1, make([]byte, protocol.HeadSize))
		return e
	}
	sm := &fragile{}
	meta := member.Bootstrap(order.Begin(1, false), []protocol.Member{{ID: 1}, {ID: 2}})
	a := member.NewApplier(sm, meta, protocol.Session{}, 0, func(protocol.InstanceID, *protocol.Entry) error { return nil })
	apply := func(index protocol.Index) {
		require.NoError(t, a.Apply(member.CommittedEntries{Instance: meta.Cursor.Points[0].Instance, Entries: []protocol.Entry{entry(index)}}))
	}
	apply(1)
	before := a.Meta()
	require.Len(t, sm.applied, 1)

	sm.Condemn(errors.New("a flipped byte"))
	apply(2) // it is in the order, but it has no effect
	require.True(t, a.Stuck())
	apply(3)
	require.Len(t, sm.applied, 1)
	require.False(t, a.Fits(&before), "entry 2 would be lost")

	good := before
	good.Cursor = a.Cursor() // from a member that applied entry 2
	require.Equal(t, protocol.Index(2), good.Cursor.Points[0].Index)
	require.True(t, a.Fits(&good))
	require.NoError(t, a.Install(good, bytes.NewReader(nil)))
	require.False(t, a.Stuck())
	require.Len(t, sm.applied, 2, "entry 3 follows")
	require.Equal(t, []byte{3}, sm.applied[1].Data)
}
