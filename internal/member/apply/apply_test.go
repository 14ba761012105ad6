package apply

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// notes is a world that writes down what Apply asks of it, and has one snapshot to give.
type notes struct {
	saved    []member.Meta
	pruned   []protocol.Position
	cuts     int
	meets    int // how often members were asked to meet
	told     []ApplyEvent
	begins   bool // the beginning of an instance is on its way to the log
	received *received
	again    []ApplyItem
	stand    member.Saved
	needs    *order.Cursor
	staged   *received
	merged   []member.Meta // what of a merge is durable
	failed   error         // why nothing came of one
}

func (n *notes) Left(int, int64)                                {}
func (n *notes) Installed()                                     {}
func (n *notes) Again(it ApplyItem)                             { n.again = append(n.again, it) }
func (n *notes) Publish(*Applier) error                         { return nil }
func (n *notes) PublishConfigs(*Applier)                        {}
func (n *notes) Repairing(needs *order.Cursor)                  { n.needs = needs }
func (*notes) Useless()                                         {}
func (n *notes) Reshaped(*Applier, *member.Meta) error          { return nil }
func (n *notes) Beginning() bool                                { return n.begins }
func (n *notes) Cut(*member.Meta, int64)                        { n.cuts++ }
func (n *notes) Save(m member.Meta, _ member.Snapshot, _ int64) { n.saved = append(n.saved, m) }
func (n *notes) Saved(at *member.Saved)                         { n.stand = *at }
func (n *notes) Meet()                                          { n.meets++ }
func (n *notes) Prune(p protocol.Position) error                { n.pruned = append(n.pruned, p); return nil }
func (n *notes) Tell(t ApplyNews)                               { n.told = append(n.told, t.What) }
func (n *notes) Restored(*Applier, protocol.InstanceID, protocol.Index) error {
	return nil
}

func (n *notes) Staged() (member.ReceivedSnapshot, error) {
	if n.staged == nil {
		return nil, errors.New("nothing is staged")
	}
	return n.staged, nil
}

func (n *notes) Merged(at *member.Meta, err error) {
	if n.failed = err; err == nil {
		n.merged = append(n.merged, *at)
	}
}

func (n *notes) Received(protocol.InstanceID, protocol.Index) (member.ReceivedSnapshot, error) {
	if n.received == nil {
		return nil, errors.New("there is none")
	}
	return n.received, nil
}

type received struct {
	io.Reader
	meta member.Meta
}

func (r *received) Close() error      { return nil }
func (r *received) Verify() error     { return nil }
func (r *received) Meta() member.Meta { return r.meta }

// repairable is a history that can be damaged.
type repairable struct {
	membertest.History
	damage error
}

func (r *repairable) Applied() protocol.Position { return 0 }
func (r *repairable) Sync() error                { return r.damage }
func (r *repairable) Damaged() error             { return r.damage }
func (r *repairable) Condemn(cause error)        { r.damage = cause }

func (r *repairable) Apply(c []member.Command) error {
	if r.damage != nil {
		return r.damage
	}
	return r.History.Apply(c)
}

func (r *repairable) Restore(in io.Reader) error {
	r.damage = nil
	return r.History.Restore(in)
}

func single(t *testing.T, sm member.StateMachine, world *notes) *Apply {
	t.Helper()
	meta := member.Meta{Cursor: order.Begin(1, false)}
	return NewApply(NewApplier(sm, meta, membertest.Session, 0, nil), meta.Cursor, 1<<20, world)
}

func commit(index protocol.Index) *ApplyItem {
	return &ApplyItem{Commit: intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{membertest.EntryOf(index, membertest.Sealed(uint64(index), "x"))}}}
}

// TestOneSnapshotAtATime: a snapshot that is wanted while another is written follows that one. The
// one before the last stays.
func TestOneSnapshotAtATime(t *testing.T) {
	world := &notes{}
	p := single(t, &membertest.History{}, world)
	require.NoError(t, p.Do(commit(1)))
	require.Empty(t, world.saved, "too little was applied")
	require.NoError(t, p.Do(&ApplyItem{Due: true}))
	require.NoError(t, p.Do(&ApplyItem{Due: true}))
	require.Len(t, world.saved, 1)
	require.True(t, p.Saving())
	require.NoError(t, p.Do(commit(2)))
	require.NoError(t, p.Do(&ApplyItem{Wrote: &Written{Meta: world.saved[0]}}))
	require.Len(t, world.saved, 2, "it was wanted meanwhile")
	require.Equal(t, 1, world.cuts)
	require.NoError(t, p.Do(&ApplyItem{Wrote: &Written{Meta: world.saved[1]}}))
	require.Equal(t, []protocol.Position{0, 1}, world.pruned)
	require.False(t, p.Saving())
	require.EqualValues(t, 1, world.stand.Oldest.Position, "it stands for the newest")
	require.EqualValues(t, 2, world.stand.Newest.Position)

	require.NoError(t, p.Do(&ApplyItem{Due: true}))
	require.NoError(t, p.Do(&ApplyItem{Wrote: &Written{Meta: world.saved[2], Err: errors.New("no room")}}))
	require.Equal(t, []ApplyEvent{SnapshotWritten, SnapshotWritten, SnapshotFailed}, world.told)
	require.Equal(t, 2, world.cuts)
	require.EqualValues(t, 2, world.stand.Newest.Position)

	require.NoError(t, p.Do(&ApplyItem{Due: true}))
	require.NoError(t, p.Do(&ApplyItem{Wrote: &Written{Meta: world.saved[3]}}))
	require.Equal(t, []protocol.Position{0, 1}, world.pruned,
		"nothing was applied: it replaced the newest, and the one before stays")
	require.EqualValues(t, 1, world.stand.Oldest.Position)
}

// TestASnapshotThatIsWrittenDuringAnInstall is behind the one that is installed, whose logs do not reach back to it. It
// is removed, and until then the oldest one may not be taken for newer.
func TestASnapshotThatIsWrittenDuringAnInstall(t *testing.T) {
	world := &notes{}
	p := single(t, &membertest.History{}, world)
	require.NoError(t, p.Do(commit(1)))
	require.NoError(t, p.Do(&ApplyItem{Due: true}))
	require.Len(t, world.saved, 1)
	ahead := p.Meta()
	ahead.Cursor.Position, ahead.Cursor.Points[0].Index = 9, 9
	world.received = &received{strings.NewReader(""), ahead}
	install := &ApplyItem{Install: &protocol.Base{Index: 9}, Commit: intake.CommittedEntries{Instance: 1}}
	require.NoError(t, p.Do(install))
	require.EqualValues(t, 9, world.stand.Newest.Position)
	require.Zero(t, world.stand.Oldest.Position, "the snapshot at 1 may be on the disk")
	require.NoError(t, p.Do(&ApplyItem{Wrote: &Written{Meta: world.saved[0]}}))
	require.Equal(t, []protocol.Position{9, 9}, world.pruned)
	require.EqualValues(t, 9, world.stand.Newest.Position)
	require.EqualValues(t, 9, world.stand.Oldest.Position)
	require.Zero(t, world.cuts)
	require.False(t, p.Saving())
}

// TestASnapshotWaitsForBeginnings: the log must know of all instances that a snapshot names.
func TestASnapshotWaitsForBeginnings(t *testing.T) {
	world := &notes{begins: true}
	p := NewApply(NewApplier(&membertest.History{}, membertest.WovenMeta(2), membertest.Session, 0, nil),
		membertest.WovenMeta(2).Cursor, 1<<20, world)
	require.NoError(t, p.Do(&ApplyItem{Commit: intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{membertest.ReshapeAt(1, 1)}}}))
	require.NoError(t, p.Do(&ApplyItem{Commit: intake.CommittedEntries{Instance: 2,
		Entries: []protocol.Entry{membertest.SkipAt(1, 1)}}}))
	require.NoError(t, p.Do(&ApplyItem{Due: true}))
	require.Empty(t, world.saved)
	world.begins = false
	require.NoError(t, p.Do(&ApplyItem{Begun: true}))
	require.Len(t, world.saved, 1)
}

// TestADamagedStateWaitsForAnother: nothing is applied or shown meanwhile. A state that is behind
// does not take its place.
func TestADamagedStateWaitsForAnother(t *testing.T) {
	world := &notes{}
	sm := &repairable{}
	p := single(t, sm, world)
	require.NoError(t, p.Do(commit(1)))
	ahead := p.Meta()
	sm.damage = errors.New("a key is damaged")
	require.NoError(t, p.Do(commit(2)))
	require.True(t, p.Stuck())
	require.EqualValues(t, 2, world.needs.Position)
	var shown error
	require.NoError(t, p.Do(&ApplyItem{View: func(v StateView) { shown = v.Err }}))
	require.ErrorIs(t, shown, sm.damage)
	require.NoError(t, p.Do(&ApplyItem{Due: true}))
	require.Empty(t, world.saved)

	require.NoError(t, p.Do(&ApplyItem{Repair: true}))
	world.received = &received{strings.NewReader(""), ahead}
	require.NoError(t, p.Do(&ApplyItem{Repair: true}))
	require.Equal(t, []ApplyEvent{StateDamaged, StateUseless, StateUseless}, world.told)
	require.True(t, p.Stuck())

	world.received = &received{strings.NewReader(""), p.Meta()}
	require.NoError(t, p.Do(&ApplyItem{Repair: true}))
	require.Contains(t, world.told, StateReplaced)
	require.False(t, p.Stuck())
	require.Nil(t, world.needs)
	require.Len(t, world.saved, 1, "the log alone does not lead to it")
}

// hasty is a state machine that does not read a state to its end.
type hasty struct{ membertest.History }

func (h *hasty) Restore(r io.Reader) error {
	_, err := r.Read(make([]byte, 1))
	return err
}

// TestTheRestOfAStateIsRead before anything is applied to the state: if it is damaged, so may be what was read.
func TestTheRestOfAStateIsRead(t *testing.T) {
	p := single(t, &hasty{}, &notes{})
	ahead := p.Meta()
	ahead.Cursor.Position, ahead.Cursor.Points[0].Index = 10, 10
	damage := &protocol.CorruptError{What: "state"}
	require.Equal(t, damage, p.Install(ahead, io.MultiReader(strings.NewReader("state"), iotest.ErrReader(damage))))
	require.Zero(t, p.Cursor().Position)
	require.NoError(t, p.Install(ahead, strings.NewReader("state")))
	require.EqualValues(t, 10, p.Cursor().Position)
}
