package cluster

import (
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// A member may have links before it knows the lineage of its log, or the birth of its cluster. The other side perhaps
// did not know them either, so the handshake compared nothing. Once a member learns one of the two, it compares it
// with each such member over the link. Of two members that had a link before, the one that learns last finds the
// other's, because that one knew it before it asked.

// Origin is where a member's log comes from, as far as the member knows.
type Origin struct {
	Lineage uint64 `json:"lineage,omitempty"` // 0: not known
	Birth   Birth  `json:"birth"`
}

// Origin is where this member's log comes from.
func (h *Handshakes) Origin() Origin { return Origin{h.register.lineage, h.birth} }

// whole reports whether nothing is left to learn.
func (o *Origin) whole() bool { return o.Lineage != 0 && !o.Birth.Unknown }

// meetsEarly notes that there may be a link soon with a member that told a lineage, 0 if none, although it cannot be
// known yet whether it is of this log.
func (h *Handshakes) meetsEarly(id protocol.MemberID, told uint64) {
	if own := h.Origin(); own.Lineage == 0 && told == 0 || own.Birth.Unknown {
		if !slices.Contains(h.early, id) {
			h.early = append(h.early, id)
		}
	}
}

// Unchecked returns the members whose origin is to be compared with this member's, because it has learned something
// since they met; nil: none. Each is returned once for what was learned.
func (h *Handshakes) Unchecked() []protocol.MemberID {
	known := h.Origin()
	if known == h.checked {
		return nil
	}
	h.checked = known
	ids := slices.Clone(h.early)
	if known.whole() {
		h.early = nil
	}
	return ids
}

// Compare decides whether a link with a member may stay that says where its log comes from. The error is a
// [*member.LineageError] or a [*BirthError]: then the link ends on both sides, and no one stops. Nothing is taken over.
func (h *Handshakes) Compare(id protocol.MemberID, o Origin) error {
	if h.ofAnother(id, o.Lineage) {
		return &member.LineageError{Member: id, Known: h.named, Is: o.Lineage}
	}
	if own := h.register.lineage; own != 0 && o.Lineage != 0 && own != o.Lineage &&
		h.register.Mutant != member.MutantAnyLineage {
		return &member.LineageError{Member: id, Known: own, Is: o.Lineage}
	}
	if !h.Agrees(o.Birth) {
		return &BirthError{Known: h.birth.State, Told: o.Birth.State}
	}
	return nil
}
