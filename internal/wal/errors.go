package wal

import (
	"errors"
	"fmt"

	"github.com/braidlog/braid/internal/sys"
)

// ErrClosed is returned by a closed log.
var ErrClosed = errors.New("wal: the log is closed")

// IdentityError indicates that a directory has the log of another owner. Nothing was changed.
type IdentityError struct {
	Dir  string
	Have []byte // the owner of the directory
	Want []byte // the owner that Open was called with
}

func (e *IdentityError) Error() string {
	return fmt.Sprintf("wal: %s belongs to %q, not to %q", e.Dir, e.Have, e.Want)
}

// LockedError indicates that another process, or this one, has the log open.
type LockedError struct {
	Dir string
	Err error
}

func (e *LockedError) Error() string { return fmt.Sprintf("wal: %s is in use: %v", e.Dir, e.Err) }
func (e *LockedError) Unwrap() error { return e.Err }

// CorruptError indicates that bytes that were durable are damaged or missing. The log is not repaired by guessing:
// the member must be rebuilt from its peers.
type CorruptError struct {
	File   string
	Offset int64 // bytes from the start of the file
	Detail string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("wal: %s is damaged at offset %d: %s", e.File, e.Offset, e.Detail)
}

// VersionError indicates that a segment was written in a format that this program does not know.
// Nothing was changed.
type VersionError struct {
	File       string
	Have, Want uint32 // Want is the newest one that is known
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("wal: %s has version %d, this program knows versions up to %d", e.File, e.Have, e.Want)
}

// FailedError indicates that the disk failed the log once. The log stays shut: after a failed write or sync the state
// of the disk is unknown, and a second sync may falsely succeed. A retry is safe only by Open, which writes again what
// may not be durable.
type FailedError struct {
	Op  string // the operation that failed first: write, sync, create, ...
	Err error
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("wal: the log is shut after a failed %s: %v", e.Op, e.Err)
}
func (e *FailedError) Unwrap() error { return e.Err }

// IgnoreFailed is for Close: it drops the error that shut the log, which was reported at that time.
func IgnoreFailed(err error) error {
	if errors.As(err, new(*FailedError)) {
		return nil
	}
	return err
}

// ReadError indicates that the disk failed to read. The bytes are unknown, and not reported as damaged. Nothing was
// changed, and a retry is safe.
type ReadError struct {
	Op   string // the operation: read, open, stat, list
	File string
	Err  error
}

func (e *ReadError) Error() string { return fmt.Sprintf("wal: %s %s: %v", e.Op, e.File, e.Err) }
func (e *ReadError) Unwrap() error { return e.Err }

// FullError indicates that the disk had no space, or the process no descriptor for another file; Err is the cause.
// The log is not shut: the caller repeats the call, which continues where it stopped once there is space, or a
// descriptor. Open may return it too.
type FullError struct {
	Dir  string
	Need int64 // bytes
	Err  error
}

func (e *FullError) Error() string {
	if sys.NoDescriptor(e.Err) {
		return fmt.Sprintf("wal: no descriptor for another file in %s: %v", e.Dir, e.Err)
	}
	return fmt.Sprintf("wal: no space for %d bytes in %s: %v", e.Need, e.Dir, e.Err)
}
func (e *FullError) Unwrap() error { return e.Err }

// CompactedError indicates that an entry was dropped by Compact or by a base.
type CompactedError struct {
	Instance uint32
	Index    uint64
	Floor    uint64 // entries up to and including it are gone
}

func (e *CompactedError) Error() string {
	return fmt.Sprintf("wal: entry %d of instance %d was compacted (up to %d)", e.Index, e.Instance, e.Floor)
}

// NotFoundError indicates that the log has no such entry.
type NotFoundError struct {
	Instance uint32
	Index    uint64
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("wal: instance %d has no entry %d", e.Instance, e.Index)
}

// OrderError indicates that a record cannot follow what the log holds: a hole in an instance's
// entries, or an entry at or below what was compacted. It is a bug of the caller.
type OrderError struct {
	Instance    uint32
	Kind        Kind
	Index       uint64
	First, Next uint64 // indexes from First to Next could have been written
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("wal: %v %d of instance %d is out of order: want %d to %d", e.Kind, e.Index, e.Instance, e.First,
		e.Next)
}

// TooLargeError indicates that a record is larger than the log can hold.
type TooLargeError struct {
	Bytes, Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("wal: a record of %d bytes is larger than %d", e.Bytes, e.Limit)
}
