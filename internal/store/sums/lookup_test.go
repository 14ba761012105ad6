package sums

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	bolt "go.etcd.io/bbolt"
)

// TestLookup compares lookups in buckets of all depths with bbolt's own.
func TestLookup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true})
	require.NoError(t, err)
	sizes := map[string]int{"empty": 0, "inline": 1, "leaf": 60, "two levels": 3000, "three levels": 60000}
	key := func(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(2*i)) }
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		for name, size := range sizes {
			b, err := tx.CreateBucket([]byte(name))
			require.NoError(t, err)
			for i := range size {
				require.NoError(t, b.Put(key(i), make([]byte, 1+i%97)))
			}
			if size > 100 { // a value of several pages
				require.NoError(t, b.Put(key(size), make([]byte, 20_000)))
			}
		}
		return nil
	}))
	require.NoError(t, db.Close())
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	p, err := PagesOfFile(f)
	require.NoError(t, err)
	names, err := p.Names()
	require.NoError(t, err)
	require.Len(t, names, len(sizes))
	for name, size := range sizes {
		last := size - 1
		if size > 100 {
			last = size
		}
		got, value, err := p.Last(name)
		require.NoError(t, err, name)
		if size == 0 {
			require.Nil(t, got)
			continue
		}
		require.Equal(t, key(last), got, name)
		if size > 100 {
			require.Len(t, value, 20_000)
		}
		for _, i := range []int{0, size / 2, last} {
			value, err := p.Get(name, key(i))
			require.NoError(t, err)
			require.NotNil(t, value, "%s %d", name, i)
			value, err = p.Get(name, append(key(i), 0))
			require.NoError(t, err)
			require.Nil(t, value, "%s %d", name, i)
			count := 0
			require.NoError(t, p.From(name, key(i), func(_, _ []byte) error {
				count++
				return nil
			}))
			require.Equal(t, last+1-i, count, fmt.Sprint(name, i))
		}
	}
	_, value, err := p.Last("other")
	require.NoError(t, err)
	require.Nil(t, value)
	require.NoError(t, p.From("other", nil, func(_, _ []byte) error { return errEnough }))
	empty, err := os.Create(filepath.Join(t.TempDir(), "none"))
	require.NoError(t, err)
	_, err = PagesOfFile(empty)
	require.ErrorContains(t, err, "it is no database")
}
