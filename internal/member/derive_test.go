package member

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
func counting(t *testing.T, sm StateMachine, meta Meta) *Applier {
	a := NewApplier(sm, meta, life, 0, nil)
	require.NoError(t, a.Derive(deriveTally, &meta))
	require.NoError(t, a.Check())
	return a
}

func tallyOf(instance protocol.InstanceID, commands int) SectionState {
	return SectionState{instance, (&tally{commands}).Section()}
}

// asRead is a meta as it is read from a file, or from a stream.
func asRead(t *testing.T, m Meta) (read Meta) {
	b, err := json.Marshal(m)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &read))
	return read
}

func feed(t *testing.T, a *Applier, instance protocol.InstanceID, entries ...protocol.Entry) {
	t.Helper()
	require.NoError(t, a.Apply(CommittedEntries{Instance: instance, Entries: entries}))
}

// TestSectionsGoWithSnapshots: of each instance, as far as it is applied. A start and an install go on
// from there.
func TestSectionsGoWithSnapshots(t *testing.T) {
	var got []string
	one, two, three := told(1, "one", &got), told(2, "two", &got), told(3, "three", &got)
	a := counting(t, &history{}, wovenMeta(2))
	require.Empty(t, a.Meta().Sections, "nothing is applied")
	feed(t, a, 1, entryOf(1, one), entryOf(2, three))
	require.Equal(t, []SectionState{tallyOf(1, 1)}, a.Meta().Sections, "the second one waits for the other instance")
	feed(t, a, 2, entryOf(1, two))
	meta := asRead(t, a.Meta())
	require.Equal(t, []SectionState{tallyOf(1, 2), tallyOf(2, 1)}, meta.Sections)
	require.Equal(t, tallyOf(2, 1).Section, meta.Base(2).Section, "the core is told")

	restarted := counting(t, &history{}, meta)
	behind := counting(t, &history{}, wovenMeta(2))
	require.NoError(t, behind.Install(meta, strings.NewReader("")))
	for _, b := range []*Applier{a, restarted, behind} {
		feed(t, b, 2, entryOf(2, told(4, "four", &got)))
		require.Equal(t, []SectionState{tallyOf(1, 2), tallyOf(2, 2)}, b.Meta().Sections)
		require.NoError(t, b.Check())
	}
}

// TestSectionsOfInstancesThatComeAndGo: a retired instance has none, and a new one begins at nothing.
func TestSectionsOfInstancesThatComeAndGo(t *testing.T) {
	var got []string
	a := counting(t, &history{}, wovenMeta(2))
	feed(t, a, 1, entryOf(1, told(1, "one", &got)), reshapeAt(2, 1))
	feed(t, a, 2, entryOf(1, told(2, "two", &got)), entryOf(2, told(3, "three", &got)))
	require.Equal(t, []SectionState{tallyOf(1, 1)}, a.Meta().Sections, "the second instance is retired")
	feed(t, a, 1, reshapeAt(3, 2))
	feed(t, a, 1, entryOf(4, told(4, "four", &got)))
	feed(t, a, 3, entryOf(1, told(5, "five", &got)))
	require.Equal(t, []SectionState{tallyOf(1, 2), tallyOf(3, 1)}, a.Meta().Sections, "a new one begins at nothing")
}

// begun is a tally that knows the configuration with which its instance began.
type begun struct {
	tally
	first protocol.Config
}

// TestDerivedStateBeginsWithTheFirstConfiguration: that of the base at index 0, and for an instance that a
// reshape begins the one that is in force there.
func TestDerivedStateBeginsWithTheFirstConfiguration(t *testing.T) {
	derive := func(c protocol.Config) protocol.Derived { return &begun{first: c} }
	firsts := func(a *Applier) (out [][]protocol.MemberID) {
		for i := range a.Instances {
			out = append(out, a.Instances[i].derived.(*begun).first.All())
		}
		return out
	}
	applier := func(meta Meta) *Applier {
		a := NewApplier(&history{}, meta, life, 0, nil)
		require.NoError(t, a.Derive(derive, &meta))
		return a
	}
	ids := func(ids ...protocol.MemberID) []protocol.MemberID { return append([]protocol.MemberID{}, ids...) }
	require.Equal(t, [][]protocol.MemberID{ids()}, firsts(applier(Bootstrap(order.Begin(1, true), nil))), "nobody told who is a member")

	a := applier(Bootstrap(order.Begin(2, true), []protocol.Member{{ID: 1}, {ID: 2}}))
	require.Equal(t, [][]protocol.MemberID{ids(1, 2), ids(1, 2)}, firsts(a))
	more := protocol.Entry{Kind: protocol.EntryConfig, Payload: protocol.EncodeConfig(protocol.Config{Members: []protocol.Member{{ID: 1}, {ID: 2}, {ID: 3}}})}
	more.SealPayload()
	more.Seal(1, 1, make([]byte, protocol.HeadSize))
	feed(t, a, 1, more, reshapeAt(2, 3), skipAt(3, 3))
	feed(t, a, 2, skipAt(1, 3))
	require.Equal(t, [][]protocol.MemberID{ids(1, 2), ids(1, 2), ids(1, 2, 3)}, firsts(a))
	require.NoError(t, a.Check())

	meta := asRead(t, a.Meta())
	require.Zero(t, meta.Base(3).Index)
	require.Equal(t, ids(1, 2, 3), firsts(applier(meta))[2], "the new instance is still at its beginning")
	behind := applier(Bootstrap(order.Begin(2, true), nil))
	require.NoError(t, behind.Install(meta, strings.NewReader("")))
	require.Equal(t, ids(1, 2, 3), firsts(behind)[2])
}

// TestControlEntriesTakeAPlace: what only the core understands has a position of its own. Derived state
// takes it in, and the state machine does not see it.
func TestControlEntriesTakeAPlace(t *testing.T) {
	for _, e := range []protocol.Entry{protocol.NewLane(life), protocol.NewGeneration(3), protocol.NewEmpty(2)} {
		var sm history
		var got []string
		var d record
		a := NewApplier(&sm, wovenMeta(2), life, 0, nil)
		meta := wovenMeta(2)
		require.NoError(t, a.Derive(func(protocol.Config) protocol.Derived { return &d }, &meta))
		e.Seal(1, 1, make([]byte, protocol.HeadSize))
		b := told(1, "one", &got)
		feed(t, a, 2, e)
		require.Equal(t, 1, a.Waiting(2), e.Kind)
		require.Empty(t, d.kinds, "its turn has not come")
		feed(t, a, 1, entryOf(1, b))
		require.Equal(t, []protocol.EntryKind{protocol.EntryBatch, e.Kind}, d.kinds)
		require.Equal(t, 0, a.Waiting(2), e.Kind)
		require.EqualValues(t, 2, a.Meta().Cursor.Position, e.Kind)
		require.Equal(t, []string{"1:one"}, sm.lines)
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
	seed := metaAt(5, 5, 1)
	for _, sections := range [][]SectionState{nil, {tallyOf(1, 5)}, {tallyOf(1, 5), tallyOf(2, 6)}, {{1, protocol.Section{Name: "lanes", Version: 1}}}} {
		seed.Sections = sections
		b, err := json.Marshal(seed)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var o SnapshotOffer
		if json.Unmarshal(b, &o) != nil || len(o.Cursor.Points) == 0 || len(o.Cursor.Points) != 1+len(o.Others) {
			return // Check says so
		}
		err := o.CheckSections(deriveTally)
		if err != nil {
			require.ErrorAs(t, err, new(*protocol.SectionError))
			return
		}
		all, err := o.derived(deriveTally)
		require.NoError(t, err)
		for i, p := range o.Cursor.Points {
			again, s := deriveTally(protocol.Config{}), all[i].Section()
			require.NoError(t, again.Restore(s))
			require.Equal(t, all[i], again)
			require.True(t, p.Index == 0 || o.Base(p.Instance).Section.Name == s.Name)
		}
	})
}
