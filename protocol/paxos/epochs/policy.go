package epochs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Policy says which voters may lead.
type Policy uint8

// The policies. All of them are functions of who was suspected when.
const (
	// Simple: every voter leads, always.
	Simple Policy = iota
	// Backoff: who is suspected does not lead for some epochs, each time twice as many as the last time.
	// Each epoch that it leads without suspicion halves that again.
	Backoff
	// Blacklist: those who were suspected last do not lead, as many as the voters survive to lose. A
	// suspicion is forgotten after MaxBan epochs: there is no other way back where nobody else fails.
	Blacklist
	// Combined: who may lead by both.
	Combined
	policies
)

func (p Policy) String() string {
	switch p {
	case Simple:
		return "simple"
	case Backoff:
		return "backoff"
	case Blacklist:
		return "blacklist"
	case Combined:
		return "combined"
	}
	return fmt.Sprintf("policy(%d)", uint8(p))
}

// record is what a history knows of a voter.
type record struct {
	id protocol.MemberID
	// suspected is the last epoch in which it was suspected; 0: none.
	suspected uint64
	// penalty is how many epochs its last ban had, less what it made good since; 0, or Ban to MaxBan.
	penalty uint32
	// left is how many epochs of its ban are left, the epoch of now among them; ≤ penalty.
	left uint32
	// share is how many turns it has in a round, 1 to fullShare.
	share uint8
}

// suspect notes that the member's segment of an epoch ended with ⊥.
func (r *record) suspect(epoch uint64, s *Settings) {
	r.suspected = epoch
	r.penalty = min(max(uint32(s.Ban), 2*r.penalty), uint32(s.MaxBan))
	r.left = r.penalty
}

// serve ends an epoch in which the member was not suspected. led: it led in it.
func (r *record) serve(led bool, s *Settings) {
	if r.left > 0 {
		r.left--
	}
	if led {
		if r.penalty /= 2; r.penalty < uint32(s.Ban) {
			r.penalty = 0
		}
		r.left = min(r.left, r.penalty)
	}
}

// elect says which of the voters lead in an epoch: at least one of them. voters are ascending. It shortens bans
// if nobody were left.
func elect(voters []record, epoch uint64, s *Settings) (leaders []protocol.MemberID) {
	var black []protocol.MemberID
	if s.Policy == Blacklist || s.Policy == Combined {
		black = blacklist(voters, epoch, s)
	}
	var by uint32
	banned := s.Policy == Backoff || s.Policy == Combined
	if banned {
		by = shorten(voters, black)
	}
	for i := range voters {
		r := &voters[i]
		if slices.Contains(black, r.id) {
			continue
		}
		if r.left -= min(r.left, by); (r.left == 0 || !banned) && len(leaders) < MaxLeaders {
			leaders = append(leaders, r.id)
		}
	}
	return leaders
}

// blacklist are the voters that were suspected last: at most as many as may fail, of equals those with the
// lower ids.
func blacklist(voters []record, epoch uint64, s *Settings) (ids []protocol.MemberID) {
	list := slices.DeleteFunc(slices.Clone(voters), func(r record) bool {
		return r.suspected == 0 || epoch-r.suspected > uint64(s.MaxBan)
	})
	slices.SortFunc(list, func(a, b record) int {
		return cmp.Or(cmp.Compare(b.suspected, a.suspected), cmp.Compare(a.id, b.id))
	})
	for _, r := range list[:min(len(list), (len(voters)-1)/2)] {
		ids = append(ids, r.id)
	}
	return ids
}

// shorten is by how much the bans of those that are not on the blacklist must become shorter, for that one of
// them may lead.
func shorten(voters []record, black []protocol.MemberID) uint32 {
	least := uint32(1<<32 - 1)
	for i := range voters {
		if !slices.Contains(black, voters[i].id) {
			least = min(least, voters[i].left)
		}
	}
	return least
}
