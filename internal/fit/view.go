package fit

import (
	"time"

	"github.com/braidlog/braid/protocol"
)

// View is what the member that leads the global log knows when it decides.
type View struct {
	Now time.Duration // its monotonic clock
	// Wall is its wall clock in Unix milliseconds, by which other leaders heed what was taken back.
	Wall int64
	// Mode is the setting fit of the active profile.
	Mode protocol.Fit
	// Profile is the active profile, Protocol the name of the protocol under it, and Instances how many instances make
	// the log.
	Profile   protocol.Profile
	Protocol  string
	Instances int
	// Leaders has the leader of each instance, 0 if none is known. The first leads the global log.
	Leaders []protocol.MemberID
	// Members are the voters.
	Members []Member
	// Reports has the newest report of each member that sent one within the last seconds.
	Reports []Report
	// Changing: a change of members, of the profile or of leadership is in progress.
	Changing bool
}

// Member is a voter as the leader sees it.
type Member struct {
	ID   protocol.MemberID
	Name string
	Zone string
	// Present: it answers and is not behind, so that it could lead.
	Present bool
	// Drained: it is to lead nothing.
	Drained bool
}
