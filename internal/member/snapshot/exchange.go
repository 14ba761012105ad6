package snapshot

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// ExchangeHost is what a [StateExchange] asks of the member. No call decides anything, waits, or
// calls back before it returns.
type ExchangeHost interface {
	Now() time.Duration
	// At is all that is applied, and the memberships. InForce are the active instances.
	At() (order.Cursor, []protocol.Config)
	InForce() []protocol.InstanceID
	// Tell makes an instance take in an input, if the member still has that instance.
	Tell(instance protocol.InstanceID, in protocol.Input)

	// Push queues an item for Apply. View queues one that asks for a view of the state, for a
	// member. Viewed follows.
	Push(it apply.ApplyItem)
	View(to protocol.MemberID)
	// Send streams a view to a member, and closes it. Sent follows.
	Send(to protocol.MemberID, o *member.SnapshotOffer, state member.Snapshot)
	// Ended says that no snapshot is being received any more. Those that were to wait are offered
	// again.
	Ended()
	// AskState puts a question to a member; that member's StateAsked is asked. Answered follows,
	// with an error if there is no answer within q.Within.
	AskState(to protocol.MemberID, q StateQuestion)
}

// StateExchange decides how states go from member to member: which are sent, which are taken, what
// instances are told of that, and whom this member asks if its own state is damaged. All instances
// and Apply share it. Not safe for concurrent use.
type StateExchange struct {
	host     ExchangeHost
	Election time.Duration // the election timeout
	mutant   mutant.Name
	// Derive makes derived state, see [apply.Applier.Derive]; nil: there is none.
	Derive  member.Derive
	sending Streams
	intake  SnapshotIntake
	repair  StateRepair
	merging *mergingOffer // nil: no snapshot is being merged
}

// NewStateExchange returns a StateExchange. mutant is for tests: snapshot-before-durable, any-state, lineage-unchecked,
// seal-snapshot-by-index.
func NewStateExchange(host ExchangeHost, election time.Duration, mutant mutant.Name) *StateExchange {
	x := &StateExchange{host: host, Election: election, mutant: mutant}
	x.intake.mutant = mutant
	return x
}

// Ask has the state as it is now sent to a member. o is what the instance says whose leader has no
// log for that member any more; its Meta follows with the view.
func (x *StateExchange) Ask(to protocol.MemberID, o *member.SnapshotOffer) {
	if x.sending.Ask(to, o) {
		x.host.View(to)
	}
}

// Missing answers a member without an instance that may be retired. If that member joined after the retirement, it is
// not in the instance's membership, and no one can send it that log.
func (x *StateExchange) Missing(from protocol.MemberID, instance protocol.InstanceID) {
	if at, _ := x.host.At(); at.Retired(instance) {
		x.Ask(from, &member.SnapshotOffer{})
	}
}

// StateAsked answers a member whose state is damaged. If there is no error, this member's state is
// on its way.
func (x *StateExchange) StateAsked(from protocol.MemberID, q *StateQuestion) error {
	at, _ := x.host.At()
	switch {
	case q.Again && x.sending.Under(from):
		return nil
	case q.Again:
		return &member.NoStateError{Detail: "it sends none any more"}
	case x.repair.Repairing():
		return &member.NoStateError{Detail: "its state is damaged itself"}
	case at.Before(&q.Cursor) && x.mutant != member.MutantAnyState:
		return &member.NoStateError{Detail: fmt.Sprintf("its state is at %d, which is behind %d", at.Position, q.Position)}
	}
	x.Ask(from, &member.SnapshotOffer{})
	return nil
}

// Viewed brings the view that is sent to a member, or says why there is none.
func (x *StateExchange) Viewed(to protocol.MemberID, v apply.StateView) {
	if v.Err != nil {
		x.Sent(to, v.Err)
		return
	}
	x.host.Send(to, x.sending.Begun(to, &v.Meta), v.State)
}

// Sent says how the stream to a member ended. The instances that asked for it learn how far it
// brought that member.
func (x *StateExchange) Sent(to protocol.MemberID, err error) {
	at, askers := x.sending.End(to)
	for _, id := range askers {
		in := protocol.SnapshotSent{To: to}
		if err == nil {
			in.Index = at.Point(id).Index
		}
		x.host.Tell(id, in)
	}
}

// Streaming is where the snapshot that is on its way to a member stands in an instance. It is 0 if
// there is none, or if its view is not taken yet.
func (x *StateExchange) Streaming(to protocol.MemberID, instance protocol.InstanceID) protocol.Index {
	return x.sending.At(to, instance)
}

// Offered decides about a snapshot that a member wants to send. If the verdict is IntakeTake,
// Received follows. If it is IntakeWait, the snapshot is offered again after Ended. An error says
// that no member would send it.
func (x *StateExchange) Offered(from protocol.MemberID, o *member.SnapshotOffer) (SnapshotVerdict, error) {
	if err := o.Check(); err != nil {
		return IntakeKnown, err
	}
	if err := o.CheckSections(x.Derive); err != nil {
		return IntakeKnown, err
	}
	have, configs := x.host.At()
	if len(configs) > 0 && x.mutant != member.MutantAnyLineage {
		if err := member.CheckLineage(&configs[0], &o.Config); err != nil {
			return IntakeKnown, err
		}
	}
	verdict := x.intake.Offer(&have, x.repair.Wants(), o)
	if verdict == IntakeKnown || verdict == IntakeTake && x.mutant == member.MutantOfferEarly {
		x.offerToInstances(from, o)
	}
	return verdict, nil
}

// Received says that a snapshot is durable now, or why it is not. In a keyed order it is merged into the
// state first, and Merged follows.
func (x *StateExchange) Received(from protocol.MemberID, o *member.SnapshotOffer, err error) {
	if err == nil && o.Cursor.Keyed {
		x.merging = &mergingOffer{from, *o}
		x.host.Push(apply.ApplyItem{Merge: true})
		return
	}
	x.received(from, o, err)
}

// received offers a durable snapshot to the cores, or ends the transfer.
func (x *StateExchange) received(from protocol.MemberID, o *member.SnapshotOffer, err error) {
	if err != nil {
		x.repair.Refused(x.host.Now(), x.Election)
		x.intake.Done(nil)
	} else {
		x.offerToInstances(from, o)
		x.overRetired(&o.Cursor)
		if x.repair.Arrived() {
			x.host.Push(apply.ApplyItem{Repair: true})
		}
		x.intake.Done(&o.Cursor)
	}
	x.host.Ended()
}

// offerToInstances offers a snapshot to all active instances. Each accepts it or not, by what it knows to be
// committed. The sender leads only the instance that asked, so only that one gets a term.
func (x *StateExchange) offerToInstances(from protocol.MemberID, o *member.SnapshotOffer) {
	for _, id := range x.host.InForce() {
		if o.Cursor.Point(id) == (order.Point{Instance: id}) {
			continue // the snapshot has nothing of this instance, or it was not active in it
		}
		in := protocol.SnapshotReceived{From: from, Base: o.Base(id)}
		if id == o.Instance {
			in.Term = o.Term
		}
		x.host.Tell(id, in)
	}
}

// overRetired installs a snapshot for an instance that is retired in it. If this member has
// everything else, no core accepts the snapshot. What the instance has committed is applied before,
// because no log is cut.
func (x *StateExchange) overRetired(at *order.Cursor) {
	for _, id := range x.host.InForce() {
		if at.Retired(id) {
			x.host.Push(apply.ApplyItem{Install: &protocol.Base{}, Commit: intake.CommittedEntries{Instance: id}})
			return
		}
	}
}

// Damaged says that the state is damaged and what another state must include; nil says that this is
// over. It is of Apply: see ApplyWorld.Repairing.
func (x *StateExchange) Damaged(needs *order.Cursor) { x.repair.Damaged(needs) }

// Repairing reports whether the state is damaged, and others are asked for theirs.
func (x *StateExchange) Repairing() bool { return x.repair.Repairing() }

// Useless says that the snapshot which was received last cannot take the place of the damaged
// state.
func (x *StateExchange) Useless() { x.repair.Refused(x.host.Now(), x.Election) }

// Tend asks another member for its state if it is time to. st is how the first instance stands.
func (x *StateExchange) Tend(st *protocol.Status) {
	if x.merging != nil { // if its snapshot could not be written, it is tried again
		x.host.Push(apply.ApplyItem{Rewrite: true})
	}
	if x.intake.under {
		return // that one may do, and its link ensures that it comes or fails
	}
	if to, q := x.repair.Next(x.host.Now(), x.Election, st); to != 0 {
		x.host.AskState(to, q)
	}
}

// Answered says what a member answered to a question; nil: its state is on its way.
func (x *StateExchange) Answered(q StateQuestion, err error) {
	if x.intake.under {
		err = nil // what is being received counts
	}
	x.repair.Answered(x.host.Now(), x.Election, q, err)
}

// Taken counts the snapshots that were taken.
func (x *StateExchange) Taken() uint64 { return x.intake.Taken }

// Check verifies the invariants.
func (x *StateExchange) Check() error { return x.repair.Check() }

// mergingOffer is an offer that is being merged, and whose it is.
type mergingOffer struct {
	from  protocol.MemberID
	offer member.SnapshotOffer
}

// Merged says that what came of the snapshot that was staged is durable, as another snapshot of this
// member, or why nothing came of it. The cores are offered that one.
func (x *StateExchange) Merged(at *member.Meta, err error) {
	m := x.merging
	if m == nil {
		return
	}
	x.merging = nil
	if err == nil {
		m.offer.Meta = *at
	}
	x.received(m.from, &m.offer, err)
}
