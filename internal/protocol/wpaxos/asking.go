package wpaxos

import (
	"fmt"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// asking counts which members ask an owner for its group. It starts again with each ownership. So a group that has just
// moved stays for a while: to move it back takes as many questions as to move it here did.
type asking struct {
	how    Stealing
	voters []asker // sorted by id; empty if this member does not own the group
	owner  protocol.MemberID
	own    int // its zone
	// total is the sum of all n, except for a moving average. There all n together are at most whole.
	total int
	last  int // the zone that asked last
}

// asker is a member that may own the group.
type asker struct {
	id   protocol.MemberID
	zone int
	// n is how many questions count that it has asked. In a moving average it is a share of whole.
	n int
}

// whole is all questions in a moving average.
const whole = 1 << 30

// begin forgets who asked. owner owns the group from now on.
func (a *asking) begin(owner protocol.MemberID, voters []protocol.MemberID, quorums quorum.System) {
	a.owner, a.voters = owner, a.voters[:0]
	for _, id := range voters {
		zone := quorums.Zone(voters, id)
		if id == owner {
			a.own = zone
		}
		a.voters = append(a.voters, asker{id: id, zone: zone})
	}
	a.reset()
}

// end: this member does not own the group any more.
func (a *asking) end() { a.voters = a.voters[:0] }

// reset forgets who asked. In a moving average all questions were the owner's then.
func (a *asking) reset() {
	a.total, a.last = 0, a.own
	for i := range a.voters {
		a.voters[i].n = 0
	}
	if own := a.of(a.owner); own != nil && a.how.Policy == StealAverage {
		own.n = whole
	}
}

// ask counts n questions of a member. It returns who should own the group in the owner's place; 0: no one, as far as
// this can be said now. Then the questions up to here no longer count.
func (a *asking) ask(id protocol.MemberID, n int) (to protocol.MemberID) {
	who := a.of(id)
	if who == nil || n <= 0 {
		return 0
	}
	n = min(n, a.how.After)
	switch a.how.Policy {
	case StealConsecutive:
		if who.zone != a.last {
			a.reset()
			a.last = who.zone
		}
		a.count(who, n)
		return a.moveIf(a.total >= a.how.After, false)
	case StealMajority:
		a.count(who, n)
		return a.moveIf(a.total >= a.how.After, a.total >= a.how.After)
	case StealAverage:
		for i := range a.voters {
			a.voters[i].n = int(int64(a.voters[i].n) * int64(a.how.After-n) / int64(a.how.After))
		}
		who.n += int(int64(whole) * int64(n) / int64(a.how.After))
		return a.moveIf(true, false)
	}
	return 0
}

func (a *asking) of(id protocol.MemberID) *asker {
	for i := range a.voters {
		if a.voters[i].id == id {
			return &a.voters[i]
		}
	}
	return nil
}

func (a *asking) count(who *asker, n int) {
	who.n += n
	a.total += n
}

// moveIf returns who should own the group if enough was asked. over: what was asked does not count any more in any
// case.
func (a *asking) moveIf(enough, over bool) (to protocol.MemberID) {
	if !enough {
		return 0
	}
	zone, most := a.busiest()
	needs := a.total / 2
	if a.how.Policy == StealAverage {
		needs = whole / 3 * 2
	}
	if zone != a.own && most > needs {
		to, over = a.busiestIn(zone), true
	}
	if over {
		a.reset()
	}
	return to
}

// busiest is the zone that asked most, and how much that is.
func (a *asking) busiest() (zone, most int) {
	for i := range a.voters {
		sum := 0
		for j := range a.voters {
			if a.voters[j].zone == a.voters[i].zone {
				sum += a.voters[j].n
			}
		}
		if sum > most {
			zone, most = a.voters[i].zone, sum
		}
	}
	return zone, most
}

func (a *asking) busiestIn(zone int) (id protocol.MemberID) {
	most := 0
	for i := range a.voters {
		if v := &a.voters[i]; v.zone == zone && v.n > most {
			id, most = v.id, v.n
		}
	}
	return id
}

// check verifies what stands under the fields.
func (a *asking) check() error {
	sum := 0
	for i := range a.voters {
		if i > 0 && a.voters[i-1].id >= a.voters[i].id || a.voters[i].n < 0 {
			return fmt.Errorf("asking: %+v", a.voters)
		}
		sum += a.voters[i].n
	}
	switch average := a.how.Policy == StealAverage; {
	case len(a.voters) > 0 && !average && sum != a.total, average && sum > whole:
		return fmt.Errorf("asking: %d questions, and %+v", a.total, a.voters)
	}
	return nil
}
