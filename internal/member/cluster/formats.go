package cluster

import (
	"errors"
	"fmt"

	"github.com/braidlog/braid/internal/format"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// Members write one format, which the log has: files, frames and entries that a build of another version may not be
// able to read. A build knows a newest format, and all earlier ones. Members send it in handshakes. When links show
// that all members know a later format than the log has, the leader proposes it. A member writes it from where it has
// applied the change, or from its first link with a member that writes it: that one may send what is in the format, of
// other instances too, before this one has applied anything. Before that it records durably that its directory may have
// the format. From then on it has no link with a member that does not know it. So builds can be exchanged one after the
// other, in both directions, until the last member has the later one. Package formatmodel is a model of these rules.

// Shown says what links show of other members.
type Shown struct {
	// Version is what the link to a member shows of its version; nil: that is not known.
	Version func(protocol.MemberID) Version
	// Format is the newest format that the member knows, as its link shows it; 0: there is no link. nil: that is not
	// known of any member.
	Format func(protocol.MemberID) int
}

// MayRaise reports whether this member knows a later format than a membership has.
func (h *Handshakes) MayRaise(c *protocol.Config) bool { return h.Newest > format.Of(c.Format) }

// raiseFormat is the change to the newest format that all members know; nil: the log has it, or it is not known yet
// what a member knows. A member that is away may come back with an earlier version.
func (h *Handshakes) raiseFormat(st *protocol.Status, newest func(protocol.MemberID) int) []protocol.Change {
	if st.Role != protocol.Leader || st.Config.Joint() || newest == nil || !h.MayRaise(&st.Config) {
		return nil
	}
	self, all := h.register.own.Member, h.Newest
	for i := range st.Config.Members {
		if id := st.Config.Members[i].ID; id != self && h.Mutant != member.MutantRaiseUnproven {
			all = min(all, newest(id))
		}
	}
	if all <= format.Of(st.Config.Format) || st.Config.Find(self) == nil {
		return nil
	}
	return []protocol.Change{{Kind: protocol.UpdateMember, Member: protocol.Member{ID: self}, Format: all}}
}

// learnFormat takes in the applied membership. If the disk has no space for the record, this member writes the earlier
// format until there is.
func (h *Handshakes) learnFormat(applied *protocol.Config) {
	if err := h.Writes(applied.Format); errors.As(err, new(*FormatError)) {
		h.world.Fail(err)
	}
}

// Writes takes in which format a member writes with which there is to be a link, so that this member writes it, too.
// The link may be used if it returns nil: then it is durable that the directory may have the format. If the disk has no
// space for the record, there is no link until there is. A format that this program does not know is a [*FormatError];
// any other error stops this member.
func (h *Handshakes) Writes(to int) error {
	if to <= h.format {
		return nil
	}
	if to > h.Newest {
		return &FormatError{Is: to, Newest: h.Newest}
	}
	if err := h.world.WriteFormat(to); err != nil {
		if full := (*wal.FullError)(nil); !errors.As(err, &full) {
			h.world.Fail(err)
		}
		return err
	}
	h.format = to
	return nil
}

// FormatError indicates that the log has a format that this program does not know, so that the member stops. It went
// back to an earlier version just when all members knew the format. Start a later version.
type FormatError struct{ Is, Newest int }

func (e *FormatError) Error() string {
	return fmt.Sprintf("braid: the log has format %d now, and this program knows formats up to %d: start the later "+
		"version of braid again", e.Is, e.Newest)
}

// Format is the format in which this member writes.
func (h *Handshakes) Format() int { return h.format }
