package lifecycle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/damage"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// celled is a core that writes a cell for each proposal, numbered as the proposal is, and empties it
// with Compact.
type celled struct {
	protocol.Core
	seq uint64
}

func (c *celled) Status() protocol.Status { return protocol.Status{First: 1} }

func (c *celled) Step(_ time.Duration, in protocol.Input, out *protocol.Effects) {
	switch in := in.(type) {
	case protocol.Propose:
		cell := protocol.Cell{Number: in.Entries[0].ID.Seq, Data: []byte(fmt.Sprint("cell ", in.Entries[0].ID.Seq))}
		out.Persist = append(out.Persist, protocol.Record{Kind: protocol.RecordCell, Cell: cell})
	case protocol.Compact:
		out.Persist = append(out.Persist,
			protocol.Record{Kind: protocol.RecordDrop, Cell: protocol.Cell{Number: uint64(in.Index)}})
	}
	c.seq++
	out.Seq = c.seq
}

// What a core writes to its cells is what it is started from, also behind a snapshot that goes further
// than the log, and in an instance that begins later.
func TestCellsComeBack(t *testing.T) {
	fs := vfs.NewMem()
	meta := membertest.WovenMeta(2)
	options := wal.Options{FS: fs, Dir: "log", Identity: []byte("x"), Cover: CoverOf(&meta, true)}
	log, err := wal.Open(options)
	require.NoError(t, err)
	in := instance.NewInstance(instance.InstanceConfig{Self: 1, Instance: 2}, &celled{})
	var out instance.Outbox
	for _, number := range []uint64{900, 5, 7} {
		in.Step(0, protocol.Propose{Entries: []protocol.Entry{{ID: protocol.ProposalID{Seq: number}}}}, &out)
	}
	in.Step(0, protocol.Compact{Index: 5}, &out)
	require.NoError(t, log.Append(out.Persist))
	require.NoError(t, log.Close())
	want := []protocol.Cell{{Number: 7, Data: []byte("cell 7")}, {Number: 900, Data: []byte("cell 900")}}

	log, err = wal.Open(options)
	require.NoError(t, err)
	rec, err := Recover(log, 2, meta)
	require.NoError(t, err)
	require.Equal(t, want, rec.Cells)
	meta.Cursor.Points[1].Index = 10
	rec, err = Recover(log, 2, meta)
	require.NoError(t, err)
	require.Equal(t, want, rec.Cells, "the log begins anew")
	u, err := RecoverPending(log, 2)
	require.NoError(t, err)
	rec, _, err = u.Begin(protocol.Base{})
	require.NoError(t, err)
	require.Equal(t, want, rec.Cells)
	require.NoError(t, log.Close())
}

// A record is damaged in a log that may have cells. A member that runs has them written again. One
// that starts before that must be replaced.
func TestDamagedCells(t *testing.T) {
	r := (&damage.DamageBook{}).NoteLog(&wal.Damage{Where: &wal.CorruptError{},
		Lost: []wal.Lost{{Instance: 2, Cells: true}, {Instance: 3, Last: 7}}})
	require.Equal(t, []protocol.InstanceID{2}, r.Rewrite)
	require.Equal(t, []damage.Harm{{Instance: 3, Index: 7}}, r.Harmed)

	fs := vfs.NewMem()
	meta := member.Meta{}
	options := wal.Options{FS: fs, Dir: "log", Identity: []byte("x"), Cover: CoverOf(&meta, true)}
	log, err := wal.Open(options)
	require.NoError(t, err)
	for _, data := range []string{"promised", "accepted", "decided"} {
		require.NoError(t, log.Append([]wal.Record{member.WALRecord(1,
			&protocol.Record{Kind: protocol.RecordCell, Cell: protocol.Cell{Number: 1, Data: []byte(data)}})}))
		require.NoError(t, log.Sync())
	}
	require.NoError(t, log.Close())
	spoil(t, fs, "log/0000000000000001.wal", []byte("accepted"))
	_, err = wal.Open(options)
	require.True(t, member.IsDamage(err), "%v", err)
}
