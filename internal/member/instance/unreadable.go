package instance

import (
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/protocol"
)

// Remedy is what a leader does about an entry that it cannot read, and that a follower needs.
type Remedy uint8

// The remedies.
const (
	// RemedyWait: nothing is wrong, or another remedy was tried just now. The core knows by itself
	// what the follower needs, or will know when it has seen what happened meanwhile.
	RemedyWait Remedy = iota
	// RemedySnapshot: the state includes the entry, so the follower gets the state.
	RemedySnapshot
	// RemedyHandOver: others have the entry, or it is not committed. So one of them should lead.
	RemedyHandOver
	// RemedyStop: no one takes over. A member that leads and cannot read what it has to send delays all, so it
	// stops.
	RemedyStop
)

// UnreadableEntries decides about entries that a leader cannot read. One instance's event loop
// uses it. It is not safe for concurrent use.
type UnreadableEntries struct {
	asked time.Duration // when handing over was last tried; 0: never
	tries int
	last  time.Duration // when something was last unreadable
}

// unreadTries is how often a member tries to hand over leadership.
const unreadTries = 3

// Remedy says what to do about an entry. The state includes it if index ≤ applied. Remedy asks to
// hand over at most once an election timeout. In between it says RemedyWait.
func (u *UnreadableEntries) Remedy(now, election time.Duration, fault member.Fault, index,
	applied protocol.Index) Remedy {
	switch {
	case !fault.Sick():
		return RemedyWait
	case index <= applied:
		return RemedySnapshot
	}
	if now-u.last > unreadTries*election {
		u.tries = 0 // the last time is long ago
	}
	u.last = now
	if u.tries > 0 && now-u.asked < election {
		return RemedyWait
	}
	if u.tries == unreadTries {
		return RemedyStop
	}
	u.asked, u.tries = now, u.tries+1
	return RemedyHandOver
}
