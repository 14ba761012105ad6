package replica

import (
	"context"
	"time"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/wal"
)

const (
	// scrubChunk is how many bodies are listed at a time.
	scrubChunk = 4096
	// scrubAtLeast is how many bytes a round counts for, however few there are.
	scrubAtLeast = 64 << 20
)

// scrub reads all bodies on disk again and again, slowly, so that damage is found while
// others can still repair it.
func (b *bodies) scrub(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	cursor, left := bodyKey{}, int64(scrubAtLeast)
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		chunk := b.after(cursor)
		if len(chunk) == 0 { // a round is done
			timer.Reset(b.pace(max(left, 0)))
			cursor, left = bodyKey{}, scrubAtLeast
			continue
		}
		for i := range chunk {
			read := b.verify(chunk[i])
			left -= read
			cursor = keyOf(chunk[i])
			timer.Reset(b.pace(read))
			if i == len(chunk)-1 {
				break // the outer loop waits
			}
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		}
	}
}

// pace is how long so many bytes take at the rate that is allowed.
func (b *bodies) pace(bytes int64) time.Duration {
	return time.Duration(float64(bytes) / float64(b.r.opt.ScrubBytesPerSecond) * float64(time.Second))
}

// after lists bodies after a place, in order.
func (b *bodies) after(cursor bodyKey) (refs []protocol.BodyRef) {
	b.store.Each(func(held wal.Body) bool {
		ref := refOf(&held)
		if ref.Instance == b.r.instance && ref.Index > cursor.index && held.Form != uint8(protocol.FormNone) {
			refs = append(refs, ref)
		}
		return len(refs) < scrubChunk
	})
	return refs
}

// verify reads a body and has it repaired if it is damaged. It returns how much was read.
func (b *bodies) verify(ref protocol.BodyRef) int64 {
	have := b.local(ref)
	return int64(len(have.Bytes))
}
