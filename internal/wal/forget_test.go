package wal

import (
	"errors"
	"maps"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/vfs"
)

// forgetfulFS is a file system that can fail a sync as Linux does: what was not synced stays in the machine's memory,
// where all processes read it, but it is not dirty any more. So the next sync succeeds, and a loss of power loses it.
type forgetfulFS struct {
	*vfs.Mem
	mu    sync.Mutex
	fails bool
	files map[string]*forgetful
}

// forgetful has the bytes on disk where they are not those of the file: of what is dirty, and of what was lost.
type forgetful struct{ dirty, lost map[int64]byte }

func newForgetful() *forgetfulFS {
	return &forgetfulFS{Mem: vfs.NewCrashableMem(), files: map[string]*forgetful{}}
}

func (d *forgetfulFS) wrap(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files[name] == nil {
		d.files[name] = &forgetful{dirty: map[int64]byte{}, lost: map[int64]byte{}}
	}
	return &forgetfulFile{f, d, d.files[name]}, nil
}

func (d *forgetfulFS) Create(name string) (vfs.File, error) {
	d.mu.Lock()
	delete(d.files, name)
	d.mu.Unlock()
	f, err := d.Mem.Create(name)
	return d.wrap(name, f, err)
}

func (d *forgetfulFS) OpenReadWrite(name string) (vfs.File, error) {
	f, err := d.Mem.OpenReadWrite(name)
	return d.wrap(name, f, err)
}

func (d *forgetfulFS) Rename(from, to string) error {
	d.mu.Lock()
	d.files[to] = d.files[from]
	delete(d.files, from)
	d.mu.Unlock()
	return d.Mem.Rename(from, to)
}

// fail makes all syncs fail, or succeed again.
func (d *forgetfulFS) fail(fails bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails = fails
}

// losePower returns what is on disk.
func (d *forgetfulFS) losePower(t *testing.T) *vfs.Mem {
	left := d.Crash(0, nil)
	for name, f := range d.files {
		for at, b := range f.lost {
			put(t, left, name, at, []byte{b})
		}
	}
	return left
}

type forgetfulFile struct {
	vfs.File
	d *forgetfulFS
	f *forgetful
}

func (f *forgetfulFile) WriteAt(b []byte, at int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	old := make([]byte, len(b))
	if _, err := readFull(f.File, old, at); err != nil {
		return 0, err
	}
	for i := range b {
		at := at + int64(i)
		onDisk, lost := f.f.lost[at]
		if !lost {
			onDisk = old[i]
		}
		if _, dirty := f.f.dirty[at]; !dirty {
			f.f.dirty[at] = onDisk
		}
		delete(f.f.lost, at)
	}
	return f.File.WriteAt(b, at)
}

func (f *forgetfulFile) Sync() error { return f.SyncData() }

func (f *forgetfulFile) SyncData() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.fails {
		maps.Copy(f.f.lost, f.f.dirty)
		clear(f.f.dirty)
		return syscall.EIO
	}
	clear(f.f.dirty)
	return f.File.Sync()
}

// TestAStartAfterAFailedSync finds what was not synced, and continues with it. So it writes it once more: otherwise its
// own sync, which succeeds, makes nothing durable.
func TestAStartAfterAFailedSync(t *testing.T) {
	d := newForgetful()
	l := openMem(t, d)
	require.NoError(t, l.Append([]Record{state(1, "old", 100)}))
	require.NoError(t, l.Sync())
	require.NoError(t, l.Append([]Record{state(1, "new", 9000)}))
	d.fail(true)
	require.True(t, errors.As(l.Sync(), new(*FailedError)))
	abandon(l)

	d.fail(false)
	l = openMem(t, d)
	found := stateOf(t, l, 1)
	again := openMem(t, d.losePower(t))
	require.Equal(t, found, stateOf(t, again, 1), "what the start found is durable")
	abandon(again)
	abandon(l)
}

// TestAStartAfterAFailedSyncOfBodies is the same for bodies.
func TestAStartAfterAFailedSyncOfBodies(t *testing.T) {
	d := newForgetful()
	b := openBodiesMem(t, d)
	require.NoError(t, b.Append(someBody(1, 1, 1, 100)))
	require.NoError(t, b.Sync())
	lost := someBody(1, 2, 1, 50_000)
	require.NoError(t, b.Append(lost))
	d.fail(true)
	require.True(t, errors.As(b.Sync(), new(*FailedError)))
	b.closeFiles()

	d.fail(false)
	b = openBodiesMem(t, d)
	require.NoError(t, readBack(b, bodyKey{1, 2}, lost))
	again := openBodiesMem(t, d.losePower(t))
	require.NoError(t, readBack(again, bodyKey{1, 2}, lost), "what the start found is durable")
	again.closeFiles()
	b.closeFiles()
}
