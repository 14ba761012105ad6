package increment

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"io"
	"time"

	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/braidlog/braid/internal/store/sums"
)

// A file is a magic; the header, as JSON; the older entries that are left, if history was compacted; the newer entries;
// the other buckets, each with its elements; the footer, as JSON; the length of all that; and the SHA-256 of everything
// before. Each part is a record: its kind, and one or two byte strings with their lengths (varints) before them.
const (
	magic = "braid increment 1\n"

	kindHeader = 'h' // header
	kindLeft   = 'l' // older entries that are left: the differences of main revisions, and the sub revisions (varints)
	kindEntry  = 'r' // key, value: an entry of the history
	kindBucket = 'b' // name of a bucket
	kindPair   = 'p' // key, value of the bucket
	kindFooter = 'f' // footer

	lengthBytes = 8
	tail        = lengthBytes + sha256.Size // bytes behind the records
	// buffered is the number of bytes that are written at once.
	buffered = 64 << 10
)

// Header is the beginning of an increment.
type Header struct {
	// Cluster is the id of the cluster.
	Cluster uint64 `json:"cluster,string"`
	// Base is the SHA-256, in hexadecimal, of the backup that this one continues.
	Base string `json:"base"`
	// Since is where the base ends.
	Since Point `json:"since"`
	// Time is that of the member that wrote it.
	Time time.Time `json:"time"`
	// Trimmed: history was compacted since, and the older entries that are left are listed.
	Trimmed bool `json:"trimmed,omitempty"`
}

// Footer is the end of an increment. It is known when everything else was written.
type Footer struct {
	// Now is where the increment ends.
	Now Point `json:"now"`
	// Left is the number of older entries that are left, if Trimmed, and Entries that of the newer ones. LeftSum is the
	// digest of the older ones: see [Left]. Empty: the base may miss some of them, so they cannot be compared.
	Left    int64  `json:"left,omitempty"`
	LeftSum string `json:"left_sum,omitempty"`
	Entries int64  `json:"entries"`
	// Pairs is the number of elements of the other buckets.
	Pairs int64 `json:"pairs"`
}

// Writer writes an increment. Its error is kept: after one nothing is written.
type Writer struct {
	w      io.Writer
	digest hash.Hash
	buf    []byte
	length uint64
	err    error

	footer Footer
	left   []byte        // older entries that are not written yet
	last   mvcc.Revision // of the older entries
}

// NewWriter writes the header.
func NewWriter(w io.Writer, h *Header) *Writer {
	out := &Writer{w: w, digest: sha256.New(), buf: make([]byte, 0, 2*buffered)}
	out.write([]byte(magic))
	out.json(kindHeader, h)
	return out
}

// Err returns the error of writing.
func (w *Writer) Err() error { return w.err }

// Left adds the key of an older entry that is left. Keys are in ascending order.
func (w *Writer) Left(key []byte) {
	at, _ := sums.ParseRevision(key)
	w.left = binary.AppendUvarint(w.left, uint64(at.Main-w.last.Main))
	w.left = binary.AppendUvarint(w.left, uint64(at.Sub))
	w.last, w.footer.Left = at, w.footer.Left+1
	if len(w.left) >= buffered {
		w.endLeft()
	}
}

// endLeft writes the keys that Left has collected.
func (w *Writer) endLeft() {
	if len(w.left) > 0 {
		w.record(kindLeft, w.left)
		w.left = w.left[:0]
	}
}

// Entry writes a newer entry of the history, in ascending order and behind the older ones.
func (w *Writer) Entry(key, value []byte) {
	w.endLeft()
	w.footer.Entries++
	w.record(kindEntry, key, value)
}

// Bucket begins another bucket, behind all entries of the history.
func (w *Writer) Bucket(name string) {
	w.endLeft()
	w.record(kindBucket, []byte(name))
}

// Pair writes an element of the bucket.
func (w *Writer) Pair(key, value []byte) {
	w.footer.Pairs++
	w.record(kindPair, key, value)
}

// Close writes the end. leftSum is that of [Footer].
func (w *Writer) Close(now Point, leftSum string) error {
	w.footer.Now, w.footer.LeftSum = now, leftSum
	w.json(kindFooter, &w.footer)
	w.write(binary.BigEndian.AppendUint64(nil, w.length))
	w.flush()
	w.buf = w.digest.Sum(w.buf)
	return w.send()
}

func (w *Writer) json(kind byte, value any) {
	b, err := json.Marshal(value)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.record(kind, b)
}

func (w *Writer) record(kind byte, parts ...[]byte) {
	w.write([]byte{kind})
	for _, part := range parts {
		w.write(binary.AppendUvarint(nil, uint64(len(part))))
		w.write(part)
	}
}

func (w *Writer) write(b []byte) {
	w.length += uint64(len(b))
	for len(b) > 0 && w.err == nil {
		n := min(buffered-len(w.buf), len(b))
		w.buf, b = append(w.buf, b[:n]...), b[n:]
		if len(w.buf) == buffered {
			w.flush()
		}
	}
}

// flush sends the buffered bytes. The digest covers them.
func (w *Writer) flush() {
	w.digest.Write(w.buf)
	_ = w.send()
}

func (w *Writer) send() error {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.w.Write(w.buf)
	}
	w.buf = w.buf[:0]
	return w.err
}
