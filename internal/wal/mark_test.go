package wal

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/vfs/errorfs"
)

// TestDamageToTheLastBatch: the process dies under load, and bytes of the batch that was synced last are damaged. It
// was acknowledged: the log must not open without it, or with an older vote.
func TestDamageToTheLastBatch(t *testing.T) {
	fs := vfs.NewMem()
	l := openMem(t, fs)
	require.NoError(t, l.Append([]Record{state(1, "vote for 2", 10), entry(1, 1, []byte("one"))}))
	require.NoError(t, l.Sync())
	require.NoError(t, l.Append([]Record{state(1, "vote for 3", 10), entry(1, 2, []byte("two"))}))
	require.NoError(t, l.Sync())
	at := int64(l.index.find(1).state.off)
	abandon(l)
	flip(t, fs, "/d/log/0000000000000001.wal", at+recordHeaderSize+9, 0)
	var corrupt *CorruptError
	require.ErrorAs(t, open(fs, "me"), &corrupt)
	require.Equal(t, "/d/log/0000000000000001.wal", corrupt.File)
	require.Equal(t, at-batchHeaderSize, corrupt.Offset)
	require.ErrorAs(t, open(fs, "me"), &corrupt, "trying again changes nothing")
}

// TestDamageToTheLastBody is the same for a body.
func TestDamageToTheLastBody(t *testing.T) {
	for name, where := range map[string]int64{"head": 3, "bytes": bodyHeadSize + 1, "all": 0} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			b := openBodiesMem(t, fs)
			require.NoError(t, b.Append(Body{Instance: 1, Index: 1, Term: 1, Form: 1, K: 1, Size: 3, Bytes: []byte("one")}))
			require.NoError(t, b.Sync())
			require.NoError(t, b.Append(Body{Instance: 1, Index: 2, Term: 1, Form: 1, K: 1, Size: 3, Bytes: []byte("two")}))
			require.NoError(t, b.Sync())
			h := b.index[bodyKey{1, 2}]
			path := b.path(h.file.seq, bodySuffix)
			b.closeFiles()
			if name == "all" {
				put(t, fs, path, h.offset, make([]byte, h.size()))
			} else {
				flip(t, fs, path, h.offset+where, 0)
			}
			for range 2 { // it is reported again until something is written
				b = openBodiesMem(t, fs)
				if name == "all" {
					require.NotEmpty(t, b.Damaged())
					require.Error(t, b.Verify(1, 1), "it may have been replaced by what was lost")
				} else {
					require.NoError(t, b.Verify(1, 1))
					_, held := b.Find(1, 2)
					require.True(t, held, "it was durable")
				}
				if name == "bytes" {
					var corrupt *CorruptError
					require.ErrorAs(t, b.Verify(1, 2), &corrupt)
				}
				b.closeFiles()
			}
		})
	}
}

// TestMarkItself: a damaged or torn mark costs only itself; the older one counts then.
func TestMarkItself(t *testing.T) {
	write := func() (*vfs.Mem, *Log) {
		fs := vfs.NewMem()
		l := openMem(t, fs)
		for i := uint64(1); i <= 3; i++ {
			require.NoError(t, l.Append([]Record{entry(1, i, []byte("x"))}))
			require.NoError(t, l.Sync())
		}
		return copyOf(fs), l
	}
	for _, slot := range []int64{0, 1} {
		fs, l := write()
		put(t, fs, "/d/log/"+markName, slot*markSlotSize+20, []byte{0xff})
		m, damage, err := readMark(fs, "/d/log", []byte("me"))
		require.NoError(t, err)
		require.Nil(t, damage, "a torn write looks the same")
		if int64(l.marks.slot) == slot {
			require.Equal(t, l.number-1, m.last.number)
		} else {
			require.Equal(t, l.marks.last, m.last)
		}
		m.close()
		require.NoError(t, open(fs, "me"))
	}
	fs, l := write()
	put(t, fs, "/d/log/"+markName, 20, []byte{0xff})
	put(t, fs, "/d/log/"+markName, 20+markSlotSize, []byte{0xff})
	again := openMem(t, fs)
	require.Len(t, again.Damaged(), 1)
	require.Equal(t, "/d/log/"+markName, again.Damaged()[0].File)
	require.NoError(t, again.Close())
	again = openMem(t, fs)
	require.Empty(t, again.Damaged(), "it was written anew")
	require.NoError(t, again.Close())

	fs, _ = write()
	require.NoError(t, fs.Remove("/d/log/"+markName))
	require.NoError(t, open(fs, "me"), "as an earlier version left it")
	require.NoError(t, l.Close())
	m, _, err := readMark(fs, "/d/log", []byte("you"))
	require.NoError(t, err)
	require.Equal(t, mark{}, m.last, "of another log")
	m.close()
}

// TestLogIsGone: the segments are missing, but the mark exists.
func TestLogIsGone(t *testing.T) {
	fs, segs := fullLog(t)
	for _, name := range segs {
		require.NoError(t, fs.Remove(name))
	}
	var corrupt *CorruptError
	require.ErrorAs(t, open(fs, "me"), &corrupt)
	require.Contains(t, corrupt.Error(), "no segment is there")
}

// TestMarkIsSynced: an idle log syncs its mark, a busy one does not wait for it.
func TestMarkIsSynced(t *testing.T) {
	mem := vfs.NewCrashableMem()
	l := openMem(t, mem)
	require.NoError(t, l.Append([]Record{entry(1, 1, []byte("x"))}))
	require.NoError(t, l.Sync())
	said := func() uint64 {
		m, damage, err := readMark(mem.Crash(0, nil), "/d/log", []byte("me"))
		require.NoError(t, err)
		require.Nil(t, damage)
		m.close()
		return m.last.number
	}
	require.Zero(t, said())
	number := l.number
	require.NoError(t, l.seal())
	require.Equal(t, number, said())
	require.NoError(t, l.Close())
	require.Equal(t, l.number, said(), "with the seal that closes the log")
}

// TestAMarkThatCannotBeReadIsNotDamaged: a read error does not show what is on disk. Without the mark, damage to the
// batch that was synced last would look like a torn write.
func TestAMarkThatCannotBeReadIsNotDamaged(t *testing.T) {
	unreadable := func(fs vfs.FS) vfs.FS {
		return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileReadAt && strings.HasSuffix(op.Path, markName) {
				return syscall.EIO
			}
			return nil
		}))
	}
	var corrupt *CorruptError
	fs := vfs.NewMem()
	l := openMem(t, fs)
	require.NoError(t, l.Append([]Record{state(1, "vote for 2", 10)}))
	require.NoError(t, l.Sync())
	require.NoError(t, l.Append([]Record{state(1, "vote for 3", 10)}))
	require.NoError(t, l.Sync())
	at := int64(l.index.find(1).state.off)
	abandon(l)
	flip(t, fs, "/d/log/0000000000000001.wal", at+recordHeaderSize+9, 0)
	err := open(unreadable(fs), "me")
	require.ErrorIs(t, err, syscall.EIO)
	require.NotErrorAs(t, err, &corrupt)
	require.ErrorAs(t, open(fs, "me"), &corrupt, "the vote was durable")

	fs = vfs.NewMem()
	b := openBodiesMem(t, fs)
	require.NoError(t, b.Append(Body{Instance: 1, Index: 1, Term: 1, Form: 1, K: 1, Size: 3, Bytes: []byte("one")}))
	require.NoError(t, b.Sync())
	b.closeFiles()
	_, err = OpenBodies(BodiesOptions{FS: unreadable(fs), Dir: b.dir, Identity: b.identity})
	require.ErrorIs(t, err, syscall.EIO)
	require.NotErrorAs(t, err, &corrupt)
}
