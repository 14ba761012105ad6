package member

import (
	"errors"
	"fmt"

	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

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
	return fmt.Sprintf("braid: this member's disk has lost something that the member needs; if it does not start, "+
		"remove it from the cluster and add it anew with an empty directory: %v", e.Err)
}

func (e *LostError) Unwrap() error { return e.Err }

// LostIfUnreadable makes it a LostError, which names the remedy, if an entry cannot be read because of
// the disk.
func LostIfUnreadable(err *LoadError) error {
	if FaultOf(err.Err).Sick() {
		return &LostError{err}
	}
	return err
}

// IsDamage reports whether an error says that bytes on disk are not what was written.
func IsDamage(err error) bool {
	var file *wal.CorruptError
	var body *protocol.CorruptError
	return errors.As(err, &file) || errors.As(err, &body)
}
