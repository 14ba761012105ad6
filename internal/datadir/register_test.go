package datadir

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/durable"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/vfs/errorfs"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// counter returns distinct numbers, in place of random ones.
func counter() func() uint64 {
	n := uint64(0)
	return func() uint64 { n++; return n<<32 | n }
}

// incarnations enters a directory a given number of times, and returns the member's identity after that.
func incarnations(t *testing.T, fs vfs.FS, self protocol.MemberID, times int,
	chance func() uint64) (own cluster.OwnIdentity) {
	t.Helper()
	for range times {
		var err error
		var lock interface{ Close() error }
		own, lock, err = Enter(fs, "d", Owner{Cluster: 7, Member: self}, chance)
		require.NoError(t, err)
		require.NoError(t, lock.Close())
	}
	return own
}

// link performs the handshake of two members. It returns the reason for which each refuses the other, if it does.
func link(a, b *cluster.Register, idA, idB protocol.MemberID) (atA, atB error) {
	takesA, takesB := a.Takes(idB), b.Takes(idA)
	atA, atB = a.Meet(idB, b.Who(), takesB), b.Meet(idA, a.Who(), takesA)
	if atA == nil && atB == nil {
		a.Note(idB, b.Who())
		b.Note(idA, a.Who())
	}
	return atA, atB
}

func TestAWipedMemberIsAStrangerAndLearnsIt(t *testing.T) {
	chance := counter()
	a := cluster.NewRegister(incarnations(t, vfs.NewMem(), 1, 1, chance))
	b := cluster.NewRegister(incarnations(t, vfs.NewMem(), 2, 3, chance))
	atA, atB := link(a, b, 1, 2)
	require.NoError(t, atA)
	require.NoError(t, atB)

	wiped := cluster.NewRegister(incarnations(t, vfs.NewMem(), 2, 9, chance))
	atA, atB = link(a, wiped, 1, 2)
	var stranger *cluster.StrangerError
	require.ErrorAs(t, atA, &stranger)
	require.EqualValues(t, 2, stranger.Member)
	var forgotten *cluster.ForgottenError
	require.ErrorAs(t, atB, &forgotten)
	require.EqualValues(t, 1, forgotten.By)
	require.ErrorContains(t, forgotten, "member 2 has already been bootstrapped")
	require.ErrorContains(t, forgotten, "braid ctl member remove 2")
	atA, _ = link(a, b, 1, 2)
	require.NoError(t, atA, "the one that was known still is")
}

func TestAnOldCopyIsAStrangerHoweverOftenItStarts(t *testing.T) {
	chance := counter()
	fs := vfs.NewMem()
	a := cluster.NewRegister(incarnations(t, vfs.NewMem(), 1, 1, chance))
	incarnations(t, fs, 2, 3, chance)
	copied := vfs.NewMem()
	require.NoError(t, vfs.Copy(fs, "d", copied, "d"))
	b := cluster.NewRegister(incarnations(t, fs, 2, 1, chance))
	_, atB := link(a, b, 1, 2)
	require.NoError(t, atB)

	var forgotten *cluster.ForgottenError
	for range 5 { // the first incarnation has the number of the incarnation that a knows; the others have higher numbers
		old := cluster.NewRegister(incarnations(t, copied, 2, 1, chance))
		_, atB = link(a, old, 1, 2)
		require.ErrorAs(t, atB, &forgotten)
		require.ErrorContains(t, forgotten, "an old copy")
	}
	later := cluster.NewRegister(incarnations(t, fs, 2, 7, chance))
	atA, atB := link(a, later, 1, 2)
	require.NoError(t, atA)
	require.NoError(t, atB)
	atA, _ = link(a, b, 1, 2)
	require.Error(t, atA, "an earlier life does not come back")
}

func TestTheMembershipSaysWhoAMemberIs(t *testing.T) {
	chance := counter()
	a := cluster.NewRegister(incarnations(t, vfs.NewMem(), 1, 1, chance))
	b := cluster.NewRegister(incarnations(t, vfs.NewMem(), 2, 1, chance))
	wiped := cluster.NewRegister(incarnations(t, vfs.NewMem(), 2, 1, chance))
	c := &protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2, Log: b.Who().Log}}}
	strangers, err := a.Learn(c)
	require.NoError(t, err)
	require.Empty(t, strangers)
	atA, atB := link(a, wiped, 1, 2) // a does not know it
	require.Error(t, atA)
	require.Error(t, atB)
	_, err = wiped.Learn(c)
	var forgotten *cluster.ForgottenError
	require.ErrorAs(t, err, &forgotten)
	_, err = b.Learn(c)
	require.NoError(t, err)
	atA, atB = link(a, b, 1, 2)
	require.NoError(t, atA)
	require.NoError(t, atB)

	// A member that knew the wrong one first learns the right one from the membership.
	d := cluster.NewRegister(incarnations(t, vfs.NewMem(), 4, 1, chance))
	_, _ = link(d, wiped, 4, 2)
	strangers, err = d.Learn(c)
	require.NoError(t, err)
	require.Equal(t, []protocol.MemberID{2}, strangers)
	require.Error(t, d.Meet(2, wiped.Who(), protocol.Who{}))
	require.NoError(t, d.Meet(2, b.Who(), protocol.Who{}))
}

func TestTheLeaderNotesWhoIsNotNoted(t *testing.T) {
	chance := counter()
	a := cluster.NewRegister(incarnations(t, vfs.NewMem(), 1, 1, chance))
	b := cluster.NewRegister(incarnations(t, vfs.NewMem(), 2, 1, chance))
	link(a, b, 1, 2)
	st := &protocol.Status{Role: protocol.Leader,
		Config: protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}}}
	changes := a.Publish(st)
	require.Len(t, changes, 2)
	for _, ch := range changes {
		st.Config.Find(ch.Member.ID).Amend(&ch.Member)
		st.Config.Lineage += ch.Lineage
	}
	require.NotZero(t, st.Config.Lineage)
	require.Equal(t, b.Who().Log, st.Config.Find(2).Log)
	require.Empty(t, a.Publish(st), "once")
	st.Config.Find(2).Amend(&protocol.Member{ID: 2, Log: a.Who().Log})
	require.Equal(t, b.Who().Log, st.Config.Find(2).Log, "for ever")
	st.Role = protocol.Follower
	require.Empty(t, b.Publish(st))
}

func TestARegisterIsKept(t *testing.T) {
	fs, chance := vfs.NewMem(), counter()
	own := incarnations(t, fs, 1, 1, chance)
	r, err := LoadRegister(fs, "d", own)
	require.NoError(t, err)
	who := protocol.Who{Log: protocol.LogID{9}, Incarnation: 4, Mark: 5}
	require.True(t, r.Note(3, who))
	require.False(t, r.Note(3, who))
	require.NoError(t, SaveRegister(fs, "d", r))
	again, err := LoadRegister(fs, "d", own)
	require.NoError(t, err)
	require.Equal(t, who, again.Takes(3))
	require.Zero(t, again.Takes(4))
	require.False(t, again.Note(3, protocol.Who{Log: who.Log, Incarnation: 3, Mark: 1}), "late")
	require.True(t, again.Note(3, protocol.Who{Log: who.Log, Incarnation: 6, Mark: 1}))
}

// On a full disk the ballast makes space for the register, again and again, and for the state with which the cluster
// began. Without it the error is that of a full disk, and the files are as before.
func TestTheBallastMakesSpaceForTheRegister(t *testing.T) {
	mem, full, taken := vfs.NewMem(), false, false
	c := birthConfig(errorfs.Wrap(mem, errorfs.InjectorFunc(func(o errorfs.Op) error {
		_, err := mem.Stat("/d/" + ballastFile)
		if full && o.Kind == errorfs.OpFileWriteAt && (err == nil || taken) {
			return syscall.ENOSPC
		}
		return nil
	})))
	c.Dir, c.Join, c.Members, c.Machine = "/d", true, nil, InMemory(&text{})
	o, err := Open(c)
	require.NoError(t, err)
	full = true
	for i := range uint64(3) {
		require.True(t, o.Register.Note(3, protocol.Who{Log: protocol.LogID{9}, Incarnation: 4 + i, Mark: 5}))
		require.NoError(t, o.SaveRegister(o.Register))
		_, err = mem.Stat("/d/" + ballastFile)
		require.NoError(t, err)
	}
	require.NoError(t, o.RecordBirth("x"))
	require.NoError(t, mem.Remove("/d/"+ballastFile))
	taken = true
	require.True(t, o.Register.Note(3, protocol.Who{Log: protocol.LogID{9}, Incarnation: 9, Mark: 5}))
	require.ErrorAs(t, o.SaveRegister(o.Register), new(*wal.FullError))
	r, err := LoadRegister(mem, "/d", o.Own)
	require.NoError(t, err)
	require.Equal(t, uint64(6), r.Takes(3).Incarnation)
	full = false
	require.NoError(t, o.Close())
}

// A directory of a program without log identities gets one. The count of its incarnations continues.
func TestADirectoryOfBeforeGetsAnIdentity(t *testing.T) {
	fs := vfs.NewMem()
	require.NoError(t, durable.MakeDir(fs, "d", 0o700))
	require.NoError(t, writeIdentity(fs, "d", identity{Format: 1, Cluster: 7, Member: 1, Incarnation: 41}))
	own := incarnations(t, fs, 1, 1, counter())
	require.False(t, own.Log.IsZero())
	require.EqualValues(t, 42, own.Incarnation)
	require.Equal(t, own.Log, incarnations(t, fs, 1, 1, counter()).Log)
}

// Two logs have one member's id. A proposal of one is never mistaken for a proposal of the other.
func TestSessionsOfAnotherLogAreApart(t *testing.T) {
	chance := counter()
	first := incarnations(t, vfs.NewMem(), 1, 5, chance)
	wiped := incarnations(t, vfs.NewMem(), 1, 1, chance)
	s := apply.NewSessions(nil)
	entry := func(own cluster.OwnIdentity, seq uint64) *protocol.Entry {
		return &protocol.Entry{ID: protocol.ProposalID{Session: own.Session(true), Seq: seq}, Count: 1, Low: 1}
	}
	require.True(t, s.Admit(1, entry(first, 1)))
	require.True(t, s.Admit(1, entry(wiped, 1)), "not a repetition")
	require.False(t, s.Admit(1, entry(wiped, 1)))
	require.False(t, s.Admit(1, entry(first, 1)), "still one")
	require.True(t, s.Admit(1, entry(first, 2)))
	require.NoError(t, s.Check())
	again := apply.NewSessions(s.States())
	require.False(t, again.Admit(1, entry(wiped, 1)))
	require.False(t, again.Admit(1, entry(first, 1)))
}

// TestADirectoryKnowsThatItWasBornWithLineages from its first incarnation on, even if power is lost before it has
// connected to any member. One of an earlier version never does.
func TestADirectoryKnowsThatItWasBornWithLineages(t *testing.T) {
	fs, chance := vfs.NewMem(), counter()
	for range 3 {
		require.True(t, incarnations(t, fs, 1, 1, chance).Born)
	}
	old := vfs.NewMem()
	require.NoError(t, durable.MakeDir(old, "d", 0o700))
	require.NoError(t, writeIdentity(old, "d",
		identity{Format: formatSingle, Cluster: 7, Member: 1, Log: protocol.LogID{1}, Incarnation: 4,
			Marks: []uint64{1, 2, 3, 4}}))
	for range 2 {
		require.False(t, incarnations(t, old, 1, 1, chance).Born)
	}
}

// TestAListIsThatOfTheIncarnationWhichFoundsTheLog: a first incarnation may end before it has founded the log.
func TestAListIsThatOfTheIncarnationWhichFoundsTheLog(t *testing.T) {
	fs, chance := vfs.NewMem(), counter()
	enter := func(founders uint64, join bool) uint64 {
		own, lock, err := Enter(fs, "d", Owner{Cluster: 7, Member: 1, Founders: founders, Join: join}, chance)
		require.NoError(t, err)
		require.NoError(t, lock.Close())
		return own.Founders
	}
	require.EqualValues(t, 3, enter(3, false))
	require.EqualValues(t, 0, enter(0, true))
	require.EqualValues(t, 5, enter(5, false))
	s, err := OpenSnapshots(fs, "d/"+snapshotDir)
	require.NoError(t, err)
	require.EqualValues(t, 3, enter(3, false))
	require.NoError(t, s.Write(SnapshotHeader{Meta: member.Bootstrap(order.Begin(1, false), []protocol.Member{{ID: 1}})},
		nil))
	require.EqualValues(t, 3, enter(5, false))
	require.EqualValues(t, 3, enter(0, true))
}
