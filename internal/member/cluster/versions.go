package cluster

import (
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Version is what the link to a member shows of the version that the member runs.
type Version uint8

const (
	// VersionUnknown: there is no link.
	VersionUnknown Version = iota
	// VersionEarlier: it knows no profiles. It ignores those in the log, and entries that make several instances of
	// one.
	VersionEarlier
	// VersionTunes: it knows profiles. It does not know seals: it applies what stands behind one.
	VersionTunes
	// VersionSwitches: it knows seals.
	VersionSwitches
)

// mayBeEarlier reports whether another member of a configuration may have a version that knows no profiles. While the
// log has no profile, that is also every member without a link, as it may come back with that version. Later it is only
// a member whose link shows it: one of that version that comes later is refused, see SharedSettings.Told. versions says
// what links show; nil: that is not known, and no member counts as one.
func mayBeEarlier(c *protocol.Config, self protocol.MemberID, versions func(protocol.MemberID) Version) bool {
	return versions != nil && slices.ContainsFunc(c.Members, func(m protocol.Member) bool {
		if m.ID == self {
			return false
		}
		v := versions(m.ID)
		return v == VersionEarlier || v == VersionUnknown && c.Profile.Version == 0
	})
}

// mayNotSwitch reports whether another member of a configuration may have a version that knows no seals. Until the log
// has had a seal, that is also every member without a link, as it may come back with that version. Later it is only a
// member whose link shows it: one of that version that comes later is refused, see SharedSettings.Told.
func mayNotSwitch(c *protocol.Config, self protocol.MemberID, versions func(protocol.MemberID) Version) bool {
	return versions != nil && slices.ContainsFunc(c.Members, func(m protocol.Member) bool {
		if m.ID == self {
			return false
		}
		v := versions(m.ID)
		return v == VersionEarlier || v == VersionTunes || v == VersionUnknown && !c.Profile.Sealed()
	})
}
