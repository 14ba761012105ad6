package member

import (
	"errors"
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// This is what a member does about bytes on its disk that are not there, or are not what was
// written. These are pure rules, for whoever finds such bytes. See docs/using/operations.md.

// Fault says why something that this member wrote could not be read.
type Fault uint8

// The faults. With those before FaultDamaged nothing is wrong with the disk.
const (
	FaultNone       Fault = iota
	FaultCompacted        // the log gave it up: a snapshot stands for it
	FaultReplaced         // the log was cut there, or has another entry by now
	FaultStopped          // the member stops
	FaultDamaged          // the bytes are not those that were written
	FaultUnreadable       // the disk answers with an error
)

func (f Fault) String() string {
	return [...]string{"none", "compacted", "replaced", "stopped", "damaged", "unreadable"}[f]
}

// Sick reports whether the disk has lost something.
func (f Fault) Sick() bool { return f >= FaultDamaged }

// FaultOf says what an error of reading means.
func FaultOf(err error) Fault {
	var compacted *wal.CompactedError
	var missing *wal.NotFoundError
	var replaced *ReplacedError
	switch {
	case err == nil:
		return FaultNone
	case errors.As(err, &compacted):
		return FaultCompacted
	case errors.As(err, &missing), errors.As(err, &replaced):
		return FaultReplaced
	case errors.Is(err, wal.ErrClosed):
		return FaultStopped
	case IsDamage(err):
		return FaultDamaged
	}
	return FaultUnreadable
}

// Remedy is what a leader does about an entry that it cannot read, and that a follower needs.
type Remedy uint8

// The remedies.
const (
	// RemedyWait: nothing is wrong, or another remedy was tried just now. The core knows by itself
	// what the follower needs, or will know when it has seen what happened meanwhile.
	RemedyWait Remedy = iota
	// RemedySnapshot: the state includes the entry, so the follower gets the state.
	RemedySnapshot
	// RemedyHandOver: others have the entry, or it is not committed. So one of them should lead.
	RemedyHandOver
	// RemedyStop: nobody takes over. A member that leads and cannot read what it has to send holds
	// up everybody, so it stops.
	RemedyStop
)

// UnreadableEntries decides about entries that a leader cannot read. One instance's event loop
// uses it. It is not safe for concurrent use.
type UnreadableEntries struct {
	asked time.Duration // when handing over was last tried; 0: never
	tries int
	last  time.Duration // when something was last unreadable
}

// unreadTries is how often a member tries to hand over leadership.
const unreadTries = 3

// Remedy says what to do about an entry. The state includes it if index ≤ applied. Remedy asks to
// hand over at most once an election timeout. In between it says RemedyWait.
func (u *UnreadableEntries) Remedy(now, election time.Duration, fault Fault, index, applied protocol.Index) Remedy {
	switch {
	case !fault.Sick():
		return RemedyWait
	case index <= applied:
		return RemedySnapshot
	}
	if now-u.last > unreadTries*election {
		u.tries = 0 // the last time is long ago
	}
	u.last = now
	if u.tries > 0 && now-u.asked < election {
		return RemedyWait
	}
	if u.tries == unreadTries {
		return RemedyStop
	}
	u.asked, u.tries = now, u.tries+1
	return RemedyHandOver
}

// CutAt says where an instance's log may be cut when a snapshot is durable. That is where members
// that catch up allow it, see LogKeeper. But the cut is behind damaged entries, if the newest
// snapshot stands for them.
func CutAt(keep, newest, harmed protocol.Index) protocol.Index {
	if harmed <= newest {
		return max(keep, harmed)
	}
	return keep
}

// SnapshotRemedy says what to do about a snapshot file for which scrubbing returned err. retake
// says that a new one is to be written. remove says that the file may go, because the others are
// enough. all are the snapshots that there are, ascending. A file that the disk fails to read may
// be undamaged, so it stays.
func SnapshotRemedy(at protocol.Position, all []protocol.Position, err error) (retake, remove bool) {
	newest := len(all) > 0 && all[len(all)-1] == at
	return err != nil && newest, IsDamage(err) && !newest
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

// LoadError says that an entry could not be read from this member's log. Err says why; see
// FaultOf.
type LoadError struct {
	Instance protocol.InstanceID
	Index    protocol.Index
	Err      error
}

func (e *LoadError) Error() string {
	return fmt.Sprintf("entry %d of instance %d cannot be read (%s): %v", e.Index, e.Instance, FaultOf(e.Err), e.Err)
}
func (e *LoadError) Unwrap() error { return e.Err }

// ReplacedError says that the log has another entry at an index by now. Whoever asked knows an
// older state of the log.
type ReplacedError struct {
	Index      protocol.Index
	Have, Want protocol.Term
}

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("index %d has an entry of term %d, not of %d", e.Index, e.Have, e.Want)
}

// LostError stops a member whose disk lost what the member needs and cannot get otherwise. If the
// disk only failed to answer, a new start may help. If the start says the same, the member must be
// replaced.
type LostError struct{ Err error }

func (e *LostError) Error() string {
	return fmt.Sprintf("braid: this member's disk has lost something that the member needs; if it does not start, remove it from the cluster and add it anew with an empty directory: %v", e.Err)
}
func (e *LostError) Unwrap() error { return e.Err }

// lostIfSick makes it a LostError, which names the remedy, if an entry cannot be read because of
// the disk.
func lostIfSick(err *LoadError) error {
	if FaultOf(err.Err).Sick() {
		return &LostError{err}
	}
	return err
}
