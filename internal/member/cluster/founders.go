package cluster

import (
	"cmp"
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// A log has no lineage before its first entries are decided. Who decides them follows from the list of members with
// which each founder was started. With different lists there may be two majorities that have no member in common, and
// so two logs. So founders have links only with founders that were started with the same list. Among these any two
// quorums have a member in common, which has one log: before it has a lineage there is one log, too
// (docs/internals/identity.md).

// Founders is a digest of the members of a list, without their addresses; never 0. Learners are told from voters: of
// two lists with the same members but other voters, majorities may have no member in common either.
func Founders(members []protocol.Member) uint64 {
	var voters, learners []protocol.MemberID
	for i := range members {
		if m := &members[i]; m.Learner {
			learners = append(learners, m.ID)
		} else {
			voters = append(voters, m.ID)
		}
	}
	slices.Sort(voters)
	slices.Sort(learners)
	ids := slices.Compact(voters)
	if len(learners) > 0 {
		ids = append(append(ids, 0), slices.Compact(learners)...) // no member has the id 0
	}
	h := uint64(14695981039346656037) // FNV-1a
	for _, id := range ids {
		for shift := 0; shift < 64; shift += 8 {
			h = (h ^ uint64(id)>>shift&0xff) * 1099511628211
		}
	}
	return cmp.Or(h, 1)
}

// FoundersError says that another member was started as a founder with another list of members than this one, so that
// they may have two logs. Nothing of the other log was taken. A retry does not help: one of the members is to be
// removed, and to be added with an empty directory.
type FoundersError struct{ Member protocol.MemberID }

func (e *FoundersError) Error() string {
	return "braid: member " + e.Member.String() + " founded its log with other members than this one did: they were " +
		"started with different lists of members, and nothing joins two logs (a member that is to join a cluster is " +
		"started as one that joins)"
}

// Founders is what this member tells others of the list with which it was started; 0: it is no founder, or that is not
// known.
func (h *Handshakes) Founders() uint64 { return h.register.own.Founders }

// foundedAlike decides about the founders that another member told; 0: it told none.
func (h *Handshakes) foundedAlike(id protocol.MemberID, founders uint64) error {
	if own := h.Founders(); own == 0 || founders == 0 || own == founders || h.register.Mutant == member.MutantAnyLineage {
		return nil
	}
	return &FoundersError{Member: id}
}
