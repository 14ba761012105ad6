package protocol

import "time"

// Stages are when a command passed the stages of its proposal, on the member that proposed it, since it was proposed.
// 0: that is not known. Only Appended is out of order: members write to their logs while the command is replicated.
type Stages struct {
	// Proposed: the command was given to the core, for the last time if that was repeated.
	Proposed time.Duration
	// Appended: this member's log had it on disk. 0 if another member appended it first, or if it was committed before.
	Appended time.Duration
	// Committed: this member knew that it is committed.
	Committed time.Duration
	// Ordered: it had its position in the global log, and the state machine began with it.
	Ordered time.Duration
	// Applied: the state machine had a result, for a large batch that of its first part.
	Applied time.Duration
}

// ReadStages are when a read passed its stages, since it began. 0: that is not known.
type ReadStages struct {
	// Asked: the core was asked for a read index.
	Asked time.Duration
	// Confirmed: the read indexes of all instances were known.
	Confirmed time.Duration
	// Served: the state machine had come so far.
	Served time.Duration
}
