package cluster

import (
	"slices"
	"strconv"

	"github.com/braidlog/braid/internal/format"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// SharedSettings are the settings that the members of a cluster share. Flags give the first profile of a new cluster;
// after that the log has them.
type SharedSettings struct {
	// Fixed are compared by all members, and are not in a profile.
	Fixed []transport.Setting
	// Implied are names of settings that Fixed implies, so that they are not told.
	Implied []string
	// Table has the settings of a profile. Flags are the complete values with which the member was started, for the
	// protocol of this name.
	Table setting.Table
	Flags setting.Values
	Name  string
	// Behind says what a log is behind a seal, by its profile: the protocol's name, and the settings of its core. nil:
	// the log is not sealed.
	Behind func(*protocol.Profile) (name string, settings setting.Table)
	// Given are the values that the flags say, if they name another protocol than that with which the log began; Flags
	// has none of what it cannot have then. Began is what follows from that protocol, and not from the flags.
	Given setting.Values
	Began []Overruled
	// InLog: a new cluster begins with a profile, and the leader gives a log of an earlier version its first one. Without
	// it each member has the settings of its flags.
	InLog bool
}

// How the core of a log is told.
const (
	protocolSetting = "protocol"
	protocolPrefix  = "braid/1 "
)

// Of adds the recorded name of the core: members with different cores do not understand each other.
func (s SharedSettings) Of(core string) SharedSettings {
	s.Fixed = append(slices.Clone(s.Fixed), transport.Setting{Name: protocolSetting, Value: protocolPrefix + core})
	return s
}

// With adds what members compare because of the instances with which the log began.
func (s SharedSettings) With(begin *order.Cursor) SharedSettings {
	s.Fixed = slices.Clone(s.Fixed)
	if begin.Several() { // a member that begins with another number would have another order
		s.Fixed = append(s.Fixed, transport.Setting{Name: "instances", Value: strconv.Itoa(len(begin.Points))})
	}
	if begin.Merged() {
		// A program that takes each instance's numbers for its own would apply other commands. With one instance it is
		// not told, although sessions are shared: those versions know it with which there are links.
		s.Fixed = append(s.Fixed, transport.Setting{Name: "sessions", Value: "of all instances"})
	}
	return s
}

// First is the first profile of a new cluster. All founders must have the same one: they compare it when they connect.
// Version 0: there is none.
func (s *SharedSettings) First() (p protocol.Profile) {
	if s.InLog {
		p = protocol.Profile{Version: 1, Values: s.Flags}
	}
	return p
}

// Values are the complete values under a profile. While the log has none they are those of the flags.
func (s *SharedSettings) Values(p *protocol.Profile) setting.Values {
	if p.Version == 0 {
		return s.Flags
	}
	return p.Values
}

// Overruled is a setting that differs from the one of the log.
type Overruled struct{ Name, Here, Used string }

// Overruled lists the settings that flags gave this member, and that a profile of the log has differently. Flags with
// defaults are not listed.
func (s *SharedSettings) Overruled(p *protocol.Profile) []Overruled {
	if p.Sealed() && s.Behind != nil {
		return s.overruledBehind(p)
	}
	all, flags := slices.Clone(s.Began), s.Flags
	if len(s.Began) > 0 {
		flags = s.Given
	}
	for name, here := range flags.All() {
		if used := s.Table.Text(name, p.Values); s.tunable(name) && used != here {
			all = append(all, Overruled{name, here, used})
		}
	}
	return all
}

// overruledBehind does the same for a log behind a seal, which may be of another protocol. Settings that this one does
// not have are not listed.
func (s *SharedSettings) overruledBehind(p *protocol.Profile) (all []Overruled) {
	name, table := s.Behind(p)
	if s.Name != "" && s.Name != name {
		all = append(all, Overruled{"protocol", s.Name, name})
	}
	flags := s.Flags
	if !s.Given.IsZero() {
		flags = s.Given
	}
	for name, here := range flags.All() {
		row := table.Find(name)
		if row == nil || row.About().Change == setting.Never {
			continue
		}
		if used := table.Text(name, p.Values); used != here {
			all = append(all, Overruled{name, here, used})
		}
	}
	return all
}

// Told are the settings that a member with a profile tells others. Those of a first profile that its flags gave are
// told completely. One that the leader proposed for a log of an earlier version, which has a date, is told as those
// versions do: the log itself has the rest. grown: the log began with one instance, and has had several. Then the
// version of the first profile is told too: members of earlier versions, which ignore such a change, are refused.
func (s *SharedSettings) Told(p *protocol.Profile, unknown, grown bool) transport.Told {
	if p.Sealed() {
		return s.toldBehind(p, unknown)
	}
	t := transport.Told{All: slices.Clone(s.Fixed), Unknown: unknown, Tunable: s.tunable}
	if p.Version > 1 || grown {
		t.Profile = p.Version
	}
	values := s.Values(p)
	add := func(name, text string) {
		if !slices.Contains(s.Implied, name) &&
			!slices.ContainsFunc(t.All, func(have transport.Setting) bool { return have.Name == name }) {
			t.All = append(t.All, transport.Setting{Name: name, Value: text})
		}
	}
	for _, a := range s.Table.Agreed(values) {
		add(a[0], a[1])
	}
	if p.Version > 1 || p.Version == 1 && p.Since == 0 {
		for name, text := range values.All() {
			add(name, text)
		}
	}
	return t
}

// toldBehind does the same behind a seal: all follows from the profile, and nothing from flags or from how the log
// began.
func (s *SharedSettings) toldBehind(p *protocol.Profile, unknown bool) transport.Told {
	t := transport.Told{Profile: p.Version, Sealed: true, Unknown: unknown}
	t.All = append(t.All, transport.Setting{Name: protocolSetting, Value: protocolPrefix + p.Core})
	for name, text := range p.Values.All() {
		t.All = append(t.All, transport.Setting{Name: name, Value: text})
	}
	return t
}

// tunable reports whether a profile can change a setting.
func (s *SharedSettings) tunable(name string) bool {
	row := s.Table.Find(name)
	return row != nil && row.About().Change.Tunable() &&
		!slices.ContainsFunc(s.Fixed, func(f transport.Setting) bool { return f.Name == name })
}

// Profile is the applied profile.
func (h *Handshakes) Profile() *protocol.Profile { return &h.profile }

// Told are the settings that this member tells in a handshake now: those of the applied profile. Others may have the
// same version of one that is not decided, with other values, so that does not count. A member that joins does not know
// a profile, and one whose log has a profile that it has not applied yet waits for that.
func (h *Handshakes) Told() transport.Told {
	t := h.Shared.Told(&h.profile, h.unknown, h.grown)
	t.Format = transport.Format{Written: h.format, Newest: h.Newest}
	return t
}

// Recover takes in the applied membership with which the member starts, before it has a link, and the format that its
// directory may have. grown: see Learn.
func (h *Handshakes) Recover(applied *protocol.Config, grown bool, recorded int) {
	h.learnProfile(applied, applied, grown)
	h.format = format.Of(recorded)
	h.learnFormat(applied)
}

// learnProfile takes in the newest configuration of the log, and the applied one. grown: see Learn.
func (h *Handshakes) learnProfile(newest, applied *protocol.Config, grown bool) {
	h.profile, h.grown = applied.Profile, grown
	h.unknown = len(applied.Members) == 0 || applied.Profile.Version == 0 && newest.Profile.Version > 0
}

// firstProfile is the change that gives a log of an earlier version its first profile; nil: it has one. The leader
// proposes the settings with which it was started: all members compared them with its own. at is the time in Unix
// milliseconds. It waits until links show that all members know profiles.
func (h *Handshakes) firstProfile(
	st *protocol.Status, at int64, versions func(protocol.MemberID) Version,
) []protocol.Change {
	if st.Role != protocol.Leader || st.Config.Joint() || st.Config.Profile.Version > 0 || !h.Shared.InLog ||
		mayBeEarlier(&st.Config, h.register.own.Member, versions) {
		return nil
	}
	p := h.Shared.First()
	p.Since = max(at, 1)
	return []protocol.Change{{Kind: protocol.Tune, Profile: &p}}
}
