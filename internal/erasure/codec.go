package erasure

import (
	"sync"

	"github.com/klauspost/reedsolomon"
)

const (
	// allRows is how many rows there can be.
	allRows = 256
	// fewRows is how many rows most clusters use: with so few the library is faster.
	fewRows = 16
)

// codecs are the library's encoders for few and for all rows, by k. Both compute the same
// rows.
var codecs [2][allRows]struct {
	once    sync.Once
	encoder reedsolomon.Encoder
	err     error
}

// codec returns an encoder for k pieces that knows at least rows 0 to last, and how many
// rows it has.
func codec(k, last uint8) (reedsolomon.Encoder, int, error) {
	class, rows := 0, fewRows
	if max(k, last) >= fewRows {
		class, rows = 1, allRows
	}
	c := &codecs[class][k]
	c.once.Do(func() {
		// The available rows differ from call to call, so inverted matrices are not worth keeping.
		// One goroutine is enough at tens of GB/s.
		c.encoder, c.err = reedsolomon.New(int(k), rows-int(k),
			reedsolomon.WithInversionCache(false), reedsolomon.WithMaxGoroutines(1))
	})
	return c.encoder, rows, c.err
}
