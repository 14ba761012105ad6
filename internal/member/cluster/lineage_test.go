package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// TestLineagesAreTold: a member takes over the lineage that it is told if it knows none, durably, and has no link with
// a member of another one.
func TestLineagesAreTold(t *testing.T) {
	h, disk := handshakesOf(1)
	require.Zero(t, h.Lineage())
	require.NoError(t, h.Relate(2, 0, 0), "a member of an earlier version, or one that knows none")
	disk.err = &wal.FullError{}
	require.Error(t, h.Relate(2, 5, 0))
	require.Zero(t, h.Lineage())
	require.NoError(t, disk.failed)
	disk.err = nil
	require.NoError(t, h.Relate(2, 5, 0))
	require.EqualValues(t, 5, h.Lineage())
	require.NoError(t, h.Relate(3, 5, 0))
	var other *member.LineageError
	require.ErrorAs(t, h.Relate(4, 6, 0), &other)
	require.Equal(t, member.LineageError{Member: 4, Known: 5, Is: 6}, *other)
	require.NoError(t, disk.failed, "who refuses goes on")

	content, err := h.register.Content()
	require.NoError(t, err)
	again, err := ReadRegister(h.register.own, content)
	require.NoError(t, err)
	require.EqualValues(t, 5, again.lineage)
	require.NoError(t, again.Descends(5))
	require.ErrorAs(t, again.Descends(6), &other)

	h.Descends(0)
	h.Descends(5)
	require.NoError(t, disk.failed)
	h.Descends(6)
	require.ErrorAs(t, disk.failed, &other, "its own log is of another lineage than it was told")
	h.register.Mutant = member.MutantAnyLineage
	require.NoError(t, h.Relate(4, 6, 0))
}

// TestWhoseLineageIsProposed: a log that began with this version gets a lineage of its own, whatever its leader was
// told. A log that may have lost it, through a leader of an earlier version, gets it again.
func TestWhoseLineageIsProposed(t *testing.T) {
	proposesFor := func(r *Register, log protocol.LogID) uint64 {
		st := &protocol.Status{Role: protocol.Leader, Config: protocol.Config{Members: []protocol.Member{{ID: 1, Log: log}}}}
		changes := r.Publish(st)
		require.Len(t, changes, 1)
		next, reason := st.Config.Changed(changes)
		require.Zero(t, reason)
		require.Equal(t, changes[0].Lineage, next.Lineage)
		st.Config = next
		require.Empty(t, r.Publish(st), "once")
		changes[0].Lineage++
		after, _ := next.Changed(changes)
		require.Equal(t, next.Lineage, after.Lineage, "for ever")
		return next.Lineage
	}
	proposes := func(r *Register) uint64 { return proposesFor(r, protocol.LogID{}) }
	born := func(mark uint64) *Register {
		return NewRegister(OwnIdentity{Member: 1, Log: protocol.LogID{1}, Incarnation: 1, Marks: []uint64{mark}, Born: true})
	}
	own := proposes(born(7))
	require.Equal(t, own, proposes(born(7)))
	require.NotEqual(t, own, proposes(born(8)), "a copy of the directory")
	r := born(7)
	_, err := r.relate(2, 5)
	require.NoError(t, err)
	require.Equal(t, own, proposes(r), "told by a member of another log")
	require.EqualValues(t, 5, proposesFor(r, r.own.Log), "it joined, and a leader of an earlier version named it")
	require.NoError(t, r.Descends(5))
	require.EqualValues(t, 5, proposes(r), "the log had it")
	old := born(7)
	old.born, old.lineage = false, 5
	require.EqualValues(t, 5, proposes(old), "the log may have had it")
}

// TestAFounderWithoutALineageTalksToFounders only.
func TestAFounderWithoutALineageTalksToFounders(t *testing.T) {
	h, _ := handshakesOf(1)
	of := func(ids ...protocol.MemberID) (c []protocol.Config) {
		c = make([]protocol.Config, 1)
		for _, id := range ids {
			c[0].Members = append(c[0].Members, protocol.Member{ID: id})
		}
		return c
	}
	require.Zero(t, h.Admit(of(), 2), "it joins")
	require.Equal(t, transport.ReasonLineage, h.Admit(of(1), 2))
	require.Zero(t, h.Admit(of(1, 3), 2), "a log of an earlier version may have had other members since")
	h.register.born = true
	require.Equal(t, transport.ReasonLineage, h.Admit(of(1, 3), 2))
	require.Zero(t, h.Admit(of(1, 3), 3))
	require.NoError(t, h.Relate(3, 5, 0))
	require.Zero(t, h.Admit(of(1, 3), 2))
}

// TestAFounderKnowsItsLogsLineageBeforeItIsApplied: members are added after the log has a lineage, so one that is added
// tells the lineage that the log names. Who is only named at the start tells a founder nothing. Founders do.
func TestAFounderKnowsItsLogsLineageBeforeItIsApplied(t *testing.T) {
	founders := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}}}
	grown := protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}, Lineage: 5}
	var other *member.LineageError
	for name, c := range map[string]struct {
		born   bool
		linked protocol.Config
		id     protocol.MemberID
		told   uint64
		refuse bool
	}{
		"added, another log":              {true, grown, 3, 6, true},
		"added, this log":                 {true, grown, 3, 5, false},
		"added, of an earlier version":    {true, grown, 3, 0, false},
		"a founder":                       {true, grown, 2, 6, false},
		"named at the start, another log": {true, founders, 4, 6, true},
		"named at the start, this log":    {true, grown, 4, 5, false},
		"added by an earlier version":     {true, protocol.Config{Members: grown.Members}, 3, 6, false},
		"the log of an earlier version":   {false, grown, 3, 6, false},
	} {
		h, _ := handshakesOf(1)
		h.register.born = c.born
		h.Learn(&c.linked, &founders, false)
		if err := h.Relate(c.id, c.told, 0); c.refuse {
			require.ErrorAs(t, err, &other, name)
			require.Zero(t, h.Lineage(), name)
		} else {
			require.NoError(t, err, name)
			require.Equal(t, c.told, h.Lineage(), name)
		}
		h.register.Mutant, h.register.lineage = member.MutantAnyLineage, 0
		h.Learn(&c.linked, &founders, false)
		require.NoError(t, h.Relate(c.id, c.told, 0), name)
	}
}
