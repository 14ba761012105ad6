package wpaxos

import (
	"fmt"

	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// demand counts the requests of each member to the owner of a group. It starts again with each ownership. So a group
// that has just moved stays for a while: to move it back takes as many requests as to move it here.
type demand struct {
	how    Stealing
	voters []asker // sorted by id; empty if this member does not own the group
	owner  protocol.MemberID
	own    int // its zone
	// total is the sum of all n, except with a moving average: there the sum of all n is at most whole.
	total int
	last  int // the zone that asked last
}

// asker is a member that may own the group.
type asker struct {
	id   protocol.MemberID
	zone int
	// n is the number of its requests that count. In a moving average it is a share of whole.
	n int
}

// whole stands for all requests in a moving average.
const whole = 1 << 30

// begin resets the counters. owner owns the group from now on.
func (a *demand) begin(owner protocol.MemberID, voters quorum.Voters, quorums quorum.System) {
	a.owner, a.voters = owner, a.voters[:0]
	for _, id := range voters.IDs {
		zone := quorums.Zone(voters, id)
		if id == owner {
			a.own = zone
		}
		a.voters = append(a.voters, asker{id: id, zone: zone})
	}
	a.reset()
}

// end stops counting: this member no longer owns the group.
func (a *demand) end() { a.voters = a.voters[:0] }

// reset resets the counters. In a moving average all earlier requests count as the owner's.
func (a *demand) reset() {
	a.total, a.last = 0, a.own
	for i := range a.voters {
		a.voters[i].n = 0
	}
	if own := a.of(a.owner); own != nil && a.how.Policy == StealAverage {
		own.n = whole
	}
}

// add counts n requests of a member. It returns the member that should own the group in the owner's place; 0: none so
// far. Once it has returned a member, earlier requests no longer count.
func (a *demand) add(id protocol.MemberID, n int) (to protocol.MemberID) {
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

func (a *demand) of(id protocol.MemberID) *asker {
	for i := range a.voters {
		if a.voters[i].id == id {
			return &a.voters[i]
		}
	}
	return nil
}

func (a *demand) count(who *asker, n int) {
	who.n += n
	a.total += n
}

// moveIf returns the member that should own the group, if enough is true. over: the counters are reset in any case.
func (a *demand) moveIf(enough, over bool) (to protocol.MemberID) {
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

// busiest is the zone with the most requests, and their number.
func (a *demand) busiest() (zone, most int) {
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

func (a *demand) busiestIn(zone int) (id protocol.MemberID) {
	most := 0
	for i := range a.voters {
		if v := &a.voters[i]; v.zone == zone && v.n > most {
			id, most = v.id, v.n
		}
	}
	return id
}

// check verifies the invariants.
func (a *demand) check() error {
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
