package damage

import (
	"fmt"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// DiskStats is what a member knows of damage to its log and its snapshots. BodyStats has the same of
// bodies.
type DiskStats struct {
	// Rounds is how often everything on disk was read in this incarnation. Scrubbed is how many bytes of the log and of
	// snapshots were read.
	Rounds, Scrubbed uint64
	// Damaged counts the places that were found damaged. Mended counts those that are not damaged
	// any more or that hold nothing needed any more.
	Damaged, Mended uint64
	// Failing says what is damaged and still needed. It is nil if no such damage is known.
	Failing error
}

// DiskHealth is what a member knows of damage to its log and its snapshots. It is passive; whoever
// shares it guards it. It is not safe for concurrent use.
type DiskHealth struct {
	book  DamageBook
	stats DiskStats // without Damaged and Mended
	// harmed has the last index of each instance whose record is damaged. Nothing else of the
	// instance's log up to there is relied on.
	harmed map[protocol.InstanceID]protocol.Index
}

// Passed notes damage that a start passed over, because nothing of it is needed.
func (d *DiskHealth) Passed(snapshots []error, log []*wal.CorruptError) {
	for _, err := range snapshots {
		d.book.Note(err.Error(), 0, false)
	}
	for _, err := range log {
		d.book.Note(err.File, err.Offset, false)
	}
}

// Harm notes that an entry cannot be read from the log. A snapshot is to stand for the entries up
// to it as soon as they are applied. due says that they are applied already. at is up to where the
// member has applied.
func (d *DiskHealth) Harm(err *member.LoadError, at *order.Cursor) (due bool) {
	if at.Retired(err.Instance) {
		return false // its log is dropped anyway
	}
	if d.harmed == nil {
		d.harmed = map[protocol.InstanceID]protocol.Index{}
	}
	d.harmed[err.Instance] = max(d.harmed[err.Instance], err.Index)
	d.stats.Failing = err
	return at.Point(err.Instance).Index >= err.Index
}

// Harmed returns the last index of an instance whose record is damaged; 0: none is.
func (d *DiskHealth) Harmed(instance protocol.InstanceID) protocol.Index { return d.harmed[instance] }

// Stats returns the counts up to now.
func (d *DiskHealth) Stats() DiskStats {
	s := d.stats
	s.Damaged, s.Mended = d.book.Found, d.book.Mended
	return s
}

// noteLog takes in damage to the log.
func (d *DiskHealth) noteLog(found *wal.Damage) LogRemedy {
	if len(found.Lost) > 0 {
		d.stats.Failing = found.Where
	}
	return d.book.NoteLog(found)
}

// noteSnapshot takes in that a snapshot is damaged, and whether it is needed.
func (d *DiskHealth) noteSnapshot(p protocol.Position, err error, needed bool) (news bool) {
	if needed {
		d.stats.Failing = err
	}
	return d.book.Note(fmt.Sprintf("snapshot %d", p), 0, needed)
}

// endRound takes in that everything was read once more.
func (d *DiskHealth) endRound() {
	d.stats.Rounds++
	if d.book.EndRound() == 0 {
		d.stats.Failing = nil
	}
}
