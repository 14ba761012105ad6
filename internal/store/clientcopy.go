package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"google.golang.org/protobuf/proto"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/braidlog/braid/internal/store/increment"
	"github.com/braidlog/braid/internal/store/sums"
)

// copyPattern matches copies of the database that are made for clients.
const copyPattern = "db.copy.*"

// ClientSnapshot is a frozen view for clients: the database and its SHA-256, as etcdctl
// saves it and etcdutl restores it. Every value is in it.
type ClientSnapshot struct {
	view *view    // of a database without large values; nil if there is a copy
	copy *os.File // of a database into which they were put
	size int64
	once sync.Once
}

// SnapshotForClients returns a view of the state as it is now, for a client to keep. It must be
// closed. If there are large values, it is a copy of the database with all of them, in the store's
// directory. Closing removes the copy. Copies are made one at a time. While the database is defragmented,
// it waits until ctx is done.
func (s *Store) SnapshotForClients(ctx context.Context) (*ClientSnapshot, error) {
	return s.snapshotFor(ctx, nil)
}

// Lost is a large value of which too little is left, and that is therefore not in a snapshot: its key counts as
// deleted in its revision.
type Lost struct {
	Key      []byte
	Revision int64
	Bytes    int
}

// SnapshotOfRest is SnapshotForClients where large values may be lost permanently. It calls lost with each that is.
func (s *Store) SnapshotOfRest(ctx context.Context, lost func(Lost)) (*ClientSnapshot, error) {
	return s.snapshotFor(ctx, lost)
}

func (s *Store) snapshotFor(ctx context.Context, lost func(Lost)) (*ClientSnapshot, error) {
	v, refs, err := s.pinnedView(ctx)
	if err != nil {
		return nil, err
	}
	defer refs.pin(-1)
	if refs.empty() {
		return &ClientSnapshot{view: &v, size: v.size}, nil
	}
	defer v.Close()
	if err := s.copying.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer s.copying.Release(1)
	c := copier{values: &s.values, space: &s.limits.space, dir: s.opts.Dir, lost: lost}
	file, err := c.copy(ctx, &v, refs.size())
	if err != nil {
		return nil, fmt.Errorf("store: copy the database with its large values: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, discard(file))
	}
	return &ClientSnapshot{copy: file, size: info.Size()}, nil
}

// empty reports whether no value that the database has, or had recently, is in a body.
func (r *refs) empty() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.places) == 0 && len(r.dropped) == 0
}

func discard(f *os.File) error { return errors.Join(f.Close(), os.Remove(f.Name())) }

// Size returns how many bytes WriteTo writes.
func (c *ClientSnapshot) Size() int64 { return c.size + sha256.Size }

// WriteTo writes the database and its SHA-256. It stops with ctx's error when ctx is done.
func (c *ClientSnapshot) WriteTo(ctx context.Context, w io.Writer) error {
	if c.view != nil {
		return c.view.write(ctx, w, nil)
	}
	if _, err := c.copy.Seek(0, io.SeekStart); err != nil {
		return err
	}
	digest := sha256.New()
	n, err := io.Copy(&contextWriter{ctx, io.MultiWriter(w, digest)}, c.copy)
	if err == nil && n != c.size {
		err = fmt.Errorf("store: snapshot of %d bytes, expected %d", n, c.size)
	}
	if err == nil {
		_, err = w.Write(digest.Sum(nil))
	}
	return err
}

// Close frees the view.
func (c *ClientSnapshot) Close() (err error) {
	if c.view != nil {
		return c.view.Close()
	}
	c.once.Do(func() { err = discard(c.copy) })
	return err
}

// copier makes a copy of a database for a client.
type copier struct {
	values *values
	space  *space
	dir    string
	lost   func(Lost) // called with each value that is left out; nil: none may be
}

// copy makes a file of the view with its large values, which have bodies bytes.
func (c *copier) copy(ctx context.Context, v *view, bodies int64) (f *os.File, err error) {
	free, reserve := c.space.free()
	if need := v.size + bodies + max(0, reserve); free < need {
		return nil, &SpaceError{Op: "copy the database for a client", Need: need, Free: free}
	}
	if f, err = os.CreateTemp(c.dir, copyPattern); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, discard(f))
			f = nil
		}
	}()
	if err := v.inspect(); err != nil {
		return f, err
	}
	if _, err := v.be.WriteTo(&contextWriter{ctx, f}); err != nil {
		return f, err
	}
	// A crash leaves nothing of it that counts: no syncs.
	db, err := bolt.Open(f.Name(), 0o600, &bolt.Options{Timeout: openTimeout, NoSync: true, NoGrowSync: true,
		FreelistType: bolt.FreelistMapType})
	if err != nil {
		return f, err
	}
	return f, errors.Join(c.fill(ctx, db), db.Close())
}

// copiedBytes is how much of large values is written in one transaction of a copy, which
// bounds the memory that it takes.
const copiedBytes = 8 << 20

// fill puts values in the place of records and removes what braid added to the database.
func (c *copier) fill(ctx context.Context, db *bolt.DB) error {
	for from := []byte{}; from != nil; {
		err := db.Update(func(tx *bolt.Tx) (err error) {
			from, err = c.fillSome(ctx, tx, from)
			return err
		})
		if err != nil {
			return err
		}
	}
	return db.Update(func(tx *bolt.Tx) error {
		return errors.Join(tx.DeleteBucket(refsBucket.Name()), tx.Bucket(schema.Meta.Name()).Delete(sums.RecordKey))
	})
}

// fillSome puts values in until they are copiedBytes. It returns where to continue; nil: done.
func (c *copier) fillSome(ctx context.Context, tx *bolt.Tx, from []byte) ([]byte, error) {
	entries, keys := tx.Bucket(refsBucket.Name()).Cursor(), tx.Bucket(schema.Key.Name())
	size := 0
	for k, entry := entries.Seek(from); k != nil; k, entry = entries.Next() {
		if size >= copiedBytes {
			return bytes.Clone(k), nil
		}
		p, _, literal, err := decodePlace(entry)
		if err != nil {
			return nil, err
		}
		if literal {
			continue
		}
		data, err := c.values.whole(ctx, entry, keys.Get(k))
		if c.lost != nil && errors.As(err, new(*ValueError)) {
			if err := c.bury(keys, bytes.Clone(k), int(p.record.size)); err != nil {
				return nil, err
			}
			continue
		}
		if err == nil {
			err = keys.Put(bytes.Clone(k), data)
		}
		if err != nil {
			return nil, err
		}
		size += len(data)
	}
	return nil, nil
}

// tombstone is the mark that etcd appends to the revision of a key that is deleted there.
const tombstone = 't'

// bury replaces the entry of a lost value by a deletion of its key.
func (c *copier) bury(keys *bolt.Bucket, revision []byte, size int) error {
	kv := new(mvccpb.KeyValue)
	if err := proto.Unmarshal(keys.Get(revision), kv); err != nil {
		return err
	}
	c.lost(Lost{Key: kv.Key, Revision: kv.ModRevision, Bytes: size})
	data, err := proto.Marshal(&mvccpb.KeyValue{Key: kv.Key})
	if err != nil {
		return err
	}
	return errors.Join(keys.Delete(revision), keys.Put(append(revision, tombstone), data))
}

// errReferences refuses a database whose large values are somewhere else.
var errReferences = errors.New("it is a copy of a member's database, whose large values are not in it: save a " +
	"snapshot with \"braid ctl snapshot save\" instead")

// adoptKeys creates the entries of values that only look like records in an imported database.
func adoptKeys(tx *bolt.Tx, found []alike) error {
	if old := tx.Bucket(refsBucket.Name()); old != nil {
		err := old.ForEach(func(_, entry []byte) error {
			if _, _, literal, err := decodePlace(entry); err != nil || !literal {
				return errors.Join(errReferences, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := tx.DeleteBucket(refsBucket.Name()); err != nil {
			return err
		}
	}
	entries, err := tx.CreateBucket(refsBucket.Name())
	for _, a := range found {
		if err == nil {
			err = entries.Put(a.revision, a.entry)
		}
	}
	return err
}

// alike is the entry of a value that only looks like a record.
type alike struct{ revision, entry []byte }

// findAlike finds such values in a database file. It reads the file, because the pages of a mapped file would count as
// memory of the process.
func findAlike(path string) (found []alike, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	pages, err := sums.PagesOfFile(f)
	if err != nil {
		return nil, err
	}
	err = pages.From(increment.KeyBucket, nil, func(k, data []byte) error {
		if mvcc.IsTombstone(k) || !bytes.Contains(data, []byte(recordMagic)) {
			return nil
		}
		kv := new(mvccpb.KeyValue)
		if err := proto.Unmarshal(data, kv); err != nil {
			return err
		}
		if marked(kv.Value) {
			found = append(found, alike{bytes.Clone(k), encodePlace(place{record: recordOf(kv.Value)})})
		}
		return nil
	})
	return found, err
}
