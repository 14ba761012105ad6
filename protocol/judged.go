package protocol

// Judged describes a core to programs that check the members of a cluster from outside: the simulator, checkers,
// benchmarks. The zero value is a protocol with one leader and the same log on all members.
type Judged struct {
	// DecidedOnly: logs hold decided entries only. Safety does not depend on a single leader: a member in the role of a
	// leader may be without some decided entries.
	DecidedOnly bool
	// ManyLead: many members lead at once, epoch by epoch. A membership is active from the next epoch on, and a no-op
	// may be decided that is on no disk.
	ManyLead bool
	// ByKey: commands are ordered only if they have a common key. Members' logs are equally long, but may have
	// different entries at an index.
	ByKey bool
	// Fixed: the members of a cluster do not change.
	Fixed bool
}
