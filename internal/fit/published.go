package fit

import "github.com/braidlog/braid/protocol"

// Published is the newest decision of the member that leads the global log, and what it rests on. A member that sends
// the leader its report is answered with it, as JSON.
type Published struct {
	// By is the member that decided, At when, by its wall clock in Unix milliseconds.
	By protocol.MemberID `json:"by"`
	At int64             `json:"at"`
	// Mode is the setting fit, and Version that of the active profile, when it was decided.
	Mode     protocol.Fit `json:"mode"`
	Version  uint64       `json:"version"`
	Decision Decision     `json:"decision"`
	// Reports are those on which it rests.
	Reports []Report `json:"reports,omitempty"`
}

// Done counts what a member's fitter did since the member started.
type Done struct {
	Changes   uint64 // changes that it made, also those that it took back
	TakenBack uint64 // changes that it took back
}
