package protocol

import (
	"cmp"
	"slices"
)

// Leaders is the preferred distribution of an instance's leadership. It is a preference: elections decide.
type Leaders string

const (
	// LeadersAny: there is no preference.
	LeadersAny Leaders = ""
	// LeadersTogether: the leader of the first instance leads all. A crash of any other member interrupts nothing.
	LeadersTogether Leaders = "together"
	// LeadersSpread: the instances take turns among the voters, and so among their zones, see [Config.Turns].
	LeadersSpread Leaders = "spread"
	// LeadersBegin: they take turns when they begin. Later no leader of an instance is preferred.
	LeadersBegin Leaders = "begin"
	// LeadersAll: every member leads in every instance, as their core has many leaders.
	LeadersAll Leaders = "all"
)

// Moves reports whether an instance returns to the preferred leader.
func (l Leaders) Moves() bool { return l != LeadersBegin && l != LeadersAll }

// Apart reports whether instances are to have different leaders, and stay with them when the first one moves.
func (l Leaders) Apart() bool { return l == LeadersSpread || l == LeadersBegin || l == LeadersAll }

// Turns are the voters in the order in which they take turns to lead: by their ids, and if they have zones, the first
// one of each zone before the second one of any. So the leaders of a few instances are in different zones.
func (c *Config) Turns() []MemberID {
	voters := c.Voters()
	before := func(id MemberID) (n int) {
		for i := range c.Members {
			if m := &c.Members[i]; m.ID < id && !m.Learner && c.Near(m.ID, id) {
				n++
			}
		}
		return n
	}
	slices.SortStableFunc(voters, func(a, b MemberID) int { return cmp.Compare(before(a), before(b)) })
	return voters
}

// Preferred is the voter that should lead an instance while that voter is healthy; 0: no preference. voters are in the
// order of [Config.Turns]. turn is the instance's place among those active, from 0 (ids have gaps after some reshapes).
// first leads the first instance; 0: not known.
func (l Leaders) Preferred(voters []MemberID, turn int, first MemberID) MemberID {
	switch {
	case len(voters) == 0, l == LeadersAll:
	case l.Apart():
		return voters[turn%len(voters)]
	case l == LeadersTogether && slices.Contains(voters, first):
		return first
	}
	return 0
}

// Rank is the number of the voters, in the same order, that should campaign before a member when the leader of an
// instance is gone (docs/internals/niagara.md, 3.4). All members of a configuration have different ranks. With
// LeadersTogether a member has the same rank in every instance, so that one member wins all. With LeadersSpread the
// instances of a lost leader go to different members.
func (l Leaders) Rank(voters []MemberID, turn int, member, gone MemberID) int {
	rank := l.place(voters, turn, member)
	if p := l.place(voters, turn, gone); p < rank && p < len(voters) {
		rank--
	}
	return rank
}

// place is a voter's place among those that could lead an instance. Members that cannot lead follow after all voters.
func (l Leaders) place(voters []MemberID, turn int, member MemberID) int {
	n := len(voters)
	at := slices.Index(voters, member)
	switch {
	case at < 0:
		return n
	case !l.Apart() || n < 2:
		return at
	}
	after := (at + n - turn%n) % n // the distance after the preferred one
	if after == 0 {
		return 0
	}
	return 1 + (after-1+(n-1)-(turn/n)%(n-1))%(n-1)
}
