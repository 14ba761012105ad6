package store

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/store/sums"
)

// failing is a database file of which some reads fail.
type failing struct {
	sums.DatabaseFile
	after int // this many reads succeed before
	err   error
}

func (f *failing) ReadAt(b []byte, at int64) (int, error) {
	if f.after--; f.after < 0 {
		return 0, f.err
	}
	return f.DatabaseFile.ReadAt(b, at)
}

// TestAFailedReadAtStartIsNoDamage: a disk that fails to read does not show what is there. The start fails, nothing is
// set aside, and a later start finds everything.
func TestAFailedReadAtStartIsNoDamage(t *testing.T) {
	o := testOptions(t.TempDir())
	n := varied(t, o)
	want := mustValues(t, n)
	require.NoError(t, n.Close())
	for _, cause := range []error{syscall.EIO, syscall.EMFILE} {
		for after := range 8 {
			f, err := os.Open(n.opts.path())
			require.NoError(t, err)
			_, _, err = sumsOf(&failing{f, after, cause}, o.Dir)
			require.ErrorIs(t, err, cause)
			require.ErrorAs(t, err, new(*sums.ReadError))
			require.NotErrorAs(t, err, new(*sums.DamageError))
			require.NoError(t, f.Close())
		}
	}

	o.Repairable = true
	aside := n.opts.path() + ".not"
	require.NoError(t, os.Rename(n.opts.path(), aside))
	require.NoError(t, os.Mkdir(n.opts.path(), 0o700)) // its reads fail
	_, err := Open(o)
	require.Error(t, err)
	require.NotErrorAs(t, err, new(*sums.DamageError))
	require.NoFileExists(t, filepath.Join(o.Dir, damagedMark))
	require.NoDirExists(t, filepath.Join(o.Dir, setAside))
	require.NoError(t, os.Remove(n.opts.path()))
	require.NoError(t, os.Rename(aside, n.opts.path()))

	require.NoError(t, os.Mkdir(filepath.Join(o.Dir, damagedMark), 0o700))
	_, err = Open(o)
	require.ErrorIs(t, err, syscall.EISDIR)
	require.NotErrorAs(t, err, new(*sums.DamageError))
	require.NoFileExists(t, filepath.Join(o.Dir, setAside))
	require.NoError(t, os.Remove(filepath.Join(o.Dir, damagedMark)))

	s, err := Open(o)
	require.NoError(t, err)
	n = &node{Store: s, t: t}
	require.NoError(t, n.Damage().Err())
	require.Equal(t, want, mustValues(t, n))
	require.NoError(t, n.Close())
}

// TestAFailedReadWhileRunningIsNoDamage: neither the scrub nor a snapshot treats a failed read as damage. The store
// continues, and a later read succeeds.
func TestAFailedReadWhileRunningIsNoDamage(t *testing.T) {
	n := varied(t, testOptions(t.TempDir()))
	defer n.Close()
	good := n.db.guarded.File
	for after := range 8 {
		n.db.guarded.File = &failing{good, after, syscall.EIO}
		err := n.scrubOnce()
		require.ErrorIs(t, err, syscall.EIO)
		require.ErrorAs(t, err, new(*sums.ReadError))
		require.NotErrorAs(t, err, new(*sums.DamageError))
		require.NoError(t, n.Damage().Err())

		n.db.guarded.File = &failing{good, after, syscall.EIO}
		snap, err := n.Snapshot()
		require.NoError(t, err)
		err = snap.WriteTo(t.Context(), io.Discard)
		require.ErrorIs(t, err, syscall.EIO)
		require.NotErrorAs(t, err, new(*sums.DamageError))
		require.NoError(t, snap.Close())
		require.NoError(t, n.Damage().Err())
	}
	n.db.guarded.File = good
	require.NoError(t, n.scrubOnce())
	require.NoFileExists(t, filepath.Join(n.opts.Dir, damagedMark))
	n.must(put("goes", "on"))
}
