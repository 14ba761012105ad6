package lifecycle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// mail are instances that only note what they are sent.
type mail struct {
	got   map[protocol.InstanceID][]uint64
	grown bool
	log   []string // what was asked for since it was looked at
}

func (m *mail) Make(log member.InstanceLog) (protocol.InstanceID, error) { return log.Instance, nil }
func (m *mail) Grow() error                                              { m.grown = true; return nil }
func (m *mail) Submit(records []wal.Record) {
	for _, r := range records {
		if base := r.Parts[0]; r.Kind == wal.KindBase {
			if b, err := member.DecodeBase(base); err == nil && len(b.Ended) > 0 {
				m.log = append(m.log, fmt.Sprintf("first record of %d after %v", r.Instance, b.Ended))
			}
		}
	}
	if !m.grown {
		panic("an instance begins in a directory that an earlier version would open")
	}
}
func (m *mail) First(protocol.InstanceID) protocol.MemberID { return 0 }
func (m *mail) Close(id protocol.InstanceID) {
	m.log = append(m.log, fmt.Sprintf("close %d", id))
}
func (m *mail) Run(protocol.InstanceID)    {}
func (m *mail) Retire(protocol.InstanceID) {}
func (m *mail) Kept(func(*body.Kept))      {}
func (m *mail) Known(_ protocol.Position, _, _, _ []protocol.InstanceID) {
}
func (m *mail) Deliver(i protocol.InstanceID, f protocol.Frame) {
	msg, err := f.Decode(nil)
	if err != nil {
		panic(err)
	}
	m.got[i] = append(m.got[i], msg.Context)
}

// said is a message of a number of bytes for an instance.
func said(instance protocol.InstanceID, context uint64, bytes int) protocol.Frame {
	body := make([]byte, max(0, bytes-200))
	m := protocol.Message{Type: protocol.MsgFetchResp, Instance: instance, Context: context, Blob: body}
	if len(body) > 0 {
		m.Holdings = []protocol.Holding{{Digest: protocol.Digest(body)}}
	}
	return append(m.AppendHoldings(m.AppendHead(nil)), body...)
}

// What is said to an instance before it begins here is not lost, within a bound.
func TestMessagesWaitForTheirInstance(t *testing.T) {
	meta := membertest.WovenMeta(2)
	found := &FoundInstances{InForce: []member.InstanceLog{{Instance: 1}, {Instance: 2}}, cursor: meta.Cursor}
	host := &mail{got: map[protocol.InstanceID][]uint64{}}
	n := NewInstances[protocol.InstanceID](found)
	require.NoError(t, n.Start(host))
	comes := func(instance protocol.InstanceID, context uint64, bytes int) (hosted bool) {
		_, hosted = n.Receive(said(instance, context, bytes))
		require.NoError(t, n.Check())
		return hosted
	}
	require.True(t, comes(2, 1, 100), "it began in the meantime")
	require.False(t, comes(3, 1, 100))
	require.False(t, comes(4, 2, 100))
	require.False(t, comes(3, 3, earlyBytes-1500))
	require.Zero(t, n.Dropped)
	require.False(t, comes(3, 4, 1000), "there is no room")
	require.False(t, comes(3, 5, 50), "less fits")
	require.False(t, comes(3+protocol.MaxInstances, 6, 1), "so many cannot begin")
	require.EqualValues(t, 2, n.Dropped)

	p := apply.NewPlanner(&meta)
	p.Committed(1, []protocol.Entry{membertest.ReshapeAt(1, 3)})
	p.Committed(2, []protocol.Entry{membertest.SkipAt(1, 1)})
	changed, err := n.Carry(p.Take())
	require.NoError(t, err)
	require.True(t, changed)
	require.True(t, n.Beginning())
	n.Begun()
	require.False(t, n.Beginning())
	require.Equal(t, map[protocol.InstanceID][]uint64{3: {1, 3, 5}}, host.got, "in their order")
	require.True(t, comes(3, 7, 1))
	require.Positive(t, n.early.bytes, "the fourth may still begin")

	// A snapshot stands for all that the fourth instance did.
	later := apply.NewApplier(&membertest.History{}, membertest.WovenMeta(2), membertest.Session, 0, nil)
	require.NoError(t, later.Apply(intake.CommittedEntries{Instance: 1,
		Entries: []protocol.Entry{membertest.ReshapeAt(1, 4), membertest.ReshapeAt(2, 2)}}))
	require.NoError(t, later.Apply(intake.CommittedEntries{Instance: 2,
		Entries: []protocol.Entry{membertest.SkipAt(1, 1), membertest.SkipAt(2, 2)}}))
	for id := range protocol.InstanceID(2) {
		require.NoError(t, later.Apply(intake.CommittedEntries{Instance: id + 3,
			Entries: []protocol.Entry{membertest.SkipAt(1, 2)}}))
	}
	behind := later.Meta()
	p.Follow(&behind)
	plan := p.Take()
	changed, err = n.Carry(plan)
	require.NoError(t, err)
	require.True(t, changed)
	require.Nil(t, p.Take())
	changed, err = n.Carry(plan)
	require.NoError(t, err)
	require.False(t, changed, "it is carried out")
	require.Zero(t, n.early.bytes)
	require.False(t, comes(4, 8, 1))
	require.EqualValues(t, 3, n.Dropped)
	require.NoError(t, n.Check())
}

// TestOtherInstancesAreExpectedInASingleLog: others may join the one with which a log began.
func TestOtherInstancesAreExpectedInASingleLog(t *testing.T) {
	meta := member.Bootstrap(order.Begin(1, false), nil)
	n := NewInstances[protocol.InstanceID](&FoundInstances{InForce: []member.InstanceLog{{Instance: 1}},
		cursor: meta.Cursor})
	require.NoError(t, n.Start(&mail{}))
	_, hosted := n.Receive(said(2, 1, 1))
	require.False(t, hosted)
	require.NotZero(t, n.early.bytes)
	_, hosted = n.Receive(said(2+protocol.MaxInstances, 1, 1))
	require.False(t, hosted)
	require.EqualValues(t, 1, n.Dropped)
}

func TestAMemberAsksForASnapshotWhereOthersHaveOtherInstancesForLong(t *testing.T) {
	meta := member.Bootstrap(order.Begin(1, false), nil)
	n := NewInstances[protocol.InstanceID](&FoundInstances{InForce: []member.InstanceLog{{Instance: 1}},
		cursor: meta.Cursor})
	require.NoError(t, n.Start(&mail{}))
	f := said(7+protocol.MaxInstances, 1, 100)
	ask := func(now time.Duration) protocol.InstanceID { return n.Behind(f, now, time.Second) }
	require.Zero(t, ask(0), "its own log may lead there")
	require.Zero(t, ask(time.Second))
	require.EqualValues(t, 1, ask(3*time.Second))
	require.Zero(t, ask(4*time.Second), "it has asked")
	require.EqualValues(t, 1, ask(5*time.Second))
}
