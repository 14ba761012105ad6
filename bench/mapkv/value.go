package mapkv

import (
	"bytes"
	"errors"

	"github.com/braidlog/braid"
)

// Chunk is a piece of a value: bytes, or the name of a body, whose bytes the log keeps.
type Chunk struct {
	Bytes []byte
	Body  braid.BodyRef // Size > 0: Bytes is nil
}

// Size is the number of bytes of the value in the chunk.
func (c *Chunk) Size() int64 { return int64(len(c.Bytes)) + int64(c.Body.Size) }

// Value is a key's value: the chunks that were put and appended, in that order (docs/internals/craft.md, 2.6). They
// must not be changed.
type Value struct {
	Chunks []Chunk
	Size   int64 // of all chunks
}

const (
	// MaxChunks and MaxTotal bound a value that is appended to.
	MaxChunks = 1 << 16
	MaxTotal  = 1 << 30
)

// ErrValueFull refuses an append to a value of maximal size.
var ErrValueFull = errors.New("mapkv: the value would be larger than 1 GiB or 65536 appends")

// chunk is the chunk that a command adds to a value. value is copied.
func chunk(c *braid.Command, value []byte) Chunk {
	if c.Body != nil {
		return Chunk{Body: *c.Body}
	}
	return Chunk{Bytes: bytes.Clone(value)}
}

// extended returns a value with one chunk more. It may share the earlier chunks with v. A value is extended only
// once, so no other value uses the memory after its length.
func (v Value) extended(c Chunk) (Value, error) {
	if len(v.Chunks) >= MaxChunks || v.Size+c.Size() > MaxTotal {
		return v, ErrValueFull
	}
	return Value{append(v.Chunks, c), v.Size + c.Size()}, nil
}

// drops are bodies that no value refers to any more, and that may not be released yet: a restart would begin with a
// snapshot in which they are alive. They are grouped by the number of snapshots that the member had written when they
// were seen first.
type drops struct {
	fresh   []braid.BodyRef
	waiting []dropped
}

type dropped struct {
	refs      []braid.BodyRef
	snapshots uint64
}

func (d *drops) add(v Value) {
	for i := range v.Chunks {
		if body := v.Chunks[i].Body; body.Size > 0 {
			d.fresh = append(d.fresh, body)
		}
	}
}

// take removes and returns the bodies that are in no snapshot any more, if the member has written this number of
// snapshots. A snapshot may have been in progress when a body was dropped, so only the second one after that is
// certainly without it.
func (d *drops) take(snapshots uint64) (refs []braid.BodyRef) {
	if len(d.fresh) > 0 {
		d.waiting = append(d.waiting, dropped{d.fresh, snapshots})
		d.fresh = nil
	}
	for len(d.waiting) > 0 && d.waiting[0].snapshots+2 <= snapshots {
		refs = append(refs, d.waiting[0].refs...)
		d.waiting = d.waiting[1:]
	}
	return refs
}
