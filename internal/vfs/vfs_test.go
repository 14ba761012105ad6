package vfs

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// everywhere runs a test on the operating system's files and on those in memory.
func everywhere(t *testing.T, test func(t *testing.T, fs FS, dir string)) {
	t.Run("os", func(t *testing.T) { test(t, OS, t.TempDir()) })
	t.Run("memory", func(t *testing.T) {
		m := NewMem()
		require.NoError(t, m.MkdirAll("/a/b", 0o700))
		test(t, m, "/a/b")
	})
	t.Run("memory that can crash", func(t *testing.T) { test(t, NewCrashableMem(), "/") })
}

func put(t *testing.T, fs FS, name, content string) {
	t.Helper()
	f, err := fs.Create(name)
	require.NoError(t, err)
	_, err = f.Write([]byte(content))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}

func get(t *testing.T, fs FS, name string) string {
	t.Helper()
	f, err := fs.Open(name)
	require.NoError(t, err)
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return string(b)
}

func TestFiles(t *testing.T) {
	everywhere(t, func(t *testing.T, fs FS, dir string) {
		name := filepath.Join(dir, "f")
		put(t, fs, name, "old")
		old, err := fs.Open(name)
		require.NoError(t, err)
		put(t, fs, name, "new content") // another file: open handles of the old one keep it
		b, err := io.ReadAll(old)
		require.NoError(t, err)
		require.Equal(t, "old", string(b))
		_, err = old.Write([]byte("x"))
		require.Error(t, err, "it was opened for reading")
		require.NoError(t, old.Close())
		require.ErrorIs(t, old.Close(), os.ErrClosed)

		f, err := fs.OpenReadWrite(name)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("N"), 0)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("end"), 14)
		require.NoError(t, err)
		require.NoError(t, f.Preallocate(0, 1<<16))
		require.NoError(t, f.SyncData())
		info, err := f.Stat()
		require.NoError(t, err)
		require.Equal(t, int64(17), info.Size(), "space is no content")
		p := make([]byte, 8)
		n, err := f.ReadAt(p, 12)
		require.Equal(t, io.EOF, err)
		require.Equal(t, "\x00\x00end", string(p[:n]))
		n, err = f.ReadAt(p, 100)
		require.Equal(t, io.EOF, err)
		require.Zero(t, n)
		require.NoError(t, f.Close())
		require.Equal(t, "New content\x00\x00\x00end", get(t, fs, name))
	})
}

func TestNames(t *testing.T) {
	everywhere(t, func(t *testing.T, fs FS, dir string) {
		at := func(name string) string { return filepath.Join(dir, name) }
		require.NoError(t, fs.MkdirAll(at("x/y"), 0o700))
		require.NoError(t, fs.MkdirAll(at("x/y"), 0o700))
		put(t, fs, at("x/b"), "1")
		put(t, fs, at("x/a"), "2")
		names, err := fs.List(at("x"))
		require.NoError(t, err)
		slices.Sort(names)
		require.Equal(t, []string{"a", "b", "y"}, names)
		require.NoError(t, fs.Rename(at("x/a"), at("x/b")))
		require.Equal(t, "2", get(t, fs, at("x/b")))
		require.ErrorContains(t, fs.Remove(at("x")), "not empty")
		require.NoError(t, fs.Remove(at("x/y")))
		require.NoError(t, fs.Remove(at("x/b")))
		require.NoError(t, fs.Remove(at("x")))

		for what, err := range map[string]error{
			"open":   second(fs.Open(at("none"))),
			"dir":    second(fs.OpenDir(at("none"))),
			"create": second(fs.Create(at("none/f"))),
			"write":  second(fs.OpenReadWrite(at("none/f"))),
			"stat":   second(fs.Stat(at("none"))),
			"list":   second(fs.List(at("none"))),
			"lock":   second(fs.Lock(at("none/f"))),
			"remove": fs.Remove(at("none")),
			"rename": fs.Rename(at("none"), at("f")),
		} {
			require.ErrorIs(t, err, os.ErrNotExist, what)
		}
		put(t, fs, at("f"), "")
		require.Error(t, fs.MkdirAll(at("f"), 0o700), "a file in the way")
		require.Error(t, second(fs.List(at("f"))))
		d, err := fs.OpenDir(dir)
		require.NoError(t, err)
		require.NoError(t, d.Sync())
		require.NoError(t, d.Close())
	})
}

func second[T any](_ T, err error) error { return err }

func TestCopy(t *testing.T) {
	m := NewMem()
	require.NoError(t, m.MkdirAll("/d/e", 0o700))
	put(t, m, "/d/e/f", "content")
	dir := t.TempDir()
	require.NoError(t, Copy(m, "/d", OS, filepath.Join(dir, "to")))
	require.Equal(t, "content", get(t, OS, filepath.Join(dir, "to/e/f")))
	require.ErrorIs(t, Copy(m, "/none", OS, dir), os.ErrNotExist)
}

func TestFreeBytes(t *testing.T) {
	free, err := OS.FreeBytes(t.TempDir())
	require.NoError(t, err)
	require.Positive(t, free)
	require.ErrorIs(t, second(OS.FreeBytes("/none")), os.ErrNotExist)
}

// An error wraps the kernel's error, and has the file's name.
func TestErrorsNameTheFile(t *testing.T) {
	f, err := OS.OpenDir(t.TempDir())
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	err = f.Preallocate(0, 1)
	require.ErrorIs(t, err, syscall.EBADF)
	var named *os.PathError
	require.ErrorAs(t, err, &named)
	require.NotEmpty(t, named.Path)
}

func TestLocks(t *testing.T) {
	everywhere(t, func(t *testing.T, fs FS, dir string) {
		name := filepath.Join(dir, "LOCK")
		l, err := fs.Lock(name)
		require.NoError(t, err)
		require.Error(t, second(fs.Lock(name)))
		require.NoError(t, l.Close())
		l, err = fs.Lock(filepath.Join(dir, ".", "LOCK"))
		require.NoError(t, err)
		require.NoError(t, l.Close())
	})
}

const lockEnv = "BRAID_VFS_TEST_LOCK"

// TestMain makes another process of the test's executable try a lock.
func TestMain(m *testing.M) {
	name := os.Getenv(lockEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	if _, err := OS.Lock(name); err != nil {
		os.Exit(3)
	}
}

// A lock is one of the file, by whichever of its names; refused calls leave it as it is.
func TestLockExcludesOthers(t *testing.T) {
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	name := filepath.Join(dir, "LOCK")
	other := func() int {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), lockEnv+"="+name)
		_ = cmd.Run() // its exit code is the result
		return cmd.ProcessState.ExitCode()
	}
	require.Zero(t, other())
	l, err := OS.Lock(name)
	require.NoError(t, err)
	require.Equal(t, 3, other())
	require.ErrorContains(t, second(OS.Lock(filepath.Join(link, "LOCK"))), "held by this process")
	require.Equal(t, 3, other(), "the refused call has dropped the lock")
	require.NoError(t, l.Close())
	require.Zero(t, other())
}

// The holder of a lock opens files by name: in a directory that was removed and created again it would change the
// files of the next holder.
func TestALockIsHeldWhenItsFileIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	name := filepath.Join(dir, "LOCK")
	require.NoError(t, os.Mkdir(dir, 0o700))
	l, err := OS.Lock(name)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.ErrorContains(t, second(OS.Lock(name)), "held by this process")
	require.NoError(t, l.Close())
	l, err = OS.Lock(name)
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

// After a crash synced data is present, and other data is present, missing, or partly present.
func TestCrash(t *testing.T) {
	m := NewCrashableMem()
	require.NoError(t, m.MkdirAll("/d", 0o700))
	syncDir := func(dir string) {
		d, err := m.OpenDir(dir)
		require.NoError(t, err)
		require.NoError(t, d.Sync())
	}
	put(t, m, "/d/a", "synced")
	require.Error(t, second(m.Crash(0, nil).Stat("/d")), "its name is not durable")
	syncDir("/")
	require.NoError(t, second(m.Crash(0, nil).Stat("/d")))
	require.Error(t, second(m.Crash(0, nil).Stat("/d/a")))
	syncDir("/d")
	require.Equal(t, "synced", get(t, m.Crash(0, nil), "/d/a"))

	f, err := m.OpenReadWrite("/d/a")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("S"), 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("more"), 2*blockBytes)
	require.NoError(t, err)
	require.NoError(t, m.Rename("/d/a", "/d/b"))
	require.Equal(t, "synced", get(t, m.Crash(0, nil), "/d/a"))

	seen := map[string]bool{}
	for seed := range uint64(100) {
		left := m.Crash(50, rand.New(rand.NewPCG(seed, 0)))
		names, err := left.List("/d")
		require.NoError(t, err)
		require.Contains(t, names, "a", "its removal was not synced")
		content := get(t, left, "/d/"+names[len(names)-1])
		seen[names[len(names)-1]+content[:1]] = true
		seen[map[bool]string{true: "long", false: "short"}[len(content) > 6]] = true
		again := m.Crash(50, rand.New(rand.NewPCG(seed, 0)))
		require.Equal(t, content, get(t, again, "/d/"+names[len(names)-1]), "a seed says what is left")
		require.Equal(t, content, get(t, left.Crash(0, nil), "/d/"+names[len(names)-1]), "what is left is durable")
	}
	require.Subset(t, seen, map[string]bool{"bs": true, "bS": true, "aS": true, "as": true, "long": true, "short": true})
	all := m.Crash(100, rand.New(rand.NewPCG(0, 0)))
	require.Equal(t, "S", get(t, all, "/d/b")[:1])
	require.Equal(t, "synced", get(t, m.Crash(0, nil), "/d/a"), "a crash of a copy changes nothing here")
}

func TestNextWritten(t *testing.T) {
	const size = 1 << 20
	everywhere(t, func(t *testing.T, fs FS, dir string) {
		f, err := fs.Create(filepath.Join(dir, "f"))
		require.NoError(t, err)
		defer func() { _ = f.Close() }()
		require.NoError(t, f.Preallocate(0, size))
		for _, at := range []int64{100, 500_000, size - 1} {
			_, err := f.WriteAt([]byte{1}, at)
			require.NoError(t, err)
		}
		check := func() {
			require.EqualValues(t, 100, NextWritten(f, 100))
			require.EqualValues(t, 500_000, NextWritten(f, 500_000))
			require.LessOrEqual(t, NextWritten(f, 101), int64(500_000), "a byte between was written")
			require.LessOrEqual(t, NextWritten(f, 500_001), int64(size-1))
			require.GreaterOrEqual(t, NextWritten(f, 200_000), int64(200_000))
			require.GreaterOrEqual(t, NextWritten(f, size), int64(size))
			for _, at := range []int64{100, 500_000, size - 1} {
				require.Greater(t, NextHole(f, at), at)
			}
			require.GreaterOrEqual(t, NextHole(f, size), int64(size))
		}
		check() // what is only in the machine's memory counts as well
		require.NoError(t, f.Sync())
		check()
	})
}

func TestDescriptor(t *testing.T) {
	f, err := OS.Create(filepath.Join(t.TempDir(), "f"))
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	_, ok := Descriptor(f)
	require.True(t, ok)
	_, ok = Descriptor(struct{ File }{f})
	require.False(t, ok, "whoever wraps a file sees each write")
	ReadAhead(f)
}

// TestUnsynced: what was synced is lost, as if it had not been.
func TestUnsynced(t *testing.T) {
	for _, durable := range []bool{true, false} {
		m := NewCrashableMem()
		fs := FS(m)
		if !durable {
			fs = Unsynced(m)
		}
		put(t, fs, "/f", "content")
		require.Equal(t, "content", get(t, fs, "/f"))
		dir, err := fs.OpenDir("/")
		require.NoError(t, err)
		require.NoError(t, errors.Join(dir.Sync(), dir.SyncData(), dir.Close()))
		names, err := m.Crash(0, nil).List("/")
		require.NoError(t, err)
		require.Equal(t, durable, slices.Contains(names, "f"))
	}

	f, err := Unsynced(OS).Create(filepath.Join(t.TempDir(), "f"))
	require.NoError(t, err)
	_, ok := Descriptor(f)
	require.True(t, ok, "the log writes to it as otherwise")
	require.NoError(t, f.Close())
	_, err = Unsynced(OS).Open("/missing")
	require.ErrorIs(t, err, os.ErrNotExist)
}
