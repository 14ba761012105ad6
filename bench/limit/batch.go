package limit

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// headBytes is the size of a batch without its commands: the size of the commands (4), the checksum of everything
	// after it (4), and head (8, 8, 4).
	headBytes = 28
	// sumFrom is the first byte that the checksum covers.
	sumFrom = 8
	// MaxBatch is the size, in bytes, from which on a batch accepts no further command.
	MaxBatch = 4 << 20
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errSum     = errors.New("the checksum of a batch does not match")
)

// batch is a number of commands, in the bytes that are sent and written.
type batch struct {
	frame []byte
	head
	// answers are called when the commands are applied, on the leader. They have the commands' order.
	answers []func(any, error)
	// holders is the number of those that use the bytes. The last one that releases the batch returns it to the pool.
	holders atomic.Int32
}

// head is the header of a batch.
type head struct {
	seq       uint64 // the number of the batch, from 1; of a batch without commands: of the last batch before it
	committed uint64 // the last batch that was committed when this one was sent
	commands  uint32
}

var batches = sync.Pool{New: func() any { return &batch{frame: make([]byte, headBytes, 64<<10)} }}

func newBatch() *batch {
	b := batches.Get().(*batch)
	b.frame, b.head = b.frame[:headBytes], head{}
	return b
}

// add adds a copy of a command.
func (b *batch) add(command []byte, answer func(any, error)) {
	b.frame = binary.AppendUvarint(b.frame, uint64(len(command)))
	b.frame = append(b.frame, command...)
	b.answers = append(b.answers, answer)
	b.commands++
}

// seal completes the frame. Each of the holders must release the batch once.
func (b *batch) seal(seq, committed uint64, holders int32) {
	b.seq, b.committed = seq, committed
	b.holders.Store(holders)
	f := b.frame
	binary.LittleEndian.PutUint32(f, uint32(len(f)-headBytes))
	binary.LittleEndian.PutUint64(f[8:], seq)
	binary.LittleEndian.PutUint64(f[16:], committed)
	binary.LittleEndian.PutUint32(f[24:], b.commands)
	binary.LittleEndian.PutUint32(f[4:], crc32.Checksum(f[sumFrom:], castagnoli))
}

// readBatch reads the next batch, for a number of holders. It returns errSum for one that is damaged.
func readBatch(r io.Reader, holders int32) (*batch, error) {
	b := newBatch()
	if _, err := io.ReadFull(r, b.frame); err != nil {
		return nil, err
	}
	size := int(binary.LittleEndian.Uint32(b.frame))
	b.frame = slices.Grow(b.frame, size)[:headBytes+size]
	if _, err := io.ReadFull(r, b.frame[headBytes:]); err != nil {
		return nil, err
	}
	f := b.frame
	if binary.LittleEndian.Uint32(f[4:]) != crc32.Checksum(f[sumFrom:], castagnoli) {
		return nil, errSum
	}
	b.seq, b.committed = binary.LittleEndian.Uint64(f[8:]), binary.LittleEndian.Uint64(f[16:])
	b.commands = binary.LittleEndian.Uint32(f[24:])
	b.holders.Store(holders)
	return b, nil
}

// split appends the commands to a list. They are valid until the batch is released.
func (b *batch) split(to [][]byte) [][]byte {
	rest := b.frame[headBytes:]
	for range b.commands {
		n, begin := binary.Uvarint(rest)
		end := begin + int(n)
		to = append(to, rest[begin:end:end])
		rest = rest[end:]
	}
	return to
}

// answer answers all commands.
func (b *batch) answer(err error) {
	for _, answer := range b.answers {
		answer(nil, err)
	}
}

// release ends the use of a holder.
func (b *batch) release() {
	if b.holders.Add(-1) > 0 {
		return
	}
	clear(b.answers)
	b.answers = b.answers[:0]
	batches.Put(b)
}
