package judge

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/protocol"
)

// Instance is the judge of one instance.
type Instance struct {
	ID protocol.InstanceID
	// Core is the one that the instance has from its beginning on.
	Core   *protocol.Info
	Ledger *check.Ledger
	Bodies *check.Bodies
	// Ended: the instance is retired.
	Ended bool
	last  uint64 // if it is retired: entries after this one are void
	// Configs are the decided memberships.
	Configs []Decided
	// Led are the members that led the instance, Left those that a decided membership removed forever.
	Led, Left map[protocol.MemberID]bool
	// Stood is the latest term with a candidate, Won the latest with a leader.
	Stood, Won protocol.Term
	// MustSee is the last decided entry that a read must see.
	MustSee uint64
	// ReadIn is the latest term at whose beginning clients read at replaced leaders.
	ReadIn protocol.Term

	lives map[protocol.Term]int // the incarnation that leads a term

	profile uint64 // the version of the last profile; not of the first instance
	sealed  bool   // it begins behind a seal
	closes  bool   // a seal ends it
	// founded is the first membership as members have it, with what they note of themselves there; nil: it is not
	// known.
	founded *protocol.Config

	electorates electorates
	sections    map[protocol.Index]string // the sections that members derived from the log up to an index
}

// Decided is a decided membership, its index, and the time of the decision.
type Decided struct {
	Config protocol.Config
	Index  uint64
	At     time.Duration
}

// Last returns the last decided membership.
func (j *Instance) Last() *protocol.Config { return &j.Configs[len(j.Configs)-1].Config }

// configAt returns the membership that was decided up to an index.
func (j *Instance) configAt(index uint64) *protocol.Config {
	for i := len(j.Configs) - 1; ; i-- {
		if i == 0 && j.founded != nil {
			return j.founded
		}
		if d := &j.Configs[i]; i == 0 || d.Index <= index {
			return &d.Config
		}
	}
}

// leave records a decided membership, and the members that it removes forever.
func (j *Instance) leave(config *protocol.Config, now time.Duration) {
	j.Configs = append(j.Configs, Decided{*config, j.Ledger.Decided(), now})
	for _, id := range config.Removed {
		if !config.Voter(id) {
			j.Left[id] = true
		}
	}
}

// Accept records that a member learned that a proposal is accepted.
func (j *Instance) Accept(id protocol.ProposalID) { j.electorates.accept(id) }

// Decide records the next decided entry, and checks that it is in time if it was accepted before. If a leader is only
// a hint, readers need not know slots without a decision.
func (j *Instance) Decide(e *protocol.Entry) error {
	if e.Kind != protocol.EntryNoop || !j.Ledger.Hints {
		j.MustSee = max(j.MustSee, uint64(e.Index))
	}
	return j.electorates.decide(e)
}

// Leads judges that a member leads a term in one incarnation alone (P7): in a later one it does not know what it said
// in that term.
func (j *Instance) Leads(term protocol.Term, life int) error {
	was, known := j.lives[term]
	if !known {
		j.lives[term] = life
	}
	if known && was != life {
		return fmt.Errorf("P7: its incarnation %d leads term %d, which it led in incarnation %d", life, term, was)
	}
	return nil
}

// Void reports whether an entry has no effect because it comes after the end of a retired instance.
func (j *Instance) Void(e *protocol.Entry) bool { return j.Ended && uint64(e.Index) > j.last }
