package datadir

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/vfs/errorfs"
	"github.com/braidlog/braid/protocol"
)

// A member that lost what it acknowledged may not start again, even if its disk is full when it learns that: the
// ballast makes space for the record. If nothing can be written, the directory gets another identity, to which no
// member connects.
func TestACondemnedMemberStaysOut(t *testing.T) {
	for name, ballast := range map[string]bool{"the ballast makes space": true, "no space at all": false} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			chance := uint64(0)
			enter := func(fs vfs.FS) (cluster.OwnIdentity, error) {
				own, lock, err := Enter(fs, "/d", Owner{Cluster: 7, Member: 1}, func() uint64 { chance++; return chance })
				if err == nil {
					require.NoError(t, lock.Close())
				}
				return own, err
			}
			own, err := enter(mem)
			require.NoError(t, err)
			if ballast {
				require.NoError(t, KeepBallast(mem, "/d"))
			}
			full := errorfs.Wrap(mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
				_, err := mem.Stat("/d/" + ballastFile)
				if o.Kind == errorfs.OpFileWriteAt && strings.Contains(o.Path, identityFile) && (!ballast || err == nil) {
					return syscall.ENOSPC
				}
				return nil
			}))
			err = Condemn(full, "/d", 7, 1, &protocol.Forgot{Leader: 2, Term: 3, Acked: 9, Last: 8})
			again, entered := enter(mem)
			if ballast {
				require.NoError(t, err)
				var lost *cluster.ForgottenError
				require.ErrorAs(t, entered, &lost)
				return
			}
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.NoError(t, entered)
			require.NotEqual(t, own.Log, again.Log)
		})
	}
}

// A record that was written and not synced does not count as durable.
func TestANoteThatIsNotSyncedIsWrittenAgain(t *testing.T) {
	mem := vfs.NewCrashableMem()
	_, lock, err := Enter(mem, "/d", Owner{Cluster: 7, Member: 1}, func() uint64 { return 5 })
	require.NoError(t, err)
	require.NoError(t, lock.Close())
	require.NoError(t, KeepBallast(mem, "/d"))
	syncs := 0
	failing := errorfs.Wrap(mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
		if o.Kind == errorfs.OpFileSync && o.Path == "/d" {
			if syncs++; syncs == 1 {
				return syscall.EIO
			}
		}
		return nil
	}))
	require.NoError(t, Condemn(failing, "/d", 7, 1, &protocol.Forgot{Leader: 2, Term: 3, Acked: 9, Last: 8}))
	require.Equal(t, 2, syncs)
	_, _, err = Enter(mem.Crash(0, nil), "/d", Owner{Cluster: 7, Member: 1}, func() uint64 { return 6 })
	var forgotten *cluster.ForgottenError
	require.ErrorAs(t, err, &forgotten)
}
