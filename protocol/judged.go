package protocol

// Judged is what those must know who judge the members of a cluster from outside: the simulator, checkers, programs
// that choose what to run on a protocol. The zero value is a protocol with one leader, whose log all members have
// alike.
type Judged struct {
	// DecidedOnly: logs hold decided entries only. No promise rests on there being one leader: a member that calls itself
	// leader may be without entries that are decided.
	DecidedOnly bool
	// ManyLead: many members lead at once, epoch by epoch. A membership is active from the next epoch on, and a no-op may
	// be decided that is on no disk.
	ManyLead bool
	// ByKey: commands are ordered only where they have a key in common. Members' logs differ, except for that order: at an
	// index they have as much, and perhaps not the same.
	ByKey bool
	// Fixed: the members of a cluster do not change.
	Fixed bool
}
