package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/protobuf/proto"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"

	"github.com/braidlog/braid/internal/store/increment"
	"github.com/braidlog/braid/internal/store/sums"
)

// Increment is a frozen view of the changes of the state since an earlier point: see package increment.
type Increment struct {
	view
	values *values
	refs   *refs // pinned until it is closed
	pages  *sums.Pages
	since  increment.Point
	now    increment.Point
	unpin  sync.Once
}

// BehindError: this member has not applied all commands that a backup covers. A retry is safe, and may succeed later or
// with another member.
type BehindError struct{ Applied, Wanted uint64 }

func (e *BehindError) Error() string {
	return fmt.Sprintf("store: the backup is of position %d, and this member has only applied %d", e.Wanted, e.Applied)
}

// OtherHistoryError: a backup is not of this cluster, although it has the same id: the cluster has another entry at the
// newest or the oldest revision of the backup. A retry is of no use: begin with a whole backup, in another directory.
type OtherHistoryError struct{ Revision int64 }

func (e *OtherHistoryError) Error() string {
	return fmt.Sprintf("store: the backup is of another cluster: revision %d is not the same there", e.Revision)
}

// Increment returns a view of the changes between the point of an earlier backup and now. It must be closed. Only the
// end of a defragmentation waits for it, and while the database is defragmented, it waits until ctx is done. Errors:
// [BehindError], [OtherHistoryError], [DamageError].
func (s *Store) Increment(ctx context.Context, since increment.Point) (*Increment, error) {
	v, refs, err := s.pinnedView(ctx)
	if err != nil {
		return nil, err
	}
	i := &Increment{view: v, values: &s.values, refs: refs, since: since}
	if err := i.open(); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

// Close frees the view.
func (i *Increment) Close() error {
	i.unpin.Do(func() { i.refs.pin(-1) })
	return i.view.Close()
}

// open reads the view's point, and refuses an earlier one that is not in its past.
func (i *Increment) open() (err error) {
	if i.pages, err = i.guarded.PagesOf(i.be); err != nil {
		return i.guarded.Judge(i.dir, err)
	}
	if i.now, err = increment.PointOf(i.pages, i.large); err != nil {
		return i.guarded.Judge(i.dir, err)
	}
	if i.now.Position < i.since.Position || i.now.Compacting < i.since.Compacting {
		return &BehindError{Applied: i.now.Position, Wanted: i.since.Position}
	}
	return errors.Join(i.compare(i.since.Last, i.since.Sum), i.compare(i.since.First, i.since.FirstSum))
}

// compare refuses a point if one of its entries differs here. text is the entry's key; "": there is none.
func (i *Increment) compare(text, want string) error {
	if text == "" {
		return nil
	}
	key, err := increment.EntryKey(text)
	if err != nil {
		return err
	}
	at, _ := sums.ParseRevision(key)
	sum, found, err := i.fingerprint(key)
	if err != nil {
		return i.guarded.Judge(i.dir, err)
	}
	if found && sum != want || !found && at.Main > i.now.Compacting {
		return &OtherHistoryError{at.Main}
	}
	return nil
}

// fingerprint returns that of an entry of the history; false if it is not there.
func (i *Increment) fingerprint(key []byte) (sum string, found bool, err error) {
	data, err := i.pages.Get(increment.KeyBucket, key)
	if err != nil || data == nil {
		return "", false, err
	}
	value, err := i.large(key)
	if err != nil {
		return "", false, err
	}
	sum, err = increment.Fingerprint(key, data, value)
	return sum, true, err
}

// large returns the SHA-256 of an entry's large value; nil: the entry has its value.
func (i *Increment) large(key []byte) ([]byte, error) {
	place, err := i.pages.Get(increment.ValuesBucket, key[:sums.RevisionKey])
	if err != nil {
		return nil, err
	}
	return sumIn(place)
}

// sumIn returns the SHA-256 of the value of a place, encoded; nil: the place is nil, or the value is in its entry.
func sumIn(place []byte) ([]byte, error) {
	if place == nil {
		return nil, nil
	}
	p, _, literal, err := decodePlace(place)
	if err != nil || literal {
		return nil, err
	}
	return p.record.sum[:], nil
}

// WriteTo writes the increment; Apply may continue meanwhile. The header has the cluster, the base and the time. It
// stops with ctx's error when ctx is done. A database that is damaged is not written to its end.
func (i *Increment) WriteTo(ctx context.Context, w io.Writer, h increment.Header) error {
	h.Since, h.Trimmed = i.since, i.since.Trimmed(&i.now)
	out := &incrementWriter{Increment: i, ctx: ctx, out: increment.NewWriter(&contextWriter{ctx, w}, &h)}
	if h.Trimmed && i.since.CompactedAt(&i.now) {
		out.left = increment.NewLeft()
	}
	err := out.write(h.Trimmed)
	switch {
	case out.out.Err() != nil:
		return out.out.Err()
	case out.failed != nil:
		return out.failed
	case err != nil:
		return i.guarded.Judge(i.dir, err)
	}
	leftSum := ""
	if out.left != nil {
		leftSum = out.left.Sum()
	}
	return out.out.Close(i.now, leftSum)
}

// incrementWriter writes an increment. Errors that it returns are of reading the database, unless failed or the error
// of out is set.
type incrementWriter struct {
	*Increment
	ctx    context.Context
	out    *increment.Writer
	places map[string][]byte // of large values, by the keys of their entries
	all    int               // places, and values that look like large ones, in all of the history
	left   *increment.Left   // nil: the older entries cannot be compared
	failed error             // of fetching a value
}

func (w *incrementWriter) write(trimmed bool) error {
	if err := w.guarded.CheckOthers(w.pages); err != nil {
		return err
	}
	if err := w.loadPlaces(); err != nil {
		return err
	}
	if err := w.entries(trimmed); err != nil {
		return err
	}
	return w.others()
}

// loadPlaces reads the places of the large values.
func (w *incrementWriter) loadPlaces() error {
	w.places = map[string][]byte{}
	return w.pages.From(increment.ValuesBucket, nil, func(k, entry []byte) error {
		w.all++
		_, _, literal, err := decodePlace(entry)
		if err != nil || literal {
			return err
		}
		w.places[string(k)] = append([]byte{}, entry...)
		return nil
	})
}

// entries writes the newer entries of the history and, if it is trimmed, a list of the older ones that are left.
func (w *incrementWriter) entries(trimmed bool) error {
	var from []byte
	if !trimmed {
		from = mvcc.RevToBytes(mvcc.Revision{Main: w.since.Revision + 1}, mvcc.NewRevBytes())
	}
	return w.pages.From(increment.KeyBucket, from, func(key, data []byte) error {
		if err := w.guarded.CheckRevision(key, data); err != nil {
			return err
		}
		if at, _ := sums.ParseRevision(key); at.Main <= w.since.Revision {
			return w.older(key, data)
		}
		if entry, large := w.places[string(key)]; large {
			if data, w.failed = w.values.whole(w.ctx, entry, data); w.failed != nil {
				return w.failed
			}
		}
		w.out.Entry(key, data)
		return w.out.Err()
	})
}

// older adds an older entry to the list of those that are left.
func (w *incrementWriter) older(key, data []byte) error {
	w.out.Left(key)
	if w.left != nil {
		value, err := sumIn(w.places[string(key)])
		if err != nil {
			return err
		}
		if err := w.left.Add(key, data, value); err != nil {
			return err
		}
	}
	return w.out.Err()
}

// others writes all other buckets. The large values are in the history. The checksums of the whole database are those
// of the restored one only if no value is large or looks like it, and if no compaction has entries left to remove,
// because another member may have removed them already.
func (w *incrementWriter) others() error {
	names, err := increment.OtherBuckets(w.pages)
	if err != nil {
		return err
	}
	sealed := w.all == 0 && w.now.Compacting == w.now.Compacted
	for _, name := range names {
		w.out.Bucket(name)
		err := w.pages.From(name, nil, func(key, value []byte) error {
			if sealed || !sums.IsRecord(name, key) {
				w.out.Pair(key, value)
			}
			return w.out.Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// whole returns an entry of the history with its large value in it. place is the value's, encoded. If the value cannot
// be had, the error is a [ValueError].
func (s *values) whole(ctx context.Context, place, data []byte) ([]byte, error) {
	p, ref, _, err := decodePlace(place)
	if err != nil {
		return nil, err
	}
	p.body = &body{ref: ref}
	kv := new(mvccpb.KeyValue)
	if err := proto.Unmarshal(data, kv); err != nil {
		return nil, err
	}
	v := value{kv: kv, place: p, elsewhere: true}
	if kv.Value, err = s.bytesOf(ctx, &v); err != nil {
		return nil, err
	}
	return proto.Marshal(kv)
}
