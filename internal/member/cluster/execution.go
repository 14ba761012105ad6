package cluster

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// Executions are the operations that a member carries out because it leads the global log. Not
// safe for concurrent use.
type Executions struct {
	Config  member.OperationConfig
	context uint64
	open    map[uint64]*Execution
}

// operationContext differs from all contexts of reads.
const operationContext = 1 << 63

// Begin begins to carry out an operation. End must follow.
func (x *Executions) Begin(op Operation) *Execution {
	if x.open == nil {
		x.open = map[uint64]*Execution{}
	}
	x.context++
	e := &Execution{Op: op, cfg: x.Config, context: x.context | operationContext}
	x.open[e.context] = e
	return e
}

// End forgets an operation, whether it is done or not.
func (x *Executions) End(e *Execution, v *MemberView) {
	delete(x.open, e.context)
	v.Applied.Unwatch(e.watch)
}

// Open is how many operations are being carried out.
func (x *Executions) Open() int { return len(x.open) }

// Refused takes in that the core refused an input with this context.
func (x *Executions) Refused(ref protocol.Rejection) {
	if e := x.open[ref.Context]; e != nil && e.refused == nil {
		e.refused = e.Op.refuse(ref.Reason, ref.Leader)
	}
}

// Execution is an operation at the member that leads the global log. It is a pure rule; not
// safe for concurrent use.
type Execution struct {
	Op      Operation
	cfg     member.OperationConfig
	context uint64
	refused error // by the core

	begun time.Duration // when the operation began; 0: it has not
	told  bool          // an instance was told of the operation
	asked time.Duration // when it was told last
	led   time.Duration // when this member was last seen to lead the instance that was told of a change
	// confirmed: since the operation began it was confirmed that this member leads, and all that was executed anywhere
	// before is applied here. A merged instance may have decided more.
	confirmed bool
	// watch waits until a membership change is in effect. made is when it was; 0: it is not.
	watch *apply.ConfigWatch
	made  time.Duration
}

// ExecutionStep is what to do now for an operation.
type ExecutionStep struct {
	Tell []member.InstanceInput
	// Confirm asks for a linearizable read at this member, which may fail. Confirmed takes in how it
	// ended.
	Confirm bool
	Stay    protocol.MemberID // this member is to be told that an operator wants it to lead; 0: none
	Done    bool
	Err     error // why it failed
}

// Next says what to do now. It is called again until the operation is done.
func (e *Execution) Next(v *MemberView) ExecutionStep {
	if e.begun == 0 {
		e.begun = max(v.Now, 1)
	}
	first := v.first()
	switch kind := e.Op.Kind; {
	case e.refused != nil:
		return ExecutionStep{Done: true, Err: e.refused}
	case !e.told && first.Role != protocol.Leader && e.cfg.Mutant != member.MutantUnconfirmed:
		// What it has applied may be long past.
		return e.refuse(protocol.ReasonNotLeader, first.Leader)
	case !e.told && kind != TransferLeader && v.crossing():
		return e.refuse(protocol.ReasonChangePending, e.cfg.Self)
	case kind.configures() && !e.told:
		return e.beginChange(v)
	case kind.configures():
		return e.change(v)
	case kind == TransferLeader && !e.told:
		return e.beginTransfer(v)
	case kind == TransferLeader:
		return e.transfer(v)
	case kind == Switch:
		return e.seal(v)
	}
	return e.reshape(v)
}

// Confirmed takes in how a read ended for which a step asked.
func (e *Execution) Confirmed(err error) {
	if e.confirmed = err == nil; err != nil {
		e.refused = e.Op.refuse(protocol.ReasonNotLeader, 0)
	}
}

// already ends an operation all of which is in effect. Another member may lead by now, and may have decided otherwise.
// So it is confirmed first that this one leads.
func (e *Execution) already() ExecutionStep {
	if !e.confirmed && e.cfg.Mutant != member.MutantUnconfirmed {
		return ExecutionStep{Confirm: true}
	}
	return e.done()
}

func (e *Execution) done() ExecutionStep { return ExecutionStep{Done: true} }

func (e *Execution) refuse(reason protocol.Reason, leader protocol.MemberID) ExecutionStep {
	return ExecutionStep{Done: true, Err: e.Op.refuse(reason, leader)}
}

func (e *Execution) stalled(what string, limit time.Duration) ExecutionStep {
	return ExecutionStep{Done: true, Err: &member.StalledError{What: what, For: limit}}
}

// send gives the first instance an input.
func (e *Execution) send(v *MemberView, in protocol.Input) ExecutionStep {
	e.told, e.asked = true, v.Now
	return ExecutionStep{Tell: []member.InstanceInput{{Instance: v.Lead().Instance, Input: in}}}
}

// beginChange proposes a membership change, or a new profile. The other instances follow. Until all have followed,
// every change is refused that does not only remove members. A change that only removes does not
// wait for instances that cannot follow: perhaps they cannot because of the member that is to be
// removed.
func (e *Execution) beginChange(v *MemberView) ExecutionStep {
	first := &v.first().Config
	e.Op.Changes = first.Joins(e.Op.Changes)
	if at, configs := v.Applied.At(); at.Reshape != 0 || !e.Op.onlyRemoves() && !member.Settled(first, configs[1:]) {
		return e.refuse(protocol.ReasonChangePending, e.cfg.Self)
	} else if !at.Keyed && configs[0].Lineage == 0 && e.Op.adds(first) && e.cfg.Mutant != member.MutantAnyLineage {
		return e.refuse(protocol.ReasonChangePending, e.cfg.Self) // who comes must be told a lineage: see Register.Publish
	} else if e.Op.Kind == Tune && mayBeEarlier(first, e.cfg.Self, v.Version) {
		return e.refuse(protocol.ReasonEarlier, e.cfg.Self)
	}
	// A member that leaves soon gets nothing of the first instance, and applies nothing any more.
	switch e.watch = v.Applied.Watch(e.Op.Changes, e.Op.removes(e.cfg.Self)); {
	case e.watch.Seen() && (!apply.ChangesApplied(first, e.Op.Changes) || e.stillThere(v)):
		// A change that is not applied yet undoes them.
		return e.refuse(protocol.ReasonChangePending, e.cfg.Self)
	case e.watch.Seen():
		step := e.already()
		if step.Done && e.Op.removesUnknown(first) {
			return e.refuse(protocol.ReasonUnknownMember, v.first().Leader)
		}
		return step
	}
	e.watch.After = order.Point{Instance: v.first().Instance, Index: v.first().ConfigIndex}
	e.led = v.Now
	return e.send(v, protocol.ProposeChange{Context: e.context, Changes: e.Op.Changes})
}

// change waits until a membership change or a new profile is in effect. Another leader may have dropped it, or sealed
// the log without it: then no one here would ever know.
func (e *Execution) change(v *MemberView) ExecutionStep {
	if first := v.first(); first.Role == protocol.Leader && first.Instance == e.watch.After.Instance {
		e.led = v.Now
	}
	switch leaves := e.Op.removes(e.cfg.Self); {
	case !e.watch.Seen() && v.Now-e.led >= e.cfg.GiveUp:
		return e.stalled(e.Op.Kind.String(), e.cfg.GiveUp)
	case !e.watch.Seen():
		return ExecutionStep{}
	case !leaves && !e.stillThere(v), leaves && !slices.ContainsFunc(v.Instances[1:], e.needed):
		return e.done()
	}
	if limit := 5 * e.cfg.Election; e.made == 0 {
		e.made = v.Now
	} else if v.Now-e.made >= limit {
		return e.stalled("removal from all instances", limit)
	}
	return ExecutionStep{}
}

// stillThere reports whether another instance's log has a member that the operation removes, or has
// removed it and may undo that. It may be applied without that member because it has just been added
// there, and follow the removal later.
func (e *Execution) stillThere(v *MemberView) bool {
	return slices.ContainsFunc(v.Instances[1:], func(st *protocol.Status) bool {
		return slices.ContainsFunc(e.Op.Changes, func(c protocol.Change) bool {
			return c.Kind == protocol.RemoveMember && (st.Undecided || st.Config.Find(c.Member.ID) != nil)
		})
	})
}

// needed reports whether an instance may not continue without this member. As long as one does not,
// the member must not stop.
func (e *Execution) needed(st *protocol.Status) bool {
	return st.Config.Find(e.cfg.Self) != nil || st.Role == protocol.Leader && st.Commit < st.Last
}

// beginTransfer asks the core to hand leadership of the first instance over.
func (e *Execution) beginTransfer(v *MemberView) ExecutionStep {
	switch first, to := v.first(), e.Op.To; {
	case to != 0 && first.Config.Find(to) == nil:
		return e.refuse(protocol.ReasonUnknownMember, first.Leader)
	case to != 0 && !first.Config.Voter(to):
		return e.refuse(protocol.ReasonNotVoter, first.Leader)
	case to == e.cfg.Self:
		return e.done()
	case to != 0 && v.Up != nil && !v.Up(to): // nothing would be proposed until the attempt is over
		return e.refuse(protocol.ReasonNoAnswer, first.Leader)
	}
	return e.send(v, protocol.Transfer{To: e.Op.To, Context: e.context})
}

// transfer waits until this member sees the other leader. If one member is to lead all instances,
// the other instances that this member leads follow. If they are spread, they stay where they are.
// Then the new leader is told that an operator chose it. Otherwise leadership of the first instance
// might move again.
func (e *Execution) transfer(v *MemberView) (step ExecutionStep) {
	leader := v.Lead().Leader
	if leader == 0 || leader == e.cfg.Self || e.Op.To != 0 && leader != e.Op.To {
		if limit := 3 * e.cfg.Election; v.Now-e.begun >= limit {
			return e.stalled(e.Op.Kind.String(), limit)
		}
		return step
	}
	step.Done = true
	if e.cfg.Leaders.Apart() {
		step.Stay = leader
		return step
	}
	for _, st := range v.Instances[1:] {
		step.Tell = append(step.Tell, member.InstanceInput{Instance: st.Instance, Input: protocol.Transfer{To: leader}})
	}
	return step
}

// reshape proposes to weave the log from another number of instances, and waits until that has
// taken effect. It may propose several times: the entry has the number, so a repetition is harmless. But members
// may have changed since the last time. The bodies of an instance that is retired are judged by the first one's
// voters from then on. So the entry comes into the log only while all instances have the first one's
// members, however often it is proposed. A seal may have ended the log in which it was proposed. So it is proposed only
// where what is applied says that the core can be merged.
func (e *Execution) reshape(v *MemberView) ExecutionStep {
	first, n := v.first(), e.Op.Instances
	at, configs := v.Applied.At()
	followed := v.settled()
	in := protocol.Propose{Entries: []protocol.Entry{protocol.NewReshape(n)}, Under: &first.ConfigIndex}
	grows := !at.Merged() && n > 1
	if e.told && e.cfg.Mutant == member.MutantReshapeUnchecked {
		followed, in.Under = true, nil
	}
	switch {
	case n < 1 || n > order.MaxInstances || !v.crossing() && !e.cfg.Reshapes(&configs[0].Profile, at.Merged()):
		return e.refuse(protocol.ReasonInstances, first.Leader)
	case grows && configs[0].Profile.Version == 0 && e.cfg.Mutant != member.MutantGrowUnproven:
		return e.refuse(protocol.ReasonNoProfile, first.Leader) // an earlier version ignores the entry
	case len(at.Points) == n: // perhaps long ago, and this member has only now come there
		return e.already()
	case !e.told && !followed:
		return e.refuse(protocol.ReasonChangePending, first.Leader)
	case !e.told && grows && e.ignored(v):
		return e.refuse(protocol.ReasonEarlier, first.Leader)
	}
	return e.propose(v, in, followed && !(grows && e.ignored(v)))
}

// propose proposes an entry, again after an election timeout, until the operation is given up. If it may not be
// proposed now, the operation waits: an earlier proposal of it may be in the log.
func (e *Execution) propose(v *MemberView, in protocol.Propose, may bool) ExecutionStep {
	switch first := v.first(); {
	case v.Now-e.begun >= e.cfg.GiveUp:
		return e.stalled(e.Op.Kind.String(), e.cfg.GiveUp)
	case e.told && v.Now-e.asked < e.cfg.Election:
		return ExecutionStep{}
	case first.Role != protocol.Leader:
		return e.refuse(protocol.ReasonNotLeader, first.Leader)
	case !may:
		return ExecutionStep{}
	}
	return e.send(v, in)
}

// ignored reports whether a member may run an earlier version, which ignores an entry that makes several instances of
// one.
func (e *Execution) ignored(v *MemberView) bool {
	return mayBeEarlier(&v.first().Config, e.cfg.Self, v.Version) && e.cfg.Mutant != member.MutantGrowUnproven
}
