package sums

import (
	"errors"
	"fmt"
	"io"
)

// ReadError: something on the disk could not be read. Its content is unknown, so it does not count as damaged, and
// nothing was changed. A retry is safe, and may succeed.
type ReadError struct {
	What string
	Err  error
}

func (e *ReadError) Error() string { return fmt.Sprintf("store: %s cannot be read: %s", e.What, e.Err) }

func (e *ReadError) Unwrap() error { return e.Err }

// DamageOr returns why a database cannot be used: it was read and is damaged, or it could not be read.
func DamageOr(dir string, err error) error {
	if errors.As(err, new(*ReadError)) {
		return err
	}
	return &DamageError{dir, err}
}

// readAt reads up to the end of a file.
func readAt(f io.ReaderAt, b []byte, at int64) (n int, err error) {
	n, err = f.ReadAt(b, at)
	if err != nil && err != io.EOF {
		return n, &ReadError{fmt.Sprintf("the database, %d bytes at %d,", len(b), at), err}
	}
	return n, nil
}
