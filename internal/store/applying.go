package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/braidlog/braid/internal/store/increment"
	"github.com/braidlog/braid/internal/store/sums"
)

// applyIncrements applies increments to a copy of a backup's database. The first one must continue the backup, each
// other one the increment before it. sum is the SHA-256 of the backup, in hexadecimal; those of the increments are
// returned. After each increment the database is compared with the member's that wrote it. The file is not synced.
func applyIncrements(path, sum string, files []string) (sums []string, err error) {
	for _, name := range files {
		i, err := increment.Open(name)
		if err != nil {
			return nil, err
		}
		err = errors.Join(applyIncrement(path, sum, i), i.Close())
		if err != nil && !errors.As(err, new(*increment.Error)) { // which names the file
			err = fmt.Errorf("%s: %w", name, err)
		}
		if err != nil {
			return nil, err
		}
		sum = i.Sum
		sums = append(sums, sum)
	}
	return sums, nil
}

func applyIncrement(path, sum string, i *increment.File) error {
	if i.Base != sum {
		return fmt.Errorf("it continues a backup with the SHA-256 %s, not one with %s", i.Base, sum)
	}
	if err := i.Check(); err != nil {
		return err
	}
	before, err := pointOfFile(path)
	if err != nil {
		return err
	}
	if !before.Is(i.Since) {
		return fmt.Errorf("it continues %+v, not %+v", i.Since, before)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: openTimeout, NoSync: true, NoGrowSync: true,
		FreelistType: bolt.FreelistMapType})
	if err != nil {
		return err
	}
	r := &restoring{file: i, db: db, name: schema.Key.Name()}
	if err := errors.Join(i.Visit(r), db.Close()); err != nil {
		return err
	}
	if _, _, err := inspect(path, path); err != nil {
		return err
	}
	after, err := pointOfFile(path)
	if err == nil && !after.Is(i.Now) {
		err = fmt.Errorf("with it the database is at %+v, and should be at %+v", after, i.Now)
	}
	return err
}

// pointOfFile returns the point of a database file, which has all values.
func pointOfFile(path string) (p increment.Point, err error) {
	f, err := os.Open(path)
	if err != nil {
		return p, err
	}
	defer f.Close()
	pages, err := sums.PagesOfFile(f)
	if err != nil {
		return p, err
	}
	return increment.PointOf(pages, nil)
}

const (
	// restoredBytes is the number of bytes that are put in one transaction. It bounds the memory of the process.
	restoredBytes = 8 << 20
	// trimmedKeys is the number of entries that are deleted in one transaction.
	trimmedKeys = 10000
	// filledPages is the share of a page that is filled where keys are put in order.
	filledPages = 0.9
)

// restoring applies an increment to a database. It implements [increment.Visitor].
type restoring struct {
	file  *increment.File
	db    *bolt.DB
	name  []byte // of the present bucket, first that of the history
	keys  [][]byte
	data  [][]byte
	bytes int
}

// Left deletes the entries that are not listed, and compares the others with those of the member.
func (r *restoring) Left(next func() ([]byte, error)) error {
	left, err := next()
	same := increment.NewLeft()
	for from := []byte{}; from != nil && err == nil; {
		err = r.db.Update(func(tx *bolt.Tx) (err error) {
			keys := tx.Bucket(schema.Key.Name())
			var gone [][]byte
			c := keys.Cursor()
			k, v := c.Seek(from)
			for ; k != nil && len(gone) < trimmedKeys && err == nil; k, v = c.Next() {
				for left != nil && err == nil && bytes.Compare(left, k[:sums.RevisionKey]) < 0 {
					left, err = r.skip(left, next)
				}
				if left == nil || !bytes.Equal(left, k[:sums.RevisionKey]) {
					gone = append(gone, bytes.Clone(k))
					continue
				}
				if err = same.Add(k, v, nil); err == nil {
					left, err = next()
				}
			}
			from = bytes.Clone(k)
			for _, k := range gone {
				err = errors.Join(err, keys.Delete(k))
			}
			return err
		})
	}
	for left != nil && err == nil {
		left, err = r.skip(left, next)
	}
	if want := r.file.LeftSum; err == nil && want != "" && same.Sum() != want {
		err = errors.New("the backup before it is of another history: entries that both have are not the same")
	}
	return err
}

// skip returns the next entry after one that the increment lists and this database does not have: the member of the
// backup had removed it already, for a compaction. Otherwise it fails.
func (r *restoring) skip(left []byte, next func() ([]byte, error)) ([]byte, error) {
	at, _ := sums.ParseRevision(left)
	if r.file.Since.CompactedAt(&r.file.Now) || at.Main > r.file.Since.Compacting {
		return nil, fmt.Errorf("the backup before it has no entry of revision %d/%d", at.Main, at.Sub)
	}
	return next()
}

// Entry puts an entry of the history.
func (r *restoring) Entry(key, value []byte) error {
	if at, ok := sums.ParseRevision(key); !ok || at.Main <= r.file.Since.Revision {
		return fmt.Errorf("%x is no revision behind %d", key, r.file.Since.Revision)
	}
	return r.put(key, value)
}

// Bucket begins another bucket. Before the first one all buckets but the history are emptied.
func (r *restoring) Bucket(name []byte) error {
	if err := r.flush(); err != nil {
		return err
	}
	first := bytes.Equal(r.name, schema.Key.Name())
	r.name = bytes.Clone(name)
	return r.db.Update(func(tx *bolt.Tx) error {
		if first {
			if err := dropOthers(tx); err != nil {
				return err
			}
		}
		_, err := tx.CreateBucket(r.name)
		return err
	})
}

func dropOthers(tx *bolt.Tx) error {
	var names [][]byte
	err := tx.ForEach(func(name []byte, _ *bolt.Bucket) error {
		if !bytes.Equal(name, schema.Key.Name()) {
			names = append(names, bytes.Clone(name))
		}
		return nil
	})
	for _, name := range names {
		err = errors.Join(err, tx.DeleteBucket(name))
	}
	return err
}

// Pair puts an element of the bucket.
func (r *restoring) Pair(key, value []byte) error { return r.put(key, value) }

// End implements [increment.Visitor].
func (r *restoring) End() error { return r.flush() }

func (r *restoring) put(key, value []byte) error {
	r.keys, r.data = append(r.keys, bytes.Clone(key)), append(r.data, bytes.Clone(value))
	if r.bytes += len(key) + len(value); r.bytes < restoredBytes {
		return nil
	}
	return r.flush()
}

// flush writes the elements that were collected.
func (r *restoring) flush() error {
	if len(r.keys) == 0 {
		return nil
	}
	err := r.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(r.name)
		b.FillPercent = filledPages
		for i := range r.keys {
			if err := b.Put(r.keys[i], r.data[i]); err != nil {
				return err
			}
		}
		return nil
	})
	r.keys, r.data, r.bytes = r.keys[:0], r.data[:0], 0
	return err
}
