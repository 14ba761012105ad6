package node

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/device"
	"github.com/braidlog/braid/internal/sim/draw"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

// Starts with the flags of another protocol of the same core: the directory says how the log began.

// otherFlags draws the flags of a start.
var otherFlags = draw.New("other flags")

var otherCores = []string{"multi-paxos", "iss"}

var startsWithOtherFlags = count.New("starts_with_flags_of_another_protocol",
	"starts with flags of another protocol", count.Staged)

// flags are what a member's flags say at a start.
type flags struct {
	kind   member.LogKind
	values setting.Values
}

// drawFlags draws the flags of a start. kind is that of the log.
func (m *Member) drawFlags(kind member.LogKind, begin *order.Cursor) {
	m.flags = flags{kind: kind, values: m.Env.Set.Profile.Values}
	if !m.Env.Set.OtherFlags || kind.IsZero() {
		return
	}
	d := m.Env.From(otherFlags)
	kinds := []member.LogKind{{Core: "raft", Order: order.KindSingle}, {Core: "lcr", Order: order.KindSingle},
		{Core: "raft", Order: order.KindNiagara}}
	if m.flags.kind = kinds[d.Below(len(kinds))]; d.Yes(0.5) {
		m.flags.values = common.ElectionTimeout.Set(m.flags.values, 7*m.Env.Set.Election)
	}
	failAt, powerAt := m.Disk.FailAt, m.Disk.PowerAt
	m.Disk.FailAt, m.Disk.PowerAt = 0, 0 // as for checkDirectory
	born, err := datadir.BornAs(m.Disk, device.Root, m.flags.kind, registry.NewGuess(), false)
	if born.Sealed && d.Yes(0.5) { // behind a seal the flags may be of any protocol
		m.flags.kind = member.LogKind{Core: otherCores[d.Below(len(otherCores))], Order: order.KindSingle}
		born, err = datadir.BornAs(m.Disk, device.Root, m.flags.kind, registry.NewGuess(), false)
	}
	m.Disk.FailAt, m.Disk.PowerAt = failAt, powerAt
	found, begun := born.Kind, born.Instances
	switch {
	case found.IsZero() && (err != nil || m.flags.kind == kind || m.mayNotSay()):
		m.flags.kind = kind // its operator gives it these then
		return
	case found != kind, kind.Order == order.KindNiagara && begun != len(begin.Points):
		m.Env.Violate(m.ID, fmt.Errorf("the log of %s that began with %d instances is taken for one of %s with %d: %w",
			kind, len(begin.Points), found, begun, err))
	}
	m.Env.Count(startsWithOtherFlags)
	m.Env.Tracef("%s   starts with flags for %s", m.ID, m.flags.kind)
}

// mayNotSay reports whether the directory may not record how the log began: it is new, or of a first incarnation that
// is taken for one of an earlier version.
func (m *Member) mayNotSay() bool { return m.unnoted || !datadir.Founded(m.Disk, device.Root) }

// shared are the settings that a member compares with others.
func (m *Member) shared(begin *order.Cursor) cluster.SharedSettings {
	core, kind := m.Env.Set.Protocol.Core, m.Env.Set.kind()
	s := cluster.SharedSettings{Table: setting.Union(common.Settings, core.Settings), Flags: m.flags.values}
	if !m.flags.kind.IsZero() && m.flags.kind != kind {
		s.Given = m.flags.values
		s.Began = []cluster.Overruled{{Name: "kind", Here: m.flags.kind.String(), Used: kind.String()}}
	}
	s.Behind = func(p *protocol.Profile) (string, setting.Table) {
		behind := m.Env.Set.CoreOf(p)
		return behind.Name, setting.Union(common.Settings, behind.Settings)
	}
	return s.Of(kind.Core).With(begin)
}

// sameSettings reports whether the settings of two members permit a link. Those of one log always do.
func (w *Environment) sameSettings(from, to *Member) bool {
	if !w.Set.OtherFlags && !w.Set.Switches {
		return true
	}
	for _, p := range [2][2]*Member{{from, to}, {to, from}} {
		own, told := p[0].Handshakes.Told(), p[1].Handshakes.Told()
		text, err := told.Text()
		if err != nil {
			w.Violate(p[1].ID, err)
			return false
		}
		why := own.Differ(text, told.Unknown, true)
		if why == "" {
			continue
		}
		w.Tracef("%s   no link with %s: %s", p[0].ID, p[1].ID, why)
		if !slices.ContainsFunc(p[:], func(m *Member) bool { return m.Strange() || m.Misled || m.Apart }) {
			w.Violate(p[0].ID, fmt.Errorf("refuses %s, although both have the settings of the log: %s", p[1].ID, why))
		}
		return false
	}
	return true
}
