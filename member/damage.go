package member

import (
	"errors"
	"fmt"
	"time"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/wal"
)

// What a member does about bytes on its disk that are not there, or not what was written: pure
// rules, for whoever meets them. See docs/operations.md.

// Fault says why something that this member wrote could not be read.
type Fault uint8

// The faults. Of the first three nothing is wrong with the disk.
const (
	FaultNone       Fault = iota
	FaultCompacted        // it was given up: a snapshot stands for it
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
	// RemedyWait: nothing is wrong. The core knows by itself what the follower needs, or will
	// when it has seen what happened meanwhile.
	RemedyWait Remedy = iota
	// RemedySnapshot: the state includes the entry, so the follower gets the state.
	RemedySnapshot
	// RemedyHandOver: others have the entry, or it is not committed: one of them should lead.
	RemedyHandOver
	// RemedyStop: nobody takes over. A member that leads and cannot read what it has to send
	// holds all up, so it stops.
	RemedyStop
)

// UnreadableEntries decides about entries that a leader cannot read. It is the rule of one instance's
// event loop; not safe for concurrent use.
type UnreadableEntries struct {
	asked time.Duration // when it was last tried to hand over; 0: not, or it led since
	tries int
	last  time.Duration // when something was last unreadable
}

// unreadTries is how often leadership is offered to others.
const unreadTries = 3

// Remedy says what to do about an entry of which applied is not, or is, a part. hand over is
// asked for at most once an election timeout; RemedyWait stands for the time between.
func (u *UnreadableEntries) Remedy(now, election time.Duration, fault Fault, index, applied protocol.Index) Remedy {
	switch {
	case !fault.Sick():
		return RemedyWait
	case index <= applied:
		return RemedySnapshot
	}
	if now-u.last > unreadTries*election {
		u.tries = 0 // long ago, and over
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

// CutAt says where an instance's log may be cut when a snapshot is durable: where those who catch
// up allow it, see LogKeeper; but behind what is damaged, if the newest stands for that.
func CutAt(keep, newest, harmed protocol.Index) protocol.Index {
	if harmed <= newest {
		return max(keep, harmed)
	}
	return keep
}

// SnapshotRemedy says what to do about a snapshot file of which scrubbing says err: retake says that
// a new one is to be written, remove that the file may go, for the others are enough. all are those
// that there are, ascending. One that the disk fails to read may be whole: it stays.
func SnapshotRemedy(at protocol.Position, all []protocol.Position, err error) (retake, remove bool) {
	newest := len(all) > 0 && all[len(all)-1] == at
	return err != nil && newest, IsDamage(err) && !newest
}

// LogRemedy is what to do about damage in a log.
type LogRemedy struct {
	Rewrite []protocol.InstanceID // their states are to be written again
	Harmed  []Harm
	News    bool // the damage was not known
}

// Harm is entries that are damaged in the log: a snapshot is to stand for those up to Index.
type Harm struct {
	Instance protocol.InstanceID
	Index    protocol.Index
}

// NoteLog takes in what scrubbing found in a log.
func (b *DamageBook) NoteLog(d *wal.Damage) (r LogRemedy) {
	r.News = b.Note(d.Where.File, d.Where.Offset, len(d.Lost) > 0)
	for _, lost := range d.Lost {
		id := protocol.InstanceID(lost.Instance)
		if lost.State {
			r.Rewrite = append(r.Rewrite, id)
		}
		if lost.Last > 0 {
			r.Harmed = append(r.Harmed, Harm{id, protocol.Index(lost.Last)})
		}
	}
	return r
}

// DamageBook keeps count of the places on a member's disk that are damaged, of those that
// scrubbing meets again in every round too. It is not safe for concurrent use.
type DamageBook struct {
	known map[damagedPlace]*damagedState
	// Found counts the places that were ever damaged, Mended those that are not any more, or of
	// which nothing is needed any more.
	Found, Mended uint64
}

type damagedPlace struct {
	file   string
	offset int64
}

type damagedState struct{ needed, seen bool }

// maxDamages bounds the book: a disk with more is beyond counting.
const maxDamages = 1 << 14

// Note takes in that a place is damaged, and whether something that is needed was there. It
// reports whether that is new.
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

// EndRound says that everything was read once more: what was not met again is not damaged any
// more. It returns how many places still matter.
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

// ReplacedError says that the log has another entry at an index by now. Whoever asked knows
// an older log.
type ReplacedError struct {
	Index      protocol.Index
	Have, Want protocol.Term
}

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("index %d has an entry of term %d, not of %d", e.Index, e.Have, e.Want)
}

// LostError stops a member whose disk lost what it needs and cannot get otherwise. A start
// may help if the disk only failed to answer; if that says the same, the member must be
// replaced.
type LostError struct{ Err error }

func (e *LostError) Error() string {
	return fmt.Sprintf("braid: this member's disk has lost something that the member needs; if it does not start, remove it from the cluster and add it anew with an empty directory: %v", e.Err)
}
func (e *LostError) Unwrap() error { return e.Err }

// lostIfSick names the remedy if it is the disk's fault that an entry cannot be read.
func lostIfSick(err *LoadError) error {
	if FaultOf(err.Err).Sick() {
		return &LostError{err}
	}
	return err
}
