package damage

import (
	"io"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// ScrubAtLeast is the least number of bytes for whose time a round of scrubbing lasts, even if fewer
// bytes are on the disk.
const ScrubAtLeast = 64 << 20

// ScrubFiles is what a Scrub reads.
type ScrubFiles struct {
	Log interface {
		Next() (int64, *wal.Damage, error)
	} // a wal.Scrubber
	Snapshots SnapshotFiles
	Bodies    *body.BodyAccess
}

// SnapshotFiles are the snapshots in a member's directory.
type SnapshotFiles interface {
	// Positions returns the positions of the snapshots, ascending.
	Positions() ([]protocol.Position, error)
	// Find opens the snapshot at a position; it returns nil if that was removed.
	Find(protocol.Position) (member.ReceivedSnapshot, error)
	Remove(protocol.Position) error
}

// ScrubWorld is what a Scrub needs of the member.
type ScrubWorld interface {
	// Health calls use with the member's DiskHealth. No one else uses it meanwhile.
	Health(use func(*DiskHealth))
	// Harm does what follows from DiskHealth.Harm.
	Harm(err *member.LoadError)
	// Rewrite has an instance's hard state and its cells written to the log again.
	Rewrite(instance protocol.InstanceID)
	// WantSnapshot asks for a new snapshot.
	WantSnapshot()
	// Found tells of damage that was not known.
	Found(err error, needed bool)
	// Trouble tells that something cannot be read, listed or removed. The next round tries again.
	Trouble(err error)
}

// Scrub reads the log, the snapshots and the bodies of a member again and again, and does what it can about damage. For
// damaged entries a snapshot is taken once they are applied, and the log is compacted up to it. A damaged hard state is
// written again, and so are cells. A damaged snapshot is taken again if it is the newest, or removed. What cannot be
// read may be undamaged: it is left alone, and the newest snapshot is taken again.
//
// It is for one goroutine.
type Scrub struct {
	world ScrubWorld
	files ScrubFiles

	part   scrubPart
	left   int64 // bytes of the least length of the round that were not read yet
	bodies body.BodyScrubber
	// to are the snapshots that are still to be read, ascending, and open the one that is being read.
	to   []protocol.Position
	open member.ReceivedSnapshot
	buf  []byte
}

// scrubPart is what a Scrub reads next.
type scrubPart uint8

const (
	scrubLog scrubPart = iota
	scrubSnapshots
	scrubBodies
	scrubRest // nothing: the round lasts a while longer
)

// scrubPiece is how much of a snapshot is read at once.
const scrubPiece = 256 << 10

// NewScrub returns a Scrub that begins its first round.
func NewScrub(world ScrubWorld, files ScrubFiles) *Scrub {
	return &Scrub{world: world, files: files, left: ScrubAtLeast}
}

// Step reads the next piece. It returns for how many bytes' time to wait before the next Step.
func (s *Scrub) Step() (bytes int64) {
	switch s.part {
	case scrubLog:
		bytes = s.stepLog()
	case scrubSnapshots:
		bytes = s.stepSnapshots()
	case scrubBodies:
		read, more := s.bodies.Next()
		if bytes = read; !more {
			s.part = scrubRest
		}
	case scrubRest:
		s.world.Health((*DiskHealth).endRound)
		bytes = max(s.left, 0)
		s.part, s.left = scrubLog, ScrubAtLeast
		return bytes
	}
	s.left -= bytes
	return bytes
}

// Close ends the scrub, perhaps in the middle of a file.
func (s *Scrub) Close() error {
	if s.open == nil {
		return nil
	}
	err := s.open.Close()
	s.open = nil
	return err
}

func (s *Scrub) stepLog() int64 {
	n, damage, err := s.files.Log.Next()
	s.read(n)
	if damage != nil {
		s.mendLog(damage)
	}
	if err != nil {
		s.world.Trouble(err)
	}
	if n > 0 {
		return n
	}
	all, err := s.files.Snapshots.Positions()
	if err != nil {
		s.world.Trouble(err)
	}
	s.part, s.to = scrubSnapshots, all
	return 0
}

func (s *Scrub) read(n int64) {
	s.world.Health(func(d *DiskHealth) { d.stats.Scrubbed += uint64(n) })
}

func (s *Scrub) mendLog(found *wal.Damage) {
	var remedy LogRemedy
	s.world.Health(func(d *DiskHealth) { remedy = d.noteLog(found) })
	if remedy.News {
		s.world.Found(found.Where, len(found.Lost) > 0)
	}
	for _, id := range remedy.Rewrite {
		s.world.Rewrite(id)
	}
	for _, h := range remedy.Harmed {
		s.world.Harm(&member.LoadError{Instance: h.Instance, Index: h.Index, Err: found.Where})
	}
}

// stepSnapshots reads a piece of a snapshot.
func (s *Scrub) stepSnapshots() int64 {
	if len(s.to) == 0 {
		s.part, s.bodies = scrubBodies, s.files.Bodies.Scrubber()
		return 0
	}
	n, more, err := s.piece(s.to[0])
	s.read(n)
	if more && err == nil {
		return n
	}
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	p := s.to[0]
	s.to = s.to[1:]
	if err != nil {
		s.mendSnapshot(p, err)
	}
	return n
}

// piece reads a piece of the snapshot at a position. more is false if it was the last one, or if the
// snapshot was removed.
func (s *Scrub) piece(p protocol.Position) (n int64, more bool, err error) {
	if s.open == nil {
		if s.open, err = s.files.Snapshots.Find(p); s.open == nil || err != nil {
			s.open = nil
			return 0, false, err
		}
	}
	if s.buf == nil {
		s.buf = make([]byte, scrubPiece)
	}
	got, err := io.ReadFull(s.open, s.buf)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return int64(got), false, s.open.Verify()
	}
	return int64(got), true, err
}

func (s *Scrub) mendSnapshot(p protocol.Position, why error) {
	all, err := s.files.Snapshots.Positions()
	if err != nil {
		s.world.Trouble(err)
		return
	}
	retake, remove := SnapshotRemedy(p, all, why)
	s.noteSnapshot(p, why, !remove)
	if remove {
		if err := s.files.Snapshots.Remove(p); err != nil {
			s.world.Trouble(err)
		}
	}
	if retake {
		s.world.WantSnapshot()
	}
}

func (s *Scrub) noteSnapshot(p protocol.Position, why error, needed bool) {
	if !member.IsDamage(why) {
		s.world.Trouble(why)
		return
	}
	news := false
	s.world.Health(func(d *DiskHealth) { news = d.noteSnapshot(p, why, needed) })
	if news {
		s.world.Found(why, needed)
	}
}
