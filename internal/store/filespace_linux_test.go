package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/braidlog/braid/internal/store/filespace"
	"github.com/braidlog/braid/internal/testsize"
)

// smallDisk mounts a file system of a number of bytes, where the user may mount; elsewhere it does nothing.
func smallDisk(t *testing.T, bytes int) (dir string, ok bool) {
	dir = t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes))
	if err != nil {
		t.Logf("no file system of its own (%v): only what needs none is tested", err)
		return dir, false
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir, true
}

// fillDisk writes a file that leaves nothing free.
func fillDisk(t *testing.T, dir string) (free func()) {
	name := filepath.Join(dir, "filler")
	f, err := os.Create(name)
	require.NoError(t, err)
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			require.ErrorIs(t, err, unix.ENOSPC)
			block = block[:len(block)/2]
		}
	}
	return func() { require.NoError(t, os.Remove(name)) }
}

// TestApplyOnFullDisk continues applying when others fill the disk: at first in what is allocated,
// then it waits, and continues once there is space. It opens on the full disk, too.
func TestApplyOnFullDisk(t *testing.T) {
	testsize.Long(t)
	dir, ok := smallDisk(t, 64<<20)
	if !ok {
		return
	}
	o := testOptions(filepath.Join(dir, "store"))
	o.OnFatal = func(err error) { t.Errorf("fatal: %v", err) }
	o.NoSync = false
	n := open(t, o)
	value := string(make([]byte, 10<<10))
	n.must(put("before", value))
	free := fillDisk(t, dir)

	n.must(put("little", value))
	done := make(chan int, 1)
	go func() {
		i := 0
		for ; n.do(put(fmt.Sprint("key", i), value)) != nil && i < 3000; i++ {
		}
		done <- i
	}()
	require.Never(t, func() bool { return len(done) > 0 }, time.Second, 10*time.Millisecond, "there is no space for 30 MB")
	require.NoError(t, n.Err())
	require.Equal(t, value, n.get("before"), "reads are served")
	free()
	require.Equal(t, 3000, within(t, done))
	n.Close()

	free = fillDisk(t, dir)
	n = open(t, o)
	require.Equal(t, value, n.get("key2999"))
	n.must(del("key1", ""))
	n.Close()
	n = open(t, o)
	require.Equal(t, "", n.get("key1"))
	n.Close()
	free()
}

// TestUnknownSpace: where nothing can be allocated in advance, nothing waits for it.
func TestUnknownSpace(t *testing.T) {
	n := open(t, testOptions(t.TempDir()))
	defer n.Close()
	db := n.database()
	db.space.Path = "/dev/full/none"
	require.NoError(t, db.space.Reserve())
}

func TestSpaceIsFoundOut(t *testing.T) {
	full := unix.ENOSPC
	require.True(t, filespace.IsFull(fmt.Errorf("allocate: %w", full)))
	require.True(t, filespace.IsFull(errors.Join(unix.EDQUOT, nil)))
	require.False(t, filespace.IsFull(unix.EOPNOTSUPP))

	size := int64(0)
	r := &filespace.Space{Path: filepath.Join(t.TempDir(), "db"), Size: func() int64 { return size }}
	require.NoError(t, os.WriteFile(r.Path, nil, 0o600))
	for range 5000 {
		if r.Expect(1000, 1<<20) {
			r.Begun()
			r.Begun()
		}
		require.NoError(t, r.Reserve())
	}
	require.Less(t, r.Allocated, int64(200<<20), "what came to nothing is not expected for ever")
}

// TestRestoreOnFullDisk receives a snapshot for which there is no space: it waits, and restores it once there is.
func TestRestoreOnFullDisk(t *testing.T) {
	testsize.Long(t)
	dir, ok := smallDisk(t, 64<<20)
	if !ok {
		return
	}
	from := open(t, testOptions(t.TempDir()))
	defer from.Close()
	for i := range 2000 {
		from.must(put(fmt.Sprint("key", i), string(make([]byte, 8<<10))))
	}
	snapshot := from.snapshot()

	n := open(t, testOptions(filepath.Join(dir, "store")))
	defer n.Close()
	free := fillDisk(t, dir)
	done := make(chan error, 1)
	go func() { done <- n.Restore(bytes.NewReader(snapshot)) }()
	require.Never(t, func() bool { return len(done) > 0 }, time.Second, 10*time.Millisecond)
	free()
	require.NoError(t, within(t, done))
	require.Len(t, n.get("key1999"), 8<<10)
}

// TestDefragmentOnFullDisk is refused before it fills the disk, and so is a copy for a client.
func TestDefragmentOnFullDisk(t *testing.T) {
	dir, ok := smallDisk(t, 64<<20)
	if !ok {
		return
	}
	n := open(t, testOptions(filepath.Join(dir, "store")))
	defer n.Close()
	n.must(put("a", "1"))
	free := fillDisk(t, dir)
	var full *SpaceError
	require.ErrorAs(t, n.Defragment(t.Context()), &full)
	require.Positive(t, full.Need)
	free()
	require.NoError(t, n.Defragment(t.Context()))
	require.Equal(t, "1", n.get("a"))
}
