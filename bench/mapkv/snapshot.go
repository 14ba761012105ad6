package mapkv

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/protocol"
)

// version is the first byte of a snapshot. After it: the number of appended commands and of keys, and for each key
// its length, its bytes, and its number of chunks. A chunk is a zero, the length of its bytes and the bytes; or a one
// and the name of a body: instance, index, term, k, size and digest. Numbers are uvarints.
const version = 2

// Kinds of chunks in a snapshot.
const (
	chunkBytes = iota
	chunkBody
)

// view is the map at one time. Values are never changed, parts not while frozen.
type view struct {
	parts    [shards]map[string]Value
	appended uint64
}

// Snapshot implements [braid.StateMachine].
func (m *Map) Snapshot() (braid.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.frozen {
		m.frozen[i] = true
	}
	return &view{parts: m.parts, appended: m.appended}, nil
}

// Close implements [braid.Snapshot].
func (v *view) Close() error { return nil }

// WriteTo implements [braid.Snapshot].
func (v *view) WriteTo(ctx context.Context, w io.Writer) error {
	keys := 0
	for _, p := range v.parts {
		keys += len(p)
	}
	out := bufio.NewWriterSize(w, 1<<20)
	head := binary.AppendUvarint(binary.AppendUvarint([]byte{version}, v.appended), uint64(keys))
	if _, err := out.Write(head); err != nil {
		return err
	}
	for _, part := range v.parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		for key, value := range part {
			if err := writeKey(out, key, value); err != nil {
				return err
			}
		}
	}
	return out.Flush()
}

func writeKey(out *bufio.Writer, key string, value Value) error {
	head := binary.AppendUvarint(nil, uint64(len(key)))
	head = append(head, key...)
	if _, err := out.Write(binary.AppendUvarint(head, uint64(len(value.Chunks)))); err != nil {
		return err
	}
	for i := range value.Chunks {
		c := &value.Chunks[i]
		if c.Body.Size > 0 {
			head = append(head[:0], chunkBody)
			for _, n := range bodyFields(&c.Body) {
				head = binary.AppendUvarint(head, n)
			}
		} else {
			head = binary.AppendUvarint(append(head[:0], chunkBytes), uint64(len(c.Bytes)))
		}
		if _, err := out.Write(head); err != nil {
			return err
		}
		if _, err := out.Write(c.Bytes); err != nil {
			return err
		}
	}
	return nil
}

func bodyFields(r *braid.BodyRef) [6]uint64 {
	return [6]uint64{uint64(r.Instance), uint64(r.Index), uint64(r.Term), uint64(r.K), uint64(r.Size), uint64(r.Digest)}
}

// Restore implements [braid.StateMachine].
func (m *Map) Restore(r io.Reader) error {
	fresh := NewMap()
	if err := fresh.read(bufio.NewReaderSize(r, 1<<20)); err != nil {
		return fmt.Errorf("mapkv: snapshot: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seed, m.parts, m.frozen, m.appended = fresh.seed, fresh.parts, fresh.frozen, fresh.appended
	m.dropped = drops{} // LiveBodies has those alive now
	return nil
}

func (m *Map) read(in *bufio.Reader) error {
	v, err := in.ReadByte()
	if err != nil {
		return err
	}
	if v != version {
		return fmt.Errorf("format %d, this program knows %d", v, version)
	}
	if m.appended, err = binary.ReadUvarint(in); err != nil {
		return err
	}
	keys, err := binary.ReadUvarint(in)
	if err != nil {
		return err
	}
	for range keys {
		key, err := readField(in, maxKey)
		if err != nil {
			return err
		}
		value, err := readValue(in)
		if err != nil {
			return err
		}
		m.writable(string(key))[string(key)] = value
	}
	return nil
}

func readValue(in *bufio.Reader) (v Value, err error) {
	n, err := binary.ReadUvarint(in)
	if err != nil {
		return v, err
	}
	for range n {
		kind, err := in.ReadByte()
		if err != nil {
			return v, err
		}
		var c Chunk
		switch kind {
		case chunkBytes:
			c.Bytes, err = readField(in, MaxValue)
		case chunkBody:
			c.Body, err = readBody(in)
		default:
			err = fmt.Errorf("chunk of kind %d", kind)
		}
		if err == nil {
			v, err = v.extended(c)
		}
		if err != nil {
			return v, err
		}
	}
	return v, nil
}

func readBody(in *bufio.Reader) (r braid.BodyRef, err error) {
	fields := bodyFields(&r)
	for i := range fields {
		if fields[i], err = binary.ReadUvarint(in); err != nil {
			return r, err
		}
	}
	f := &fields
	if f[0] > math.MaxUint32 || f[3] > math.MaxUint8 || f[4] == 0 || f[4] > MaxValue || f[5] > math.MaxUint32 {
		return r, fmt.Errorf("no body is called %v", *f)
	}
	r.Instance, r.Index, r.Term = protocol.InstanceID(f[0]), protocol.Index(f[1]), protocol.Term(f[2])
	r.K, r.Size, r.Digest = uint8(f[3]), uint32(f[4]), uint32(f[5])
	return r, nil
}

// readField reads a length, which may not exceed a limit, and that many bytes.
func readField(in *bufio.Reader, limit int) ([]byte, error) {
	n, err := binary.ReadUvarint(in)
	if err != nil {
		return nil, err
	}
	if n > uint64(limit) {
		return nil, fmt.Errorf("field of %d bytes, at most %d were expected", n, limit)
	}
	data := make([]byte, n)
	_, err = io.ReadFull(in, data)
	return data, err
}
