package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/testsize"
	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/internal/vfs/errorfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

var errBroken = errors.New("it is broken")

// TestAMachineThatFailsAnswersAll makes the state machine fail during Apply. More commits wait then, some of them
// already taken by the apply loop. Each caller is answered once, and nothing is acknowledged after the failure.
func TestAMachineThatFailsAnswersAll(t *testing.T) {
	inBubble(t, setting{size: 1}, func(c *testCluster) {
		t := c.t
		c.leader()
		c.fill(1, "before", 3)
		r, sm, a := c.running[1], c.machines[1], newAnswers()
		reached := make(chan struct{})
		busy, open := c.gate()
		sm.hook(func(m *machine) {
			m.apply = func(command string) error {
				switch command {
				case "command 0":
					close(reached)
					<-busy
				case "command 1":
					return errBroken
				}
				return nil
			}
		})
		for i := range 20 {
			require.NoError(t, a.propose(r, fmt.Sprintf("command %d", i), nil))
			synctest.Wait() // so that each is a separate batch
		}
		<-reached
		open()
		<-r.Done()
		require.ErrorIs(t, r.Err(), errBroken)
		for name, err := range a.complete(t) {
			if name == "command 0" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, member.ErrStopped)
			}
		}
		c.ended(1)
	})
}

// fault is something that fails in a member.
type fault struct {
	setting
	// strike injects the fault at a member. It returns that member.
	strike func(c *testCluster) protocol.MemberID
	// why checks the reason for which the member stopped. nil: it continues.
	why func(t *testing.T, err error)
}

// onDisk makes the leader's disk fail at changes in a directory.
func onDisk(dir string, err error, kinds ...errorfs.OpKind) func(c *testCluster) protocol.MemberID {
	return func(c *testCluster) protocol.MemberID {
		id := c.leader()
		c.faults[id].set(func(op errorfs.Op) error {
			if strings.Contains(op.Path, dir) && slices.Contains(kinds, op.Kind) {
				return err
			}
			return nil
		})
		return id
	}
}

// withSnapshot makes the member of a fault take a snapshot.
func withSnapshot(strike func(c *testCluster) protocol.MemberID) func(c *testCluster) protocol.MemberID {
	return func(c *testCluster) protocol.MemberID {
		id := strike(c)
		c.running[id].apply.push(apply.ApplyItem{Due: true})
		return id
	}
}

func onLeader(f func(m *machine)) func(c *testCluster) protocol.MemberID {
	return func(c *testCluster) protocol.MemberID {
		id := c.leader()
		c.machines[id].hook(f)
		return id
	}
}

// ofMachine expects a state machine's error, from one of its calls.
func ofMachine(op string) func(t *testing.T, err error) {
	return func(t *testing.T, err error) {
		var failed *member.MachineError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, op, failed.Op)
		require.ErrorIs(t, failed, errBroken)
	}
}

// ofLog expects a log's error.
func ofLog(t *testing.T, err error) {
	var failed *wal.FailedError
	require.ErrorAs(t, err, &failed)
	require.ErrorIs(t, failed, errBroken)
}

func breaks() error { return errBroken }

// opens are the operations that take a descriptor.
var opens = []errorfs.OpKind{errorfs.OpCreate, errorfs.OpOpen, errorfs.OpOpenDir, errorfs.OpList}

var faults = map[string]fault{
	"the state machine cannot apply": {setting{size: 3},
		onLeader(func(m *machine) { m.apply = func(string) error { return errBroken } }), ofMachine("apply")},
	"the state machine gives no view": {setting{size: 3}, withSnapshot(onLeader(func(m *machine) { m.take = breaks })),
		ofMachine("snapshot")},
	"the state machine is not durable": {setting{size: 3, durable: true},
		withSnapshot(onLeader(func(m *machine) { m.sync = breaks })), ofMachine("sync")},
	"the state machine does not say its bodies": {setting{size: 3, tune: keepLittle},
		func(c *testCluster) protocol.MemberID {
			id := c.behind()
			c.machines[id].hook(func(m *machine) { m.live = breaks })
			c.net.isolate(uint64(id), false)
			return id
		}, ofMachine("live bodies")},
	"the state machine takes no other state": {setting{size: 3, tune: keepLittle}, func(c *testCluster) protocol.MemberID {
		id := c.behind()
		c.machines[id].hook(func(m *machine) { m.restore = breaks })
		c.net.isolate(uint64(id), false)
		return id
	}, ofMachine("restore")},
	"a view cannot be written": {setting{size: 3},
		withSnapshot(onLeader(func(m *machine) { m.write = func(context.Context) error { return errBroken } })), nil},
	"a view cannot be closed": {setting{size: 3}, withSnapshot(onLeader(func(m *machine) { m.close = breaks })),
		nil},
	"no file of a snapshot can be made": {setting{size: 3},
		withSnapshot(onDisk("/snapshots/", errBroken, errorfs.OpCreate)), nil},
	"there is no space for a snapshot": {setting{size: 3},
		withSnapshot(onDisk("/snapshots/", syscall.ENOSPC, errorfs.OpFileWrite)), nil},
	"a snapshot cannot be synced": {setting{size: 3},
		withSnapshot(onDisk("/snapshots/", errBroken, errorfs.OpFileSync)), nil},
	"a snapshot cannot get its name": {setting{size: 3},
		withSnapshot(onDisk("/snapshots/", errBroken, errorfs.OpRename)), nil},
	"old snapshots cannot be removed": {setting{size: 3},
		withSnapshot(onDisk("/snapshots/", errBroken, errorfs.OpRemove)), nil},
	"a snapshot that comes cannot be written": {setting{size: 3, tune: keepLittle},
		func(c *testCluster) protocol.MemberID {
			id := c.behind()
			failed := make(chan struct{})
			once := sync.OnceFunc(func() { close(failed) })
			c.faults[id].set(func(op errorfs.Op) error {
				if strings.Contains(op.Path, "/snapshots/") && op.Kind == errorfs.OpFileWrite {
					once()
					return errBroken
				}
				return nil
			})
			c.net.isolate(uint64(id), false)
			<-failed
			return id
		}, nil},
	"the log cannot be written": {setting{size: 3},
		onDisk("/log/", errBroken, errorfs.OpFileWriteAt, errorfs.OpFileWrite), ofLog},
	"the log cannot be synced": {setting{size: 3},
		onDisk("/log/", errBroken, errorfs.OpFileSyncData, errorfs.OpFileSync), ofLog},
	"bodies cannot be written": {setting{size: 3},
		onDisk("/bodies/", errBroken, errorfs.OpFileWriteAt, errorfs.OpFileWrite), ofLog},
	"bodies cannot be synced": {setting{size: 3},
		onDisk("/bodies/", errBroken, errorfs.OpFileSyncData, errorfs.OpFileSync), ofLog},
	"there is no space for the log": {setting{size: 3},
		onDisk("/log/", syscall.ENOSPC, errorfs.OpFileWriteAt, errorfs.OpFileWrite, errorfs.OpCreate,
			errorfs.OpFilePreallocate), nil},
	"there is no space for bodies": {setting{size: 3},
		onDisk("/bodies/", syscall.ENOSPC, errorfs.OpFileWriteAt, errorfs.OpFileWrite, errorfs.OpCreate,
			errorfs.OpFilePreallocate), nil},
	"there is no descriptor for the log": {setting{size: 3}, onDisk("/log", syscall.EMFILE, opens...), nil},
	"there is no descriptor for bodies":  {setting{size: 3}, onDisk("/bodies", syscall.ENFILE, opens...), nil},
	"there is no descriptor for a snapshot": {setting{size: 3},
		withSnapshot(onDisk("/snapshots", syscall.EMFILE, opens...)), nil},
	"there is no descriptor for whom it met": {setting{size: 3}, func(c *testCluster) protocol.MemberID {
		id := onDisk("d", syscall.EMFILE, opens...)(c)
		require.ErrorIs(c.t, c.running[id].who.met(77, transport.Who{Life: 1, Mark: 1}), syscall.EMFILE)
		return id
	}, nil},
	"there is no descriptor for a snapshot that comes": {setting{size: 3, tune: keepLittle},
		func(c *testCluster) protocol.MemberID {
			id := c.behind()
			waits := make(chan struct{})
			once := sync.OnceFunc(func() { close(waits) })
			var received atomic.Bool
			c.faults[id].set(func(op errorfs.Op) error {
				switch {
				case strings.Contains(op.Path, ".snap") && op.Kind == errorfs.OpRename:
					received.Store(true)
				case received.Load() && slices.Contains(opens, op.Kind) && strings.Contains(op.Path, "/snapshots"):
					once()
					return syscall.EMFILE
				}
				return nil
			})
			c.net.isolate(uint64(id), false)
			<-waits
			return id
		}, nil},
	"it cannot note whom it met": {setting{size: 3}, func(c *testCluster) protocol.MemberID {
		id := onDisk("d/peers.json", errBroken, errorfs.OpCreate, errorfs.OpRename)(c)
		require.ErrorIs(c.t, c.running[id].who.met(77, transport.Who{Life: 1, Mark: 1}), errBroken)
		return id
	}, func(t *testing.T, err error) { require.ErrorIs(t, err, errBroken) }},
}

// TestWhatFailsStopsOneMemberAlone injects each fault while all propose. The member stops with a reason, or continues
// if that is safe. All that it acknowledged is on the others, and they continue.
func TestWhatFailsStopsOneMemberAlone(t *testing.T) {
	testsize.Long(t)
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			inBubble(t, f.setting, func(c *testCluster) {
				c.fill(c.leader(), "before", 3)
				id := f.strike(c)
				r, a := c.running[id], newAnswers()
				for i := range 20 {
					_ = a.propose(r, fmt.Sprintf("command %d", i), make([]byte, 3000*(i%2)))
				}
				a.ask("read", func() error { return r.ReadBarrier(c.t.Context()) })
				if f.why != nil {
					f.why(c.t, c.fails(id))
					synctest.Wait()
				} else {
					<-time.After(2 * testElection)
					require.NoError(c.t, r.Err())
				}
				c.goesOn(id)
				c.faults[id].set(nil)
				if c.running[id] == nil {
					c.start(id)
				}
				c.serves()
				c.saves(id)
				c.until("everybody is told", a.all)
				acked := []string{}
				for name, err := range a.complete(c.t) {
					if name != "read" && (err == nil || errors.Is(err, member.ErrResultUnknown)) {
						acked = append(acked, name)
					}
				}
				c.haveAll(acked, id)
			})
		})
	}
}

// goesOn requires that all members but one take proposals.
func (c *testCluster) goesOn(without protocol.MemberID) {
	c.t.Helper()
	for _, m := range c.members {
		if m.ID != without {
			c.fill(m.ID, fmt.Sprint("goes on ", m.ID), 2)
		}
	}
}

// haveAll requires that all members but one have applied these commands.
func (c *testCluster) haveAll(acked []string, without protocol.MemberID) {
	c.t.Helper()
	for _, m := range c.members {
		if m.ID == without {
			continue
		}
		require.NoError(c.t, c.running[m.ID].ReadBarrier(c.t.Context()))
		for _, command := range acked {
			require.True(c.t, c.machines[m.ID].has(command), "%s at %s", command, m.ID)
		}
	}
}

// saves requires that a member takes another snapshot, and that no files of the failed ones are left.
func (c *testCluster) saves(id protocol.MemberID) {
	c.t.Helper()
	r := c.running[id]
	before := r.metrics.snapshots.Load()
	r.apply.push(apply.ApplyItem{Due: true})
	c.until("a snapshot", func() bool { return r.metrics.snapshots.Load() > before })
	names, err := c.disks[id].List("d/snapshots")
	require.NoError(c.t, err)
	require.NotEmpty(c.t, names)
	for _, name := range names {
		require.True(c.t, strings.HasSuffix(name, ".snap"), name)
	}
}
