package snapshot

import (
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/internal/order"
)

// SnapshotIntake decides which snapshots a member takes of those that other members want to send.
// A snapshot stands for all instances. If several members lead these, each finds at about the same
// time that its log does not go back far enough. Each would send a snapshot of the whole state.
// One at a time is taken. After it the others are looked at again, and most are not needed then.
type SnapshotIntake struct {
	under bool
	got   order.Cursor // of the newest that was taken and is durable
	// Taken counts those that were taken.
	Taken uint64

	mutant mutant.Name
}

// SnapshotVerdict is what becomes of a snapshot that is offered.
type SnapshotVerdict uint8

const (
	// IntakeTake: it is to be received. Call Done when that has ended.
	IntakeTake SnapshotVerdict = iota
	// IntakeWait: another one is being received; ask again when that has ended.
	IntakeWait
	// IntakeKnown: this member is at least as far. The sender should learn how far.
	IntakeKnown
	// IntakeLog: the sender's log continues from what this member has.
	IntakeLog
)

// Offer decides about a snapshot. have is what is applied. want says that the state is to be
// replaced whatever is applied.
func (i *SnapshotIntake) Offer(have *order.Cursor, want bool, o *member.SnapshotOffer) SnapshotVerdict {
	newest := have
	if len(i.got.Points) > 0 && have.Before(&i.got) {
		newest = &i.got
	}
	switch {
	case i.under:
		return IntakeWait
	case want:
	case !i.before(newest, &o.Cursor):
		return IntakeKnown
	case o.Instance != 0 && o.After > 0 && newest.Point(o.Instance).Index >= o.After:
		return IntakeLog
	}
	i.under = true
	i.Taken++
	return IntakeTake
}

// before reports whether a place is behind another one.
func (i *SnapshotIntake) before(have, other *order.Cursor) bool {
	if i.mutant == member.MutantSnapshotByIndex {
		return have.Points[0].Index < other.Points[0].Index
	}
	return have.Before(other)
}

// Done ends what Offer allowed. got is where the snapshot stands that is durable now, nil if none
// came.
func (i *SnapshotIntake) Done(got *order.Cursor) {
	i.under = false
	if got != nil && (len(i.got.Points) == 0 || i.got.Before(got)) {
		i.got = *got
	}
}
