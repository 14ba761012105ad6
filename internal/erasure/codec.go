package erasure

import (
	"sync"

	"github.com/klauspost/reedsolomon"
)

const (
	// allRows is the maximal number of rows.
	allRows = 256
	// fewRows is the number of rows that is enough for most clusters: with fewer rows the library is faster.
	fewRows = 16
)

// codecs are the library's encoders for few and for all rows, by k. Both compute the same
// rows.
var codecs [2][allRows]struct {
	once    sync.Once
	encoder reedsolomon.Encoder
	err     error
}

// codec returns an encoder for k pieces that has at least rows 0 to last, and its number of rows.
func codec(k, last uint8) (reedsolomon.Encoder, int, error) {
	class, rows := 0, fewRows
	if max(k, last) >= fewRows {
		class, rows = 1, allRows
	}
	c := &codecs[class][k]
	c.once.Do(func() {
		// The available rows differ from call to call, so inverted matrices are not cached. One goroutine is enough at tens
		// of GB/s.
		c.encoder, c.err = reedsolomon.New(int(k), rows-int(k),
			reedsolomon.WithInversionCache(false), reedsolomon.WithMaxGoroutines(1))
	})
	return c.encoder, rows, c.err
}
