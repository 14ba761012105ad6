package damage

import (
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// This is what a member does about bytes on its disk that are not there, or are not what was
// written. These are pure rules, for whoever finds such bytes. See docs/using/operations.md.

// SnapshotRemedy says what to do about a snapshot file for which scrubbing returned err. retake
// says that a new one is to be written. remove says that the file may go, because the others are
// enough. all are the snapshots that there are, ascending. A file that the disk fails to read may
// be undamaged, so it stays.
func SnapshotRemedy(at protocol.Position, all []protocol.Position, err error) (retake, remove bool) {
	newest := len(all) > 0 && all[len(all)-1] == at
	return err != nil && newest, member.IsDamage(err) && !newest
}

// LogRemedy is what to do about damage in a log.
type LogRemedy struct {
	Rewrite []protocol.InstanceID // their hard states and cells are to be written again
	Harmed  []Harm
	News    bool // the damage was not known
}

// Harm says that entries are damaged in the log. A snapshot is to stand for the entries up to
// Index.
type Harm struct {
	Instance protocol.InstanceID
	Index    protocol.Index
}

// NoteLog takes in what scrubbing found in a log.
func (b *DamageBook) NoteLog(d *wal.Damage) (r LogRemedy) {
	r.News = b.Note(d.Where.File, d.Where.Offset, len(d.Lost) > 0)
	for _, lost := range d.Lost {
		id := protocol.InstanceID(lost.Instance)
		if lost.State || lost.Cells {
			r.Rewrite = append(r.Rewrite, id)
		}
		if lost.Last > 0 {
			r.Harmed = append(r.Harmed, Harm{id, protocol.Index(lost.Last)})
		}
	}
	return r
}

// DamageBook keeps count of the places on a member's disk that are damaged. Scrubbing meets some
// of them again in every round; each is counted once. It is not safe for concurrent use.
type DamageBook struct {
	known map[damagedPlace]*damagedState
	// Found counts the places that were ever damaged. Mended counts those that are not damaged any
	// more, or of which nothing is needed any more.
	Found, Mended uint64
}

type damagedPlace struct {
	file   string
	offset int64
}

type damagedState struct{ needed, seen bool }

// maxDamages bounds the book. A disk with more damage is not worth counting.
const maxDamages = 1 << 14

// Note notes that a place is damaged, and whether something that is needed was there. It reports
// whether that is new.
func (b *DamageBook) Note(file string, offset int64, needed bool) (news bool) {
	if b.known == nil || len(b.known) >= maxDamages {
		b.known = map[damagedPlace]*damagedState{}
	}
	at := damagedPlace{file, offset}
	d := b.known[at]
	if news = d == nil; news {
		d = &damagedState{needed: needed}
		b.known[at] = d
		b.Found++
		if !needed {
			b.Mended++
		}
	}
	d.seen = true
	if d.needed && !needed {
		d.needed = false
		b.Mended++
	}
	return news
}

// EndRound says that everything was read once more. What was not met again is not damaged any
// more. It returns how many damaged places still matter.
func (b *DamageBook) EndRound() (left int) {
	for at, d := range b.known { // any order: places are judged one by one
		switch {
		case !d.seen:
			if d.needed {
				b.Mended++
			}
			delete(b.known, at)
		case d.needed:
			left++
		}
		d.seen = false
	}
	return left
}
