package apply

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// tally is derived from a log: how many commands it has.
type tally struct{ commands int }

func (c *tally) Apply(e *protocol.Entry) { c.commands += int(e.Count) }

func (c *tally) Section() protocol.Section {
	return protocol.Section{Name: "tally", Version: 2, Data: strconv.AppendInt(nil, int64(c.commands), 10)}
}

func (c *tally) Restore(s protocol.Section) (err error) {
	if err = s.Expect("tally", 2); err == nil {
		c.commands, err = strconv.Atoi(string(s.Data))
	}
	return err
}

func deriveTally(protocol.Config) protocol.Derived { return &tally{} }

// counting is an applier that begins where meta stands.
func counting(t *testing.T, sm member.StateMachine, meta member.Meta) *Applier {
	a := NewApplier(sm, meta, membertest.Session, 0, nil)
	require.NoError(t, a.Derive(deriveTally, &meta))
	require.NoError(t, a.Check())
	return a
}

func tallyOf(instance protocol.InstanceID, commands int) member.SectionState {
	return member.SectionState{Instance: instance, Section: (&tally{commands}).Section()}
}

// asRead is a meta as it is read from a file, or from a stream.
func asRead(t *testing.T, m member.Meta) (read member.Meta) {
	b, err := json.Marshal(m)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &read))
	return read
}

func feed(t *testing.T, a *Applier, instance protocol.InstanceID, entries ...protocol.Entry) {
	t.Helper()
	require.NoError(t, a.Apply(intake.CommittedEntries{Instance: instance, Entries: entries}))
}

// TestSectionsGoWithSnapshots: of each instance, as far as it is applied. A start and an install continue
// from there.
func TestSectionsGoWithSnapshots(t *testing.T) {
	var got []string
	one, two, three := membertest.OneCommand(1, "one", &got), membertest.OneCommand(2, "two", &got),
		membertest.OneCommand(3, "three", &got)
	a := counting(t, &membertest.History{}, membertest.WovenMeta(2))
	require.Empty(t, a.Meta().Sections, "nothing is applied")
	feed(t, a, 1, membertest.EntryOf(1, one), membertest.EntryOf(2, three))
	require.Equal(t, []member.SectionState{tallyOf(1, 1)}, a.Meta().Sections,
		"the second one waits for the other instance")
	feed(t, a, 2, membertest.EntryOf(1, two))
	meta := asRead(t, a.Meta())
	require.Equal(t, []member.SectionState{tallyOf(1, 2), tallyOf(2, 1)}, meta.Sections)
	require.Equal(t, tallyOf(2, 1).Section, meta.Base(2).Section, "the core is told")

	restarted := counting(t, &membertest.History{}, meta)
	behind := counting(t, &membertest.History{}, membertest.WovenMeta(2))
	require.NoError(t, behind.Install(meta, strings.NewReader("")))
	for _, b := range []*Applier{a, restarted, behind} {
		feed(t, b, 2, membertest.EntryOf(2, membertest.OneCommand(4, "four", &got)))
		require.Equal(t, []member.SectionState{tallyOf(1, 2), tallyOf(2, 2)}, b.Meta().Sections)
		require.NoError(t, b.Check())
	}
}

// TestSectionsOfInstancesThatComeAndGo: a retired instance has none, and a new one begins at nothing.
func TestSectionsOfInstancesThatComeAndGo(t *testing.T) {
	var got []string
	a := counting(t, &membertest.History{}, membertest.WovenMeta(2))
	feed(t, a, 1, membertest.EntryOf(1, membertest.OneCommand(1, "one", &got)), membertest.ReshapeAt(2, 1))
	feed(t, a, 2, membertest.EntryOf(1, membertest.OneCommand(2, "two", &got)),
		membertest.EntryOf(2, membertest.OneCommand(3, "three", &got)))
	require.Equal(t, []member.SectionState{tallyOf(1, 1)}, a.Meta().Sections, "the second instance is retired")
	feed(t, a, 1, membertest.ReshapeAt(3, 2))
	feed(t, a, 1, membertest.EntryOf(4, membertest.OneCommand(4, "four", &got)))
	feed(t, a, 3, membertest.EntryOf(1, membertest.OneCommand(5, "five", &got)))
	require.Equal(t, []member.SectionState{tallyOf(1, 2), tallyOf(3, 1)}, a.Meta().Sections, "a new one begins at nothing")
}

// TestOnlySomeInstancesDerive: an instance with another core may derive nothing.
func TestOnlySomeInstancesDerive(t *testing.T) {
	derive := func(first protocol.Config) protocol.Derived {
		if first.Profile.Core != "counting" {
			return nil
		}
		return &tally{}
	}
	var got []string
	begin := membertest.WovenMeta(2)
	begin.Others[0].Profile.Core = "counting"
	a := NewApplier(&membertest.History{}, begin, membertest.Session, 0, nil)
	require.NoError(t, a.Derive(derive, &begin))
	feed(t, a, 1, membertest.EntryOf(1, membertest.OneCommand(1, "one", &got)))
	feed(t, a, 2, membertest.EntryOf(1, membertest.OneCommand(2, "two", &got)))
	require.NoError(t, a.Check())
	meta := asRead(t, a.Meta())
	require.Equal(t, []member.SectionState{tallyOf(2, 1)}, meta.Sections)
	require.NoError(t, meta.CheckSections(derive))

	behind := NewApplier(&membertest.History{}, begin, membertest.Session, 0, nil)
	require.NoError(t, behind.Derive(derive, &begin))
	require.NoError(t, behind.Install(meta, strings.NewReader("")))
	require.Equal(t, meta.Sections, behind.Meta().Sections)
	require.NoError(t, behind.Check())

	meta.Sections = []member.SectionState{tallyOf(1, 1), tallyOf(2, 1)}
	require.ErrorContains(t, meta.CheckSections(derive),
		`instance 1: section "tally", version 2, of the snapshot is not known`)
	meta.Sections = nil
	require.ErrorContains(t, meta.CheckSections(derive), `instance 2: section "tally" of the snapshot is missing`)
}

// begun is a tally that knows the configuration with which its instance began.
type begun struct {
	tally
	first protocol.Config
}

// TestDerivedStateBeginsWithTheFirstConfiguration: that of the base at index 0, and for an instance that a reshape
// begins the one that is active there.
func TestDerivedStateBeginsWithTheFirstConfiguration(t *testing.T) {
	derive := func(c protocol.Config) protocol.Derived { return &begun{first: c} }
	firsts := func(a *Applier) (out [][]protocol.MemberID) {
		for i := range a.Instances {
			out = append(out, a.Instances[i].derived.(*begun).first.All())
		}
		return out
	}
	applier := func(meta member.Meta) *Applier {
		a := NewApplier(&membertest.History{}, meta, membertest.Session, 0, nil)
		require.NoError(t, a.Derive(derive, &meta))
		return a
	}
	ids := func(ids ...protocol.MemberID) []protocol.MemberID { return append([]protocol.MemberID{}, ids...) }
	require.Equal(t, [][]protocol.MemberID{ids()}, firsts(applier(member.Bootstrap(order.Begin(1, true), nil))),
		"nobody told who is a member")

	a := applier(member.Bootstrap(order.Begin(2, true), []protocol.Member{{ID: 1}, {ID: 2}}))
	require.Equal(t, [][]protocol.MemberID{ids(1, 2), ids(1, 2)}, firsts(a))
	more := protocol.Entry{Kind: protocol.EntryConfig,
		Payload: protocol.EncodeConfig(protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}})}
	more.SealPayload()
	more.Seal(1, 1, make([]byte, protocol.HeadSize))
	feed(t, a, 1, more, membertest.ReshapeAt(2, 3), membertest.SkipAt(3, 3))
	feed(t, a, 2, membertest.SkipAt(1, 3))
	require.Equal(t, [][]protocol.MemberID{ids(1, 2), ids(1, 2), ids(1, 2, 3)}, firsts(a))
	require.NoError(t, a.Check())

	meta := asRead(t, a.Meta())
	require.Zero(t, meta.Base(3).Index)
	require.Equal(t, ids(1, 2, 3), firsts(applier(meta))[2], "the new instance is still at its beginning")
	behind := applier(member.Bootstrap(order.Begin(2, true), nil))
	require.NoError(t, behind.Install(meta, strings.NewReader("")))
	require.Equal(t, ids(1, 2, 3), firsts(behind)[2])
}

// TestControlEntriesTakeAPlace: what only the core understands has a position of its own. Derived state
// takes it in, and the state machine does not see it.
func TestControlEntriesTakeAPlace(t *testing.T) {
	for _, e := range []protocol.Entry{protocol.NewLane(membertest.Session), protocol.NewGeneration(3),
		protocol.NewEmpty(2)} {
		var sm membertest.History
		var got []string
		var d record
		a := NewApplier(&sm, membertest.WovenMeta(2), membertest.Session, 0, nil)
		meta := membertest.WovenMeta(2)
		require.NoError(t, a.Derive(func(protocol.Config) protocol.Derived { return &d }, &meta))
		e.Seal(1, 1, make([]byte, protocol.HeadSize))
		b := membertest.OneCommand(1, "one", &got)
		feed(t, a, 2, e)
		require.Equal(t, 1, a.Waiting(2), e.Kind)
		require.Empty(t, d.kinds, "its turn has not come")
		feed(t, a, 1, membertest.EntryOf(1, b))
		require.Equal(t, []protocol.EntryKind{protocol.EntryBatch, e.Kind}, d.kinds)
		require.Equal(t, 0, a.Waiting(2), e.Kind)
		require.EqualValues(t, 2, a.Meta().Cursor.Position, e.Kind)
		require.Equal(t, []string{"1:one"}, sm.Lines)
		require.NoError(t, a.Check())
	}
}

// record is derived state that only notes what it was given.
type record struct {
	tally
	kinds []protocol.EntryKind
}

func (r *record) Apply(e *protocol.Entry) { r.kinds = append(r.kinds, e.Kind) }

// What a stranger sends as the meta of a snapshot is refused, or can be gone on from and says the same
// again.
func FuzzSections(f *testing.F) {
	seed := membertest.MetaAt(5, 5, 1)
	for _, sections := range [][]member.SectionState{nil, {tallyOf(1, 5)}, {tallyOf(1, 5), tallyOf(2, 6)},
		{{Instance: 1, Section: protocol.Section{Name: "lanes", Version: 1}}}} {
		seed.Sections = sections
		b, err := json.Marshal(seed)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var o member.SnapshotOffer
		if json.Unmarshal(b, &o) != nil || len(o.Cursor.Points) == 0 || len(o.Cursor.Points) != 1+len(o.Others) {
			return // Check says so
		}
		err := o.CheckSections(deriveTally)
		if err != nil {
			require.ErrorAs(t, err, new(*protocol.SectionError))
			return
		}
		all, err := o.Derived(deriveTally)
		require.NoError(t, err)
		for i, p := range o.Cursor.Points {
			again, s := deriveTally(protocol.Config{}), all[i].Section()
			require.NoError(t, again.Restore(s))
			require.Equal(t, all[i], again)
			require.True(t, p.Index == 0 || o.Base(p.Instance).Section.Name == s.Name)
		}
	})
}
