package apply

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/membertest"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// TestSectionsThatAreRefused: a snapshot changes nothing if this program cannot continue from it.
func TestSectionsThatAreRefused(t *testing.T) {
	with := func(sections ...member.SectionState) member.Meta {
		m := membertest.MetaAt(5, 5, 1)
		m.Sections = sections
		return m
	}
	section := func(name string, version uint32, data string) member.SectionState {
		return member.SectionState{Instance: 1, Section: protocol.Section{Name: name, Version: version, Data: []byte(data)}}
	}
	for what, c := range map[string]struct {
		derive member.Derive
		meta   member.Meta
	}{
		`"tally" of the snapshot is missing`: {deriveTally, with()},
		`is not known, tally is`: {deriveTally,
			with(section("lanes", 2, "5"))},
		`is not known, version 2 is`: {deriveTally,
			with(section("tally", 3, "5"))},
		`cannot be read`: {deriveTally,
			with(section("tally", 2, "five"))},
		`is not known, nor is any other`: {nil, with(section("tally", 2, "5"))},
		`at most 5242880 and 64 are permitted`: {deriveTally,
			with(section("tally", 2, strings.Repeat("5", protocol.MaxSectionBytes+1)))},
		`has 1 bytes and a name of 65`: {deriveTally,
			with(section(strings.Repeat("t", 65), 2, "5"))},
		`has 1 bytes and a name of 0`: {deriveTally, with(section("", 2, "5"))},
		`section "tally" of the snapshot has 1 b`: {deriveTally,
			with(section("tally", 0, "5"))},
		`has no instance of its own`: {deriveTally,
			with(section("tally", 2, "5"), section("tally", 2, "5"))},
		`instance 2: section "tally", version 2, of the snapshot has no instance`: {deriveTally, with(tallyOf(2, 5))},
	} {
		err := c.meta.CheckSections(c.derive)
		require.ErrorContains(t, err, what)
		require.ErrorAs(t, err, new(*protocol.SectionError))
		require.False(t, member.IsDamage(err), "an earlier snapshot is no remedy")

		sm := &membertest.History{Lines: []string{"1:before"}}
		a := NewApplier(sm, membertest.MetaAt(1, 1, 1), membertest.Session, 0, nil)
		a.derive = c.derive
		require.ErrorContains(t, a.Install(c.meta, strings.NewReader("after")), what)
		require.Equal(t, []string{"1:before"}, sm.Lines)
		require.EqualValues(t, 1, a.Added(1))
		require.ErrorContains(t, NewApplier(sm, c.meta, membertest.Session, 0, nil).Derive(c.derive, &c.meta), what)
	}
	for _, m := range []member.Meta{with(tallyOf(1, 5)), member.Bootstrap(order.Begin(2, true), nil)} {
		require.NoError(t, m.CheckSections(deriveTally))
	}
	m := with()
	require.NoError(t, m.CheckSections(nil))
	b, err := json.Marshal(m)
	require.NoError(t, err)
	require.NotContains(t, string(b), "ections", "nothing changes on the disk")
}
