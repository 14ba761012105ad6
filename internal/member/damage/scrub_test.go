package damage

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// scrubbed is a member with a log, snapshots and no bodies.
type scrubbed struct {
	DiskHealth
	damage    []*wal.Damage // what the log finds next
	unread    error         // why some of the log cannot be read
	snapshots map[protocol.Position]error
	at        order.Cursor
	did       []string
}

func (s *scrubbed) Next() (int64, *wal.Damage, error) {
	if err := s.unread; err != nil {
		s.unread = nil
		return 10, nil, err
	}
	if len(s.damage) == 0 {
		return 0, nil, nil
	}
	d := s.damage[0]
	s.damage = s.damage[1:]
	return 10, d, nil
}

func (s *scrubbed) Positions() (all []protocol.Position, err error) {
	for p := range s.snapshots {
		all = append(all, p)
	}
	slices.Sort(all)
	return all, nil
}

func (s *scrubbed) Find(p protocol.Position) (member.ReceivedSnapshot, error) {
	err, ok := s.snapshots[p]
	if !ok {
		return nil, nil
	}
	return snapshotFile{strings.NewReader("state"), err}, nil
}

func (s *scrubbed) Remove(p protocol.Position) error {
	delete(s.snapshots, p)
	s.did = append(s.did, "remove")
	return nil
}

type snapshotFile struct {
	io.Reader
	err error
}

func (f snapshotFile) Close() error      { return nil }
func (f snapshotFile) Meta() member.Meta { return member.Meta{} }
func (f snapshotFile) Verify() error     { return f.err }

func (s *scrubbed) Health(use func(*DiskHealth)) { use(&s.DiskHealth) }
func (s *scrubbed) Harm(err *member.LoadError) {
	if s.DiskHealth.Harm(err, &s.at) {
		s.WantSnapshot()
	}
}
func (s *scrubbed) Rewrite(protocol.InstanceID) { s.did = append(s.did, "rewrite") }
func (s *scrubbed) WantSnapshot()               { s.did = append(s.did, "snapshot") }
func (s *scrubbed) Found(error, bool)           { s.did = append(s.did, "found") }
func (s *scrubbed) Trouble(err error)           { s.did = append(s.did, err.Error()) }

// round scrubs everything once, and returns what was done about it.
func (s *scrubbed) round(t *testing.T, scrub *Scrub) (did []string) {
	s.did = nil
	bytes := int64(0)
	for rounds := s.Stats().Rounds; s.Stats().Rounds == rounds; {
		bytes += scrub.Step()
	}
	require.EqualValues(t, ScrubAtLeast, bytes, "a round takes a while however little there is")
	return s.did
}

func TestScrubMendsWhatItFinds(t *testing.T) {
	store, err := wal.OpenBodies(wal.BodiesOptions{FS: vfs.NewMem(), Dir: "bodies"})
	require.NoError(t, err)
	s := &scrubbed{snapshots: map[protocol.Position]error{5: nil, 9: nil}, at: order.Begin(1, false)}
	scrub := NewScrub(s, ScrubFiles{Log: s, Snapshots: s, Bodies: body.NewBodyAccess(body.BodyConfig{}, store, nil)})
	require.Empty(t, s.round(t, scrub))
	require.EqualValues(t, 2*len("state"), s.Stats().Scrubbed)

	damage := &wal.Damage{Where: &wal.CorruptError{File: "log"}, Lost: []wal.Lost{{Instance: 1, State: true, Last: 7}}}
	s.damage = []*wal.Damage{damage}
	require.Equal(t, []string{"found", "rewrite"}, s.round(t, scrub), "the entries are not applied yet")
	require.EqualValues(t, 7, s.Harmed(1))
	require.Error(t, s.Stats().Failing)
	s.at.Points[0].Index = 7
	s.damage = []*wal.Damage{damage}
	require.Equal(t, []string{"rewrite", "snapshot"}, s.round(t, scrub))
	require.Empty(t, s.round(t, scrub))
	require.Equal(t, DiskStats{Rounds: 4, Scrubbed: 4*2*5 + 2*10, Damaged: 1, Mended: 1}, s.Stats())

	bad := &protocol.CorruptError{}
	s.snapshots[5], s.snapshots[9] = bad, bad
	require.Equal(t, []string{"found", "remove", "found", "snapshot"}, s.round(t, scrub))
	s.snapshots[9], s.snapshots[12] = errors.New("input/output error"), nil
	require.Equal(t, []string{"input/output error"}, s.round(t, scrub), "it may be undamaged")
	require.Contains(t, s.snapshots, protocol.Position(9))
}

// TestScrubLeavesAloneWhatItCannotRead: a failed read is told, and is no damage.
func TestScrubLeavesAloneWhatItCannotRead(t *testing.T) {
	store, err := wal.OpenBodies(wal.BodiesOptions{FS: vfs.NewMem(), Dir: "bodies"})
	require.NoError(t, err)
	s := &scrubbed{snapshots: map[protocol.Position]error{9: errors.New("no snapshot")}, at: order.Begin(1, false)}
	scrub := NewScrub(s, ScrubFiles{Log: s, Snapshots: s, Bodies: body.NewBodyAccess(body.BodyConfig{}, store, nil)})
	s.unread = &wal.ReadError{Op: "read", File: "f", Err: errors.New("no log")}
	require.Equal(t, []string{"wal: read f: no log", "no snapshot", "snapshot"}, s.round(t, scrub))
	stats := s.Stats()
	require.Zero(t, stats.Damaged)
	require.NoError(t, stats.Failing)
	require.Zero(t, s.Harmed(1))
}
