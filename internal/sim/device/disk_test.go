package device

import (
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/vfs"
)

var _ vfs.FS = (*Disk)(nil)

func contents(t *testing.T, d *Disk, name string) (string, bool) {
	t.Helper()
	f, err := d.Open(name)
	if err != nil {
		require.ErrorContains(t, err, "not exist")
		return "", false
	}
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	return string(b), true
}

func syncDir(t *testing.T, d *Disk, dir string) {
	t.Helper()
	f, err := d.OpenDir(dir)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
}

func TestDiskKeepsWhatWasSynced(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	d := NewDisk()
	f, err := d.Create("/data/a")
	require.NoError(t, err)
	_, err = f.Write([]byte("synced"))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	syncDir(t, d, "/data")
	_, err = f.Write([]byte("-lost"))
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("SYN"), 0)
	require.NoError(t, err)

	seen := map[string]bool{}
	for range 1000 {
		got, ok := contents(t, d.Crash(rng), "/data/a")
		require.True(t, ok)
		seen[got] = true
	}
	for _, want := range []string{"synced", "synced-lost", "SYNced-lost", "synced-lo", "SYnced-lost"} {
		require.True(t, seen[want], "never left %q on disk; left %v", want, seen)
	}
	for got := range seen {
		require.Subset(t, []byte("SYNsynced-lost"), []byte(got))
		require.GreaterOrEqual(t, len(got), len("synced"))
	}
	got, _ := contents(t, d, "/data/a")
	require.Equal(t, "SYNced-lost", got, "a crash is of the copy")
}

// TestDiskOfAKilledProcess: what a killed process wrote is there, and is durable only after a later sync. If a sync of
// it had failed, it is durable only if it is written again.
func TestDiskOfAKilledProcess(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for name, c := range map[string]struct {
		failed, again bool
		want          []string // after a loss of power
	}{
		"sync": {false, false, []string{"new"}}, "failed sync": {true, false, []string{"new", "old"}},
		"failed sync, written again": {true, true, []string{"new"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := NewDisk()
			f, err := d.Create("/data/a")
			require.NoError(t, err)
			_, err = f.Write([]byte("old"))
			require.NoError(t, err)
			require.NoError(t, f.Sync())
			syncDir(t, d, "/data")
			_, err = f.WriteAt([]byte("new"), 0)
			require.NoError(t, err)
			if d.FailSync = c.failed; c.failed {
				require.ErrorIs(t, f.Sync(), ErrSync)
			}

			d = d.Kill()
			_, err = f.WriteAt([]byte("old process"), 0)
			require.NoError(t, err)
			got, _ := contents(t, d, "/data/a")
			require.Equal(t, "new", got)
			g, err := d.Open("/data/a")
			require.NoError(t, err)
			if c.again {
				_, err = g.WriteAt([]byte("new"), 0)
				require.NoError(t, err)
			}
			seen := map[string]bool{}
			for range 300 {
				got, _ := contents(t, d.Crash(rng), "/data/a")
				seen[got] = true
			}
			require.True(t, seen["old"], "nothing was synced yet")
			require.NoError(t, g.Sync())
			clear(seen)
			for range 300 {
				got, _ := contents(t, d.Crash(rng), "/data/a")
				seen[got] = true
			}
			for _, want := range c.want {
				require.True(t, seen[want], "%q of %v", want, seen)
			}
			require.Equal(t, len(c.want) == 1, len(seen) == 1, "%v", seen)
		})
	}
}

func TestDiskForgetsNamesThatWereNotSynced(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	d := NewDisk()
	f, err := d.Create("/data/old")
	require.NoError(t, err)
	_, err = f.Write([]byte("1"))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	syncDir(t, d, "/data")

	g, err := d.Create("/data/tmp")
	require.NoError(t, err)
	_, err = g.Write([]byte("2"))
	require.NoError(t, err)
	require.NoError(t, g.Sync())
	require.NoError(t, d.Rename("/data/tmp", "/data/old"))
	seen := map[string]int{}
	for range 300 {
		c := d.Crash(rng)
		got, ok := contents(t, c, "/data/old")
		require.True(t, ok, "a rename is atomic")
		seen[got]++
	}
	require.Len(t, seen, 2)
	syncDir(t, d, "/data")
	for range 100 {
		got, _ := contents(t, d.Crash(rng), "/data/old")
		require.Equal(t, "2", got)
	}
}

func TestDiskDirectories(t *testing.T) {
	d := NewDisk()
	_, err := d.Create("/data/none/a")
	require.Error(t, err)
	require.NoError(t, d.MkdirAll("/data/x/y", 0o700))
	_, err = d.Create("/data/x/y/b")
	require.NoError(t, err)
	_, err = d.Create("/data/x/y/a")
	require.NoError(t, err)
	names, err := d.List("/data/x/y")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, names)
	require.ErrorContains(t, d.Remove("/data/x"), "not empty")
	require.NoError(t, d.RemoveAll("/data/x"))
	_, err = d.Stat("/data/x/y/a")
	require.Error(t, err)
	l, err := d.Lock("/data/LOCK")
	require.NoError(t, err)
	_, err = d.Lock("/data/LOCK")
	require.ErrorContains(t, err, "held")
	require.NoError(t, l.Close())
	_, err = d.Lock("/data/LOCK")
	require.NoError(t, err)
}

func TestDiskWhoseSyncsFail(t *testing.T) {
	d := NewDisk()
	f, err := d.Create("/data/a")
	require.NoError(t, err)
	d.FailSync = true
	require.ErrorIs(t, f.Sync(), ErrSync)
}
