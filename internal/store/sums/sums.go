package sums

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"

	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
)

// Every key of the database has a checksum in memory, against which it is checked when it is read.
// Each bucket has the sum of its keys' checksums, which does not depend on their order. These sums
// are in the database, in a record that every transaction writes. So a database can be checked
// when it is opened, before anything of it is used.

// RevisionKey is the length of a key in the bucket of keys without the mark of a deletion.
const RevisionKey = 17

// RecordKey is where the record is, in the bucket meta.
var RecordKey = []byte("braidSums")

// DamageError: a database is not what was written. The store serves nothing of it. A retry is useful after the state
// was taken from another member.
type DamageError struct {
	Dir   string
	Cause error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("store: the database in %s is damaged: %s", e.Dir, e.Cause)
}

func (e *DamageError) Unwrap() error { return e.Cause }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is that of a key and its value.
func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Update(uint32(len(key)), castagnoli, key), castagnoli, value)
}

// spread makes a checksum fit to be added to others.
func spread(sum uint32) uint64 {
	z := uint64(sum) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// total is the state of a bucket as a whole.
type total struct{ count, sum uint64 }

func (t *total) add(sum uint32) {
	t.count++
	t.sum += spread(sum)
}

func (t *total) remove(sum uint32) {
	t.count--
	t.sum -= spread(sum)
}

// Sums are the checksums of a database's keys. It is changed under the lock of the
// database's write transaction.
type Sums struct {
	mu        sync.RWMutex
	revisions revisionSums
	others    map[string]*bucketSums // buckets but that of revisions, by name
}

// bucketSums are the checksums of a bucket in which keys are overwritten.
type bucketSums struct {
	total
	keys map[string]uint32
}

// New returns the sums of an empty database.
func New() *Sums {
	return &Sums{revisions: revisionSums{chunks: map[int64]*revisionChunk{}}, others: map[string]*bucketSums{}}
}

// isRevisions reports whether a bucket is the one of revisions.
func isRevisions(name []byte) bool { return string(name) == string(schema.Key.Name()) }

// isRecord reports whether an entry is the sums' own record.
func isRecord(bucket, key []byte) bool {
	return string(key) == string(RecordKey) && string(bucket) == string(schema.Meta.Name())
}

func (s *Sums) bucket(name []byte) *bucketSums {
	b := s.others[string(name)]
	if b == nil {
		b = &bucketSums{keys: map[string]uint32{}}
		s.others[string(name)] = b
	}
	return b
}

// IsRecord reports whether an element of a bucket is the record of the sums.
func IsRecord(bucket string, key []byte) bool { return isRecord([]byte(bucket), key) }

// put records a key that is written.
func (s *Sums) put(bucket, key, value []byte) {
	if isRecord(bucket, key) {
		return
	}
	sum := checksum(key, value)
	s.mu.Lock()
	defer s.mu.Unlock()
	if isRevisions(bucket) {
		s.revisions.put(key, sum)
		return
	}
	b := s.bucket(bucket)
	if old, ok := b.keys[string(key)]; ok {
		b.remove(old)
	}
	b.keys[string(key)] = sum
	b.add(sum)
}

// drop records a key that is deleted.
func (s *Sums) drop(bucket, key []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isRevisions(bucket) {
		s.revisions.drop(key)
		return
	}
	b := s.bucket(bucket)
	if old, ok := b.keys[string(key)]; ok {
		b.remove(old)
		delete(b.keys, string(key))
	}
}

func (s *Sums) dropBucket(name []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.others, string(name))
}

// revision checks a key that was read from the bucket of revisions.
func (s *Sums) revision(key, value []byte) error {
	sum := checksum(key, value)
	s.mu.RLock()
	want, ok := s.revisions.find(key)
	gone := s.revisions.gone
	s.mu.RUnlock()
	switch {
	case ok && want == sum:
		return nil
	case ok:
		return fmt.Errorf("revision %x has checksum %08x, was written with %08x", key, sum, want)
	}
	if at, ok := ParseRevision(key); ok && at.Main <= gone {
		return nil // compacted since it was read
	}
	return fmt.Errorf("revision %x was never written", key)
}

// missing checks a key of the bucket of revisions that was not found.
func (s *Sums) missing(key []byte) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if _, ok := s.revisions.find(key); ok {
		return fmt.Errorf("revision %x is not found", key)
	}
	return nil
}

const sumsVersion = 1

// record encodes the sums of all buckets.
func (s *Sums) record() []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	into := append(make([]byte, 0, 256), sumsVersion)
	into = appendTotal(into, string(schema.Key.Name()), s.revisions.total)
	names := make([]string, 0, 16)
	for name := range s.others {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if b := s.others[name]; b.count > 0 {
			into = appendTotal(into, name, b.total)
		}
	}
	return binary.BigEndian.AppendUint32(into, crc32.Checksum(into, castagnoli))
}

func appendTotal(b []byte, name string, t total) []byte {
	b = append(b, byte(len(name)))
	b = append(b, name...)
	b = binary.BigEndian.AppendUint64(b, t.count)
	return binary.BigEndian.AppendUint64(b, t.sum)
}

// decodeRecord returns the sums by bucket.
func decodeRecord(b []byte) (map[string]total, error) {
	n := len(b) - crc32.Size
	if n < 1 || crc32.Checksum(b[:n], castagnoli) != binary.BigEndian.Uint32(b[n:]) {
		return nil, fmt.Errorf("the record of its checksums is damaged: %x", b)
	}
	if b[0] != sumsVersion {
		return nil, fmt.Errorf("its checksums are of version %d, which newer software wrote", b[0])
	}
	out := map[string]total{}
	for d := (Decoder{Rest: b[1:n]}); len(d.Rest) > 0; {
		name := string(d.Take(uint64(d.Take(1)[0])))
		numbers := d.Take(16)
		if d.Bad {
			return nil, fmt.Errorf("the record of its checksums is cut off: %x", b)
		}
		out[name] = total{binary.BigEndian.Uint64(numbers), binary.BigEndian.Uint64(numbers[8:])}
	}
	return out, nil
}

// agree compares sums of what was read with what was written. only, if not nil, selects which buckets were read.
func agree(read, written map[string]total, only func(bucket string) bool) error {
	names := map[string]bool{}
	for name := range read {
		names[name] = true
	}
	for name := range written {
		names[name] = true
	}
	for name := range names {
		if (only == nil || only(name)) && read[name] != written[name] {
			return fmt.Errorf("bucket %q has %d keys with the sum %016x, was written with %d and %016x",
				name, read[name].count, read[name].sum, written[name].count, written[name].sum)
		}
	}
	return nil
}

// totals returns the sums by bucket.
func (s *Sums) totals() map[string]total {
	out := map[string]total{}
	if s.revisions.total != (total{}) {
		out[string(schema.Key.Name())] = s.revisions.total
	}
	for name, b := range s.others {
		if b.count > 0 {
			out[name] = b.total
		}
	}
	return out
}

// revisionSums are checksums by revision. Revisions come one after the other and few
// have more than one change, so they are in arrays.
type revisionSums struct {
	total
	chunks map[int64]*revisionChunk
	// gone is the newest main revision of which something was deleted.
	gone int64
	// newest main revision that was written.
	newest int64
}

const chunkRevisions = 256

type revisionChunk struct {
	sums [chunkRevisions]uint32
	has  [chunkRevisions / 64]uint64
	more map[mvcc.Revision]uint32 // of those that are not the first of their transaction
	n    int
}

// ParseRevision reads a key of the bucket of revisions, with or without the mark of a deletion; false if it cannot be
// one.
func ParseRevision(key []byte) (at mvcc.Revision, ok bool) {
	const tombstone = 't'
	if len(key) != RevisionKey && (len(key) != RevisionKey+1 || key[RevisionKey] != tombstone) || key[8] != '_' {
		return at, false
	}
	at.Main, at.Sub = int64(binary.BigEndian.Uint64(key)), int64(binary.BigEndian.Uint64(key[9:]))
	return at, at.Main >= 0 && at.Sub >= 0
}

func (r *revisionSums) put(key []byte, sum uint32) {
	at, ok := ParseRevision(key)
	if !ok {
		return
	}
	r.drop(key)
	r.newest = max(r.newest, at.Main)
	c := r.chunks[at.Main/chunkRevisions]
	if c == nil {
		c = new(revisionChunk)
		r.chunks[at.Main/chunkRevisions] = c
	}
	i := at.Main % chunkRevisions
	if at.Sub == 0 {
		c.sums[i], c.has[i/64] = sum, c.has[i/64]|1<<(i%64)
	} else {
		if c.more == nil {
			c.more = map[mvcc.Revision]uint32{}
		}
		c.more[at] = sum
	}
	c.n++
	r.add(sum)
}

func (r *revisionSums) drop(key []byte) {
	sum, ok := r.find(key)
	if !ok {
		return
	}
	at, _ := ParseRevision(key)
	c := r.chunks[at.Main/chunkRevisions]
	if i := at.Main % chunkRevisions; at.Sub == 0 {
		c.has[i/64] &^= 1 << (i % 64)
	} else {
		delete(c.more, at)
	}
	if c.n--; c.n == 0 {
		delete(r.chunks, at.Main/chunkRevisions)
	}
	r.gone = max(r.gone, at.Main)
	r.remove(sum)
}

func (r *revisionSums) find(key []byte) (sum uint32, ok bool) {
	at, ok := ParseRevision(key)
	if !ok {
		return 0, false
	}
	c := r.chunks[at.Main/chunkRevisions]
	if c == nil {
		return 0, false
	}
	if at.Sub != 0 {
		sum, ok = c.more[at]
		return sum, ok
	}
	i := at.Main % chunkRevisions
	return c.sums[i], c.has[i/64]&(1<<(i%64)) != 0
}

// between calls yield for every revision from one to another one, in any order.
func (r *revisionSums) between(from, to int64, yield func(mvcc.Revision)) {
	for n := from / chunkRevisions; n <= to/chunkRevisions; n++ {
		c := r.chunks[n]
		if c == nil {
			continue
		}
		for i := range int64(chunkRevisions) {
			if main := n*chunkRevisions + i; main >= from && main <= to && c.has[i/64]&(1<<(i%64)) != 0 {
				yield(mvcc.Revision{Main: main})
			}
		}
		for at := range c.more {
			if at.Main >= from && at.Main <= to {
				yield(at)
			}
		}
	}
}

// OfFile reads a whole database and checks that its pages fit together and that its keys
// are those that were written. adopted: it has no sums yet, since older software wrote it.
func OfFile(p *Pages) (s *Sums, adopted bool, err error) {
	s = New()
	p.Visited = make([]uint64, p.Meta.Pages/64+1)
	buckets, err := p.Buckets()
	if err != nil {
		return nil, false, err
	}
	var record []byte
	for i := range buckets {
		name := []byte(buckets[i].name)
		err := p.Tree(&buckets[i], nil, func(key, value []byte) error {
			if isRecord(name, key) {
				record = append([]byte{}, value...)
				return nil
			}
			if _, ok := ParseRevision(key); isRevisions(name) && !ok {
				return fmt.Errorf("%x is no revision", key)
			}
			s.put(name, key, value)
			return nil
		})
		if err != nil {
			return nil, false, err
		}
	}
	s.revisions.gone = 0
	if err := p.free(); err != nil {
		return nil, false, err
	}
	if record == nil {
		return s, true, nil
	}
	written, err := decodeRecord(record)
	if err == nil {
		err = agree(s.totals(), written, nil)
	}
	return s, false, err
}
