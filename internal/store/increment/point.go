package increment

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"slices"

	"google.golang.org/protobuf/proto"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/braidlog/braid/internal/store/sums"
)

// Names of the buckets that this package knows.
var (
	KeyBucket  = string(schema.Key.Name())
	metaBucket = string(schema.Meta.Name())
)

// ValuesBucket says where a member keeps large values. A backup does not have it, because they are all in its history.
const ValuesBucket = "braidLargeValues"

// Point is the place of a database in the history of its cluster. In JSON numbers are text, because they have 64 bits.
type Point struct {
	// Revision is the newest revision.
	Revision int64 `json:"revision,string"`
	// Position is that of the last applied command: etcd's consistent index. It rises with every command.
	Position uint64 `json:"position,string"`
	// Compacting is the revision up to which compaction has begun, and Compacted the one up to which the database has
	// completed it; 0: none.
	Compacting int64 `json:"compacting,string,omitempty"`
	Compacted  int64 `json:"compacted,string,omitempty"`
	// Last is the key of the newest entry of the history, in hexadecimal, and Sum its fingerprint: two clusters with
	// the same id differ in them. Empty: there is no entry.
	Last string `json:"last,omitempty"`
	Sum  string `json:"sum,omitempty"`
	// First and FirstSum are those of the oldest entry, which is often left after compactions.
	First    string `json:"first,omitempty"`
	FirstSum string `json:"first_sum,omitempty"`
	// Others is a digest of all other buckets, without the position.
	Others string `json:"others"`
}

// Same reports whether nothing was changed between two points of a history. Commands that change nothing may be
// between them.
func (p Point) Same(later Point) bool {
	p.Position = later.Position
	return p == later
}

// Trimmed reports whether the database at a later point may miss entries of this one's history.
func (p *Point) Trimmed(later *Point) bool {
	return later.Compacting != later.Compacted || p.Compacting != later.Compacting || p.Compacted != later.Compacted
}

// CompactedAt reports whether the compactions that had begun at this point are completed at a later one. Then the
// database at this point has every older entry that is left at the later one.
func (p *Point) CompactedAt(later *Point) bool { return later.Compacted >= p.Compacting }

// Is reports whether a database at this point is the one that is expected. If a compaction was not completed there, the
// newest and the oldest entry may be missing: another member had removed them already.
func (p Point) Is(expected Point) bool {
	if expected.Compacting != expected.Compacted {
		p.Last, p.Sum, p.First, p.FirstSum = expected.Last, expected.Sum, expected.First, expected.FirstSum
	}
	return p == expected
}

// PointOf reads the point of a database. large returns the SHA-256 of the value of an entry, by the entry's key, if the
// value is elsewhere, nil if the entry has it. If large is nil, all entries have their values.
func PointOf(pages *sums.Pages, large func(key []byte) ([]byte, error)) (p Point, err error) {
	meta, err := p.others(pages)
	if err != nil {
		return p, err
	}
	fingerprint := func(key, data []byte, err error) (string, string, error) {
		if err != nil || key == nil {
			return "", "", err
		}
		var value []byte
		if large != nil {
			if value, err = large(key); err != nil {
				return "", "", err
			}
		}
		sum, err := Fingerprint(key, data, value)
		return hex.EncodeToString(key), sum, err
	}
	if p.Last, p.Sum, err = fingerprint(pages.Last(KeyBucket)); err != nil {
		return p, err
	}
	if p.First, p.FirstSum, err = fingerprint(pages.First(KeyBucket, nil)); err != nil {
		return p, err
	}
	return p, p.complete(meta)
}

// OtherBuckets returns the names of all buckets but the history and the places of its large values.
func OtherBuckets(pages *sums.Pages) ([]string, error) {
	names, err := pages.Names()
	return slices.DeleteFunc(names, func(name string) bool { return name == KeyBucket || name == ValuesBucket }), err
}

// others computes the digest of the other buckets, and returns the bucket meta.
func (p *Point) others(pages *sums.Pages) (meta map[string][]byte, err error) {
	names, err := OtherBuckets(pages)
	if err != nil {
		return nil, err
	}
	meta, digest := map[string][]byte{}, sha256.New()
	for _, name := range names {
		err := pages.From(name, nil, func(k, v []byte) error {
			if name == metaBucket {
				meta[string(k)] = append([]byte{}, v...)
			}
			if sums.IsRecord(name, k) || name == metaBucket && string(k) == string(schema.MetaConsistentIndexKeyName) {
				return nil // they follow the position
			}
			for _, part := range [][]byte{[]byte(name), k, v} {
				digest.Write(binary.AppendUvarint(nil, uint64(len(part))))
				digest.Write(part)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	p.Others = hex.EncodeToString(digest.Sum(nil)[:16])
	return meta, nil
}

// complete sets the fields that the meta bucket has, and the revision, which is that of etcd after it has opened the
// database.
func (p *Point) complete(meta map[string][]byte) error {
	if index := meta[string(schema.MetaConsistentIndexKeyName)]; len(index) == 8 {
		p.Position = binary.BigEndian.Uint64(index)
	}
	for name, to := range map[string]*int64{
		string(schema.ScheduledCompactKeyName): &p.Compacting, string(schema.FinishedCompactKeyName): &p.Compacted,
	} {
		if at, ok := sums.ParseRevision(meta[name]); ok {
			*to = at.Main
		}
	}
	p.Revision = max(1, p.Compacting, p.Compacted)
	if p.Last == "" {
		return nil
	}
	last, err := EntryKey(p.Last)
	if err != nil {
		return err
	}
	at, _ := sums.ParseRevision(last)
	p.Revision = max(p.Revision, at.Main)
	return nil
}

// EntryKey returns the key of an entry from its hexadecimal form in a point.
func EntryKey(text string) ([]byte, error) {
	key, err := hex.DecodeString(text)
	if _, ok := sums.ParseRevision(key); err != nil || !ok {
		return nil, fmt.Errorf("%q is no revision", text)
	}
	return key, nil
}

// Fingerprint returns a digest of an entry of the history, in hexadecimal. It is the same wherever the value is stored.
// value is the SHA-256 of the value; nil: the entry has the value itself.
func Fingerprint(key, data, value []byte) (string, error) {
	kv := new(mvccpb.KeyValue)
	if err := proto.Unmarshal(data, kv); err != nil {
		return "", fmt.Errorf("revision %x: %w", key, err)
	}
	if value == nil {
		own := sha256.Sum256(kv.Value)
		value = own[:]
	}
	b := append([]byte{}, key...)
	b = append(binary.AppendUvarint(b, uint64(len(kv.Key))), kv.Key...)
	for _, n := range []int64{kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	whole := sha256.Sum256(append(b, value...))
	return hex.EncodeToString(whole[:16]), nil
}

// Left is a digest of the older entries that are left. A base with a different digest is of another history.
type Left struct{ digest hash.Hash }

// NewLeft returns the digest of no entries.
func NewLeft() *Left { return &Left{sha256.New()} }

// Add adds an entry. value is as for [Fingerprint].
func (l *Left) Add(key, data, value []byte) error {
	sum, err := Fingerprint(key, data, value)
	_, _ = io.WriteString(l.digest, sum)
	return err
}

// Sum returns the digest of the entries that were added, in hexadecimal.
func (l *Left) Sum() string { return hex.EncodeToString(l.digest.Sum(nil)[:16]) }
