package cluster

import (
	"errors"
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// The lineage of a log tells it from all other logs, also from those of clusters with the same id and the same
// members: a random number in the membership (protocol.Config.Lineage). The first leader proposes it with the identity
// of its own log. What is applied first counts, and never changes. Members tell their lineage in handshakes, once they
// know it. Members of two lineages have two logs, which must never be joined (docs/internals/identity.md).

// founds is the lineage that this member proposes for a log without one. If its log had one, or may have had one, it is
// the same: a leader of an earlier version loses it with a change of the membership. Such a leader is also the only one
// that names logs and no lineage, so this holds for a member that joined later, too. If another member told it to a log
// that began with this version, that was another log. A new one follows from the mark of this incarnation, which is
// random: copies of a directory have different ones.
func (r *Register) founds(c *protocol.Config) uint64 {
	older := !r.born || slices.ContainsFunc(c.Members, func(m protocol.Member) bool { return !m.Log.IsZero() })
	if r.lineage != 0 && (r.descended || older) {
		return r.lineage
	}
	const odd = 0x9e3779b97f4a7c15
	l := r.own.mark(r.own.Incarnation)
	for _, b := range r.own.Log {
		l = (l ^ uint64(b)) * odd
	}
	return l | 1
}

// relate decides about the lineage that another member told; 0: it knows none. news says that this member knows its
// own only now.
func (r *Register) relate(id protocol.MemberID, told uint64) (news bool, err error) {
	switch {
	case told == 0 || told == r.lineage:
		return false, nil
	case r.lineage == 0:
		r.lineage = told
		return true, nil
	case r.Mutant == member.MutantAnyLineage:
		return false, nil
	}
	return false, &member.LineageError{Member: id, Known: r.lineage, Is: told}
}

// descends decides about the lineage of the applied log; 0: it has none yet.
func (r *Register) descends(is uint64) (news bool, err error) {
	news = is != 0 && !r.descended
	if _, err = r.relate(0, is); err == nil && is != 0 {
		r.descended = true
	}
	return news, err
}

// Descends takes in of which lineage the snapshot is with which the member starts. It returns a [*member.LineageError]
// if the member knows another one: snapshot and register are of two directories.
func (r *Register) Descends(lineage uint64) error {
	_, err := r.descends(lineage)
	return err
}

// Lineage is what this member tells others of its lineage; 0: it does not know it yet.
func (h *Handshakes) Lineage() uint64 { return h.register.lineage }

// founded reports whether this member is a founder of a log without a lineage, as it is applied. A log that an earlier
// version began has had other members, perhaps; but not if this is the only one.
func (h *Handshakes) founded(applied *protocol.Config) bool {
	r := h.register
	alone := len(applied.Members) == 1
	return r.lineage == 0 && applied.Lineage == 0 && (alone || r.born) && applied.Find(r.own.Member) != nil &&
		r.Mutant != member.MutantAnyLineage
}

// Admit is [member.Admit] for a member that may know no lineage. While a founder of a log without a lineage knows
// none, a member that is no founder has another log: members are added after that.
func (h *Handshakes) Admit(configs []protocol.Config, id protocol.MemberID) transport.Reason {
	if h.founded(&configs[0]) && configs[0].Find(id) == nil {
		return transport.ReasonLineage
	}
	return member.Admit(configs, id)
}

// learnFounders takes in who the founders are, and whom the log adds.
func (h *Handshakes) learnFounders(linked, applied *protocol.Config) {
	h.founders, h.added, h.named = nil, nil, linked.Lineage
	if !h.founded(applied) {
		return
	}
	for i := range linked.Members {
		if id := linked.Members[i].ID; applied.Find(id) != nil {
			h.founders = append(h.founders, id)
		} else {
			h.added = append(h.added, id)
		}
	}
}

// ofAnother reports whether a member that told a lineage has another log, although this one knows no lineage: this
// one is a founder, and the other one is not. Its log may have added the other one, but not before the log had a
// lineage, which is named there.
func (h *Handshakes) ofAnother(id protocol.MemberID, told uint64) bool {
	if h.register.lineage != 0 || told == 0 || told == h.named || len(h.founders) == 0 || slices.Contains(h.founders, id) {
		return false
	}
	return h.named != 0 || !slices.Contains(h.added, id)
}

// Relate takes in which lineage another member told in a handshake, and what [Handshakes.Founders] is there, each 0 if
// it is not known. There may be a link if it returns nil. Otherwise the error is a [*member.LineageError], a
// [*FoundersError], or says why the lineage could not be made durable: then there is no link now, and a later one may
// succeed. A member that knows no lineage takes over the one that it is told. Only founders may tell it any: see
// ofAnother.
func (h *Handshakes) Relate(id protocol.MemberID, told, founders uint64) error {
	if err := h.foundedAlike(id, founders); err != nil {
		return err
	}
	if h.ofAnother(id, told) {
		return &member.LineageError{Member: id, Known: h.named, Is: told}
	}
	h.meetsEarly(id, told)
	news, err := h.register.relate(id, told)
	if err != nil || !news {
		return err
	}
	if err = h.world.Save(h.register); err == nil {
		return nil
	}
	h.register.lineage = 0
	if full := (*wal.FullError)(nil); !errors.As(err, &full) {
		h.world.Fail(err)
	}
	return err
}

// Descends takes in of which lineage the applied log is. If the member was told another one, it stops.
func (h *Handshakes) Descends(lineage uint64) {
	news, err := h.register.descends(lineage)
	if err != nil {
		h.world.Fail(err)
		return
	}
	if !news {
		return
	}
	// If the disk has no space for it, the log alone says it.
	if err, full := h.world.Save(h.register), (*wal.FullError)(nil); err != nil && !errors.As(err, &full) {
		h.world.Fail(err)
	}
}
