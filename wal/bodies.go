package wal

import "github.com/cockroachdb/pebble/v2/vfs"

// Body is the large part of an entry, in the form in which it is held: all of its bytes or
// a row of its code. What the fields but Instance and Index mean is the caller's affair.
type Body struct {
	Instance    uint32
	Index, Term uint64
	Form, K     uint8
	// Size and Digest describe the whole body, in whatever form it is held.
	Size, Digest uint32
	Bytes        []byte
}

// BodiesOptions are what a store of bodies is opened with.
type BodiesOptions struct {
	FS  vfs.FS // default vfs.Default
	Dir string // made if it does not exist
	// Identity says whose bodies they are; see Options.
	Identity []byte
	// SegmentBytes is the size of a file: default 64 MiB. A larger body gets a larger file.
	SegmentBytes int64
}

// Bodies holds the bodies of a member's entries, of all instances, beside its log.
type Bodies struct{}

// OpenBodies opens the bodies of a directory, or begins to hold some.
func OpenBodies(BodiesOptions) (*Bodies, error) { return &Bodies{}, nil }

// Append adds a body; it is durable after the next Sync, and takes the place of what was
// held of the same entry.
func (b *Bodies) Append(Body) error { return ErrClosed }

// Sync makes everything appended durable.
func (b *Bodies) Sync() error { return ErrClosed }

// Find tells what is held of an entry's body, without the bytes.
func (b *Bodies) Find(instance uint32, index uint64) (Body, bool) { return Body{}, false }

// Read returns what is held of an entry's body, bytes verified.
func (b *Bodies) Read(instance uint32, index uint64) (Body, error) { return Body{}, ErrClosed }

// Retain says once, after Open, which of the bodies that were found are needed.
func (b *Bodies) Retain(keep func(Body) bool) {}

// Release says that an entry's body is not needed any more.
func (b *Bodies) Release(instance uint32, index uint64) {}

// Each calls f for all bodies in ascending order, without their bytes, until it says false.
func (b *Bodies) Each(f func(Body) bool) {}

// Size is how many bytes are needed, and how many the files take.
func (b *Bodies) Size() (live, total int64) { return 0, 0 }

// Close makes everything appended durable and gives the directory free.
func (b *Bodies) Close() error { return nil }
