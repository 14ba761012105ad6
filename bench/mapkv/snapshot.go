package mapkv

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/braidlog/braid"
)

// version is the first byte of a snapshot. After it: the count of appended commands and of
// keys, and for each key its length, it, the value's length and the value; numbers are
// uvarints.
const version = 1

// view is the map at one instant. Values are never changed, parts not while frozen.
type view struct {
	parts    [shards]map[string][]byte
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
	var length [binary.MaxVarintLen64]byte
	field := func(data []byte) error {
		if _, err := out.Write(binary.AppendUvarint(length[:0], uint64(len(data)))); err != nil {
			return err
		}
		_, err := out.Write(data)
		return err
	}
	for _, part := range v.parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		for key, value := range part {
			if err := field([]byte(key)); err != nil {
				return err
			}
			if err := field(value); err != nil {
				return err
			}
		}
	}
	return out.Flush()
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
		value, err := readField(in, MaxValue)
		if err != nil {
			return err
		}
		m.writable(string(key))[string(key)] = value
	}
	return nil
}

// readField reads a length, which may not exceed a limit, and so many bytes.
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
