package epochs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/braidlog/braid/protocol"
)

// Policy selects the voters that may lead.
type Policy uint8

// The policies. Each is a function of the epochs in which voters were suspected.
const (
	// Simple: every voter leads, always.
	Simple Policy = iota
	// Backoff: a suspected voter does not lead for some epochs, each time twice as many as the last time. Each epoch
	// that it leads without suspicion halves that number.
	Backoff
	// Blacklist: the voters that were suspected last do not lead, at most as many as may fail. A suspicion is dropped
	// after MaxBan epochs: otherwise a voter would lead again only after others fail.
	Blacklist
	// Combined: a voter leads if both allow it.
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

// policyOf returns the policy with a name.
func policyOf(name string) (Policy, error) {
	var names []string
	for p := range policies {
		if p.String() == name {
			return p, nil
		}
		names = append(names, p.String())
	}
	return policies, fmt.Errorf("policy %q is none of %s", name, strings.Join(names, ", "))
}

// record is the history's state of a voter.
type record struct {
	id protocol.MemberID
	// suspected is the last epoch in which it was suspected; 0: none.
	suspected uint64
	// penalty is the length of its last ban, in epochs, less what it has made good since; 0, or Ban to MaxBan.
	penalty uint32
	// left is the number of epochs that are left of its ban, including the current one; ≤ penalty.
	left uint32
	// share is its number of turns in a round, 1 to fullShare.
	share uint8
}

// suspect records that the member's segment of an epoch ended with ⊥.
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

// elect returns the voters that lead in an epoch, at least one. voters are ascending. It shortens bans if otherwise
// no voter could lead.
func elect(voters []record, epoch uint64, s *Settings) (leaders []protocol.MemberID) {
	listed, banned := make([]bool, len(voters)), s.Policy == Backoff || s.Policy == Combined
	if s.Policy == Blacklist || s.Policy == Combined {
		for _, at := range blacklist(voters, epoch, s) {
			listed[at] = true
		}
	}
	if banned {
		shorten(voters, listed)
	}
	for at := range voters {
		if !listed[at] && !(banned && voters[at].left > 0) && len(leaders) < MaxLeaders {
			leaders = append(leaders, voters[at].id)
		}
	}
	return leaders
}

// bannedUntil is the epoch in which a voter may lead again, if no voter is suspected before; 0: it may lead now.
func bannedUntil(voters []record, at int, epoch uint64, s *Settings) (until uint64) {
	r := &voters[at]
	if (s.Policy == Backoff || s.Policy == Combined) && r.left > 0 {
		until = epoch + uint64(r.left)
	}
	if (s.Policy == Blacklist || s.Policy == Combined) && slices.Contains(blacklist(voters, epoch, s), at) {
		until = max(until, r.suspected+uint64(s.MaxBan)+1)
	}
	return until
}

// blacklist returns the places of the voters that were suspected last: at most as many as may fail. Of equals it
// lists those with the lower ids.
func blacklist(voters []record, epoch uint64, s *Settings) (places []int) {
	for at := range voters {
		if last := voters[at].suspected; last > 0 && epoch-last <= uint64(s.MaxBan) {
			places = append(places, at)
		}
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(voters[b].suspected, voters[a].suspected) })
	return places[:min(len(places), (len(voters)-1)/2)]
}

// shorten shortens the bans of voters that are not on the list by the same number, so that one of them may lead.
func shorten(voters []record, listed []bool) {
	by := uint32(1<<32 - 1)
	for at := range voters {
		if !listed[at] {
			by = min(by, voters[at].left)
		}
	}
	for at := range voters {
		if !listed[at] {
			voters[at].left -= by
		}
	}
}
