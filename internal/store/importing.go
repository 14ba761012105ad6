package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"

	"github.com/braidlog/braid/internal/durable"
	"github.com/braidlog/braid/internal/store/sums"
	"github.com/braidlog/braid/internal/vfs"
)

// ImportOptions are the options of importing a database.
type ImportOptions struct {
	// SkipHashCheck accepts a file without a digest: a database copied from a member's directory instead of one that a
	// client saved.
	SkipHashCheck bool
	// BumpRevision is added to the newest revision, and everything up to the sum counts as compacted: clients that saw
	// revisions that the file does not have must notice that what they know is old. 0: revisions continue.
	BumpRevision uint64
	// Increments are the files of increments, in their order. The first one must continue the imported file, each other
	// one the increment before it.
	Increments []string
}

// birth names the state that an import begins with, by the SHA-256 of the file and those of the increments.
func (o *ImportOptions) birth(sums []string) string {
	name := "sha256:" + strings.Join(sums, "+")
	if len(sums) > 1 {
		name = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(name)))
	}
	if o.BumpRevision == 0 {
		return name
	}
	return fmt.Sprintf("%s, revision +%d", name, o.BumpRevision)
}

// Import puts the keys, leases, users and alarms of an etcd snapshot, or of one of this
// package, into a directory that has no store yet, as the state before the first command.
// Every member of the new cluster has to start from the same file, with the same increments. All digests are checked
// before anything gets its name in the directory.
func Import(file, dir string, o ImportOptions) (err error) {
	target := filepath.Join(dir, "db")
	if _, err := os.Stat(target); err == nil {
		return fmt.Errorf("store: import: %s exists", target)
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("store: import: %w", &sums.ReadError{What: "the directory", Err: err})
	}
	if err := durable.MakeDir(vfs.OS, dir, 0o700); err != nil {
		return fmt.Errorf("store: import: %w", err)
	}
	part, err := os.CreateTemp(dir, restorePattern)
	if err != nil {
		return fmt.Errorf("store: import: %w", err)
	}
	defer os.Remove(part.Name()) // of no effect once it has its final name
	sum, err := copyDatabase(part, file, o)
	if err := errors.Join(err, part.Close()); err != nil {
		return fmt.Errorf("store: import %s: %w", file, err)
	}
	digests := []string{hex.EncodeToString(sum)}
	more, err := applyIncrements(part.Name(), digests[0], o.Increments)
	if err != nil {
		return fmt.Errorf("store: import %s: %w", file, err)
	}
	if err := resetCluster(part.Name(), o.birth(append(digests, more...)), o.BumpRevision); err != nil {
		return fmt.Errorf("store: import %s: %w", file, err)
	}
	if err := errors.Join(os.Rename(part.Name(), target), syncDir(dir)); err != nil {
		return fmt.Errorf("store: import %s: %w", file, err)
	}
	return nil
}

// copyDatabase copies a database and returns its digest, which it checks if the file has one. A database's length is a
// multiple of 512 bytes; the rest is a digest.
func copyDatabase(w io.Writer, file string, o ImportOptions) (sum []byte, err error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil, err
	}
	size, hashed := info.Size(), info.Size()%512 == sha256.Size
	if hashed {
		size -= sha256.Size
	}
	digest := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(w, digest), in, size); err != nil {
		return nil, err
	}
	sum = digest.Sum(nil)
	if o.SkipHashCheck {
		return sum, nil
	}
	if !hashed {
		return nil, errors.New("the file has no digest at its end: it is damaged, or a copy of a database and " +
			"not a saved snapshot")
	}
	want := make([]byte, sha256.Size)
	if _, err := io.ReadFull(in, want); err != nil {
		return nil, err
	}
	if string(sum) != string(want) {
		return nil, fmt.Errorf("SHA-256 is %x, should be %x", sum, want)
	}
	return sum, nil
}

// resetCluster makes a database the beginning of a new cluster. It removes what belongs to the former cluster: its
// position, its members, their version, its primary lessor.
func resetCluster(path, birth string, bump uint64) error {
	alike, err := findAlike(path)
	if err != nil {
		return err
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: openTimeout})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{schema.Cluster.Name(), schema.Members.Name(), schema.MembersRemoved.Name()} {
			if err := tx.DeleteBucket(name); err != nil && tx.Bucket(name) != nil {
				return err
			}
		}
		if tx.Bucket(schema.Key.Name()) != nil {
			if err := adoptKeys(tx, alike); err != nil {
				return err
			}
		}
		meta := tx.Bucket(schema.Meta.Name())
		if meta == nil || tx.Bucket(schema.Key.Name()) == nil {
			return errors.New("this is no database of etcd's")
		}
		for _, key := range [][]byte{schema.MetaConsistentIndexKeyName, schema.MetaTermKeyName, schema.MetaConfStateName,
			primaryKey, closedKey, sums.RecordKey} {
			if err := meta.Delete(key); err != nil {
				return err
			}
		}
		if err := bumpRevision(tx.Bucket(schema.Key.Name()), meta, bump); err != nil {
			return err
		}
		return meta.Put(birthKey, []byte(birth))
	})
	return errors.Join(err, db.Sync(), db.Close())
}

// bumpRevision does the same as "etcdutl snapshot restore --bump-revision --mark-compacted": an empty revision becomes
// the newest, up to which a compaction is due.
func bumpRevision(keys, meta *bolt.Bucket, bump uint64) error {
	if bump == 0 {
		return nil
	}
	newest := mvcc.Revision{}
	last, _ := keys.Cursor().Last()
	// The newest entries may be deletions that a compaction has removed.
	for _, revision := range [][]byte{last, meta.Get(schema.ScheduledCompactKeyName),
		meta.Get(schema.FinishedCompactKeyName)} {
		if at, ok := sums.ParseRevision(revision); ok {
			newest.Main = max(newest.Main, at.Main)
		}
	}
	if bump > uint64(math.MaxInt64-newest.Main) {
		return fmt.Errorf("revision %d cannot grow by %d", newest.Main, bump)
	}
	newest.Main += int64(bump)
	revision := mvcc.RevToBytes(newest, mvcc.NewRevBytes())
	return errors.Join(keys.Put(revision, []byte{}), meta.Put(schema.ScheduledCompactKeyName, revision))
}

// CopyState copies the state of a store that is not open into a new directory, for a store of its own. It refuses one
// that is known to be damaged.
func CopyState(from, to string) error {
	if why, err := markedDamaged(from); err != nil || why != nil {
		return errors.Join(err, &sums.DamageError{Dir: from, Cause: why})
	}
	in, err := os.Open(filepath.Join(from, "db"))
	if err != nil {
		return fmt.Errorf("store: copy: %w", err)
	}
	defer in.Close()
	if err := durable.MakeDir(vfs.OS, to, 0o700); err != nil {
		return fmt.Errorf("store: copy: %w", err)
	}
	out, err := os.OpenFile(filepath.Join(to, "db"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("store: copy: %w", err)
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
