package instance

import (
	"cmp"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
)

// Drained has the members that announced that they are to lead nothing. An announcement holds for drainedFor election
// timeouts, and the member repeats it before that. So it ends by itself if the member restarts. It is a pure rule; not
// safe for concurrent use.
type Drained struct{ all []drainedMember } // ascending

type drainedMember struct {
	id    protocol.MemberID
	until time.Duration
}

// drainedFor is the time for which an announcement holds, in election timeouts.
const drainedFor = 6

// Note records the announcement of a member that it is drained, or is not any more.
func (d *Drained) Note(now, election time.Duration, id protocol.MemberID, drained bool) {
	at, known := slices.BinarySearchFunc(d.all, id, func(m drainedMember, id protocol.MemberID) int {
		return cmp.Compare(m.id, id)
	})
	switch {
	case known && drained:
		d.all[at].until = now + drainedFor*election
	case known:
		d.all = slices.Delete(d.all, at, at+1)
	case drained:
		d.all = slices.Insert(d.all, at, drainedMember{id, now + drainedFor*election})
	}
}

// Now returns the drained members, ascending.
func (d *Drained) Now(now time.Duration) (ids []protocol.MemberID) {
	for _, m := range d.all {
		if now < m.until {
			ids = append(ids, m.id)
		}
	}
	return ids
}

// DrainNotice decides when a drained member announces its drain to the others: at once, and then once in an election
// timeout. It is a pure rule; not safe for concurrent use.
type DrainNotice struct {
	Mutant mutant.Name // drain-announced-once
	at     time.Duration
	sent   bool
}

// Due reports whether the member is to announce it now, and records that it does.
func (n *DrainNotice) Due(now, election time.Duration) bool {
	if n.sent && (now-n.at < election || n.Mutant == member.MutantDrainOnce) {
		return false
	}
	n.at, n.sent = now, true
	return true
}
