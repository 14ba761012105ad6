package judge

import (
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/protocol"
)

// Instance is the judges of one instance.
type Instance struct {
	ID     protocol.InstanceID
	Ledger *check.Ledger
	Bodies *check.Bodies
	// Ended: the instance is retired.
	Ended bool
	last  uint64 // if it is retired, entries after this one are void
	// Configs are the decided memberships.
	Configs []Decided
	// Led are the members that led the instance, Left those that a decided membership left out for ever.
	Led, Left map[protocol.MemberID]bool
	// Stood is the latest term in which a member stood for election, Won the latest in which one leads.
	Stood, Won protocol.Term
	// MustSee is the last decided entry that a read must see.
	MustSee uint64
	// ReadIn is the latest term in whose beginning replaced leaders were asked for reads.
	ReadIn protocol.Term

	electorates electorates
	sections    map[protocol.Index]string // what members derived from the log up to an index
}

// Decided is a decided membership, and since when it is.
type Decided struct {
	Config protocol.Config
	At     time.Duration
}

// Last is the last decided membership.
func (j *Instance) Last() *protocol.Config { return &j.Configs[len(j.Configs)-1].Config }

// leave notes a decided membership, and the members that it leaves out for ever.
func (j *Instance) leave(config *protocol.Config, now time.Duration) {
	j.Configs = append(j.Configs, Decided{*config, now})
	for _, id := range config.Removed {
		if !config.Voter(id) {
			j.Left[id] = true
		}
	}
}

// Accept notes that a member was told that a proposal is accepted.
func (j *Instance) Accept(id protocol.ProposalID) { j.electorates.accept(id) }

// Decide notes the next decided entry, and judges that it comes in time if it was accepted before. Where a leader is
// a hint, slots in which nothing is decided need be known to no reader.
func (j *Instance) Decide(e *protocol.Entry) error {
	if e.Kind != protocol.EntryNoop || !j.Ledger.Hints {
		j.MustSee = max(j.MustSee, uint64(e.Index))
	}
	return j.electorates.decide(e)
}

// Void reports whether an entry has no effect because it comes after the end of a retired instance.
func (j *Instance) Void(e *protocol.Entry) bool { return j.Ended && uint64(e.Index) > j.last }
