package apply

import (
	"errors"
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// ApplyItem is something for Apply to do. One of its fields says what.
type ApplyItem struct {
	Commit  intake.CommittedEntries
	Applied func()         // called once Commit is applied, or will not be; nil: no one waits
	Install *protocol.Base // a snapshot that the core of Commit.Instance has accepted
	View    func(StateView)
	Wrote   *Written
	Due     bool // a snapshot is wanted now
	Halt    bool // the state may be damaged
	Repair  bool // there may be a snapshot to replace a damaged state
	Merge   bool // a snapshot waits to be merged into the state
	Rewrite bool // what was merged is to be written again, if it could not be
	// joined is the cost of the entries of Commit that were queued apart, and are applied together; 0: there
	// is one commit.
	joined int64
	// Look says that someone waits for what may be applied already: see TokenRead.
	Look bool
	// Begun says that the log durably has the beginnings of new instances.
	Begun bool
}

// StateView is the state as it was at some moment, or why there is none. Whoever gets it closes
// it.
type StateView struct {
	Meta  member.Meta
	State member.Snapshot
	Err   error
}

// Written says what became of a snapshot that was written to a file.
type Written struct {
	Meta  member.Meta
	Bytes int64 // how much had been applied when it was taken, as LogKeeper counts
	Err   error
}

// Drop answers whoever waits for an item that is not done any more.
func (it *ApplyItem) Drop(err error) {
	for _, b := range it.Commit.Own {
		b.Fail(err)
	}
	if it.Applied != nil {
		it.Applied()
	}
	if it.View != nil {
		it.View(StateView{Err: err})
	}
}

// ApplyQueue is what waits for Apply. Instances put in what they commit, and do not wait. What
// does not fit into its limit waits without payloads, which are read again from the log when Apply
// comes to them. Payloads that are still on their way to the disk stay. The instances and Apply
// share the queue. It is not safe for concurrent use.
type ApplyQueue struct {
	Limit int // of payload bytes
	// Plans finds the plans in what is queued; nil if the log is not merged.
	Plans *Planner

	items []ApplyItem
	// bytes are the payload bytes of items, of what Take gave out, and of what waits in the order.
	// They are ≥ 0, and at most Limit plus one Commit plus what is not on disk yet.
	bytes int
	// total is what was applied since the start, as LogKeeper counts.
	total int64
	// installs counts the snapshots that were queued, installed those that are done; installed ≤
	// installs.
	installs, installed int
}

// ApplyQueueBytes is the limit of an ApplyQueue in production.
const ApplyQueueBytes = 128 << 20

// Push queues one item.
func (q *ApplyQueue) Push(it ApplyItem) {
	if it.Install != nil {
		q.installs++
	}
	q.plan(&it)
	stored := protocol.Index(0)
	if q.bytes > q.Limit && it.Commit.Stored != nil {
		stored = it.Commit.Stored()
	}
	for i := range it.Commit.Entries {
		e := &it.Commit.Entries[i]
		// Payloads that the disk does not have yet cannot be read again.
		again := q.bytes > q.Limit && e.Kind.Commands() && e.Index <= stored
		if e.BodySize > 0 || again {
			e.Lighten(!again)
		}
		q.bytes += len(e.Payload)
	}
	if !q.join(&it) {
		q.items = append(q.items, it)
	}
}

// joinBytes bounds what is applied together: the cost of entries that were queued apart.
const joinBytes = 1 << 20

// join adds a commit to one of its instance that waits, if only commits came since. The state machine gets them in one
// call then, as far as a call takes them: a call may cost the same for one command and for all that wait. A membership
// begins an item of its own, because who waits for it looks when an item is applied: the next one may take its place.
func (q *ApplyQueue) join(it *ApplyItem) bool {
	if len(it.Commit.Entries) == 0 || it.Applied != nil || slices.ContainsFunc(it.Commit.Entries, changesMembers) {
		return false
	}
	for i := len(q.items) - 1; i >= 0; i-- {
		to := &q.items[i]
		if len(to.Commit.Entries) == 0 || to.Applied != nil {
			return false
		}
		if to.Commit.Instance == it.Commit.Instance {
			return to.joins(&it.Commit)
		}
	}
	return false
}

// joins takes over another commit if there is room for it.
func (it *ApplyItem) joins(c *intake.CommittedEntries) bool {
	cost := it.joined
	if cost == 0 {
		cost = costOf(it.Commit.Entries)
	}
	if cost += costOf(c.Entries); cost > joinBytes {
		return false
	}
	if it.joined == 0 { // the slices are the instance's until now
		it.Commit.Entries, it.Commit.Own = slices.Clone(it.Commit.Entries), slices.Clone(it.Commit.Own)
	}
	it.joined = cost
	it.Commit.Entries, it.Commit.Own = append(it.Commit.Entries, c.Entries...), append(it.Commit.Own, c.Own...)
	it.Commit.Stored = c.Stored
	return true
}

func changesMembers(e protocol.Entry) bool {
	return e.Kind == protocol.EntryConfig || e.Kind == protocol.EntryReshape || e.Kind == protocol.EntrySeal
}

func costOf(entries []protocol.Entry) (cost int64) {
	for i := range entries {
		cost += intake.EntryCost(&entries[i])
	}
	return cost
}

// plan lets the plans be found in what is queued, ahead of Apply.
func (q *ApplyQueue) plan(it *ApplyItem) {
	switch {
	case q.Plans == nil:
	case it.Install != nil:
		q.Plans.Installing()
	case len(it.Commit.Entries) > 0:
		q.Plans.Committed(it.Commit.Instance, it.Commit.Entries)
	}
}

// Planned reports whether plans are to be taken: see Planner.Take.
func (q *ApplyQueue) Planned() bool { return q.Plans != nil && q.Plans.Found() }

// TakePlan takes out the plan that is to be carried out next; nil if there is none.
func (q *ApplyQueue) TakePlan() *PlannedAt {
	if q.Plans == nil {
		return nil
	}
	return q.Plans.Take()
}

// TakeVoid takes out the seals that turned out to be void.
func (q *ApplyQueue) TakeVoid() []VoidSeal {
	if q.Plans == nil {
		return nil
	}
	return q.Plans.TakeVoid()
}

// Follow says that Apply continues after a snapshot. All plans up to where it stands can be taken then.
func (q *ApplyQueue) Follow(installed *member.Meta) {
	if q.Plans != nil {
		q.Plans.Follow(installed)
	}
}

// PushInstall queues a snapshot in place of the commits of an instance that still wait, and
// returns these. The snapshot stands for them. As soon as it is the log's base, the log may be
// without them. The commits of other instances stay, because their logs are what they were.
func (q *ApplyQueue) PushInstall(instance protocol.InstanceID, base *protocol.Base) (dropped []ApplyItem) {
	keep := q.items[:0]
	for _, it := range q.items {
		if len(it.Commit.Entries) == 0 || it.Commit.Instance != instance {
			keep = append(keep, it)
			continue
		}
		dropped = append(dropped, it)
		for i := range it.Commit.Entries {
			q.bytes -= len(it.Commit.Entries[i].Payload)
		}
	}
	clear(q.items[len(keep):])
	q.items = keep
	q.Push(ApplyItem{Install: base, Commit: intake.CommittedEntries{Instance: instance}})
	return dropped
}

// Take gives out all that waits, in exchange for a buffer.
func (q *ApplyQueue) Take(buf []ApplyItem) []ApplyItem {
	items := q.items
	q.items = buf[:0]
	return items
}

// Bytes is the payload bytes that wait.
func (q *ApplyQueue) Bytes() int { return q.bytes }

// Empty reports whether nothing waits.
func (q *ApplyQueue) Empty() bool { return len(q.items) == 0 }

// Left says that so many payload bytes do not wait any more, and that so much was applied.
func (q *ApplyQueue) Left(payload int, applied int64) {
	q.bytes -= payload
	q.total += applied
}

// Total is how much was applied since the start, as LogKeeper counts.
func (q *ApplyQueue) Total() int64 { return q.total }

// Installed says that a snapshot is done with. If it was installed, Follow was told.
func (q *ApplyQueue) Installed() {
	q.installed++
	if q.Plans != nil {
		q.Plans.Installed()
	}
}

// Installing reports whether a snapshot waits to be installed.
func (q *ApplyQueue) Installing() bool { return q.installs > q.installed }

// Overtaken reports whether an error is only that the log was cut by a snapshot that waits to be
// installed.
func (q *ApplyQueue) Overtaken(err error) bool {
	var cut *wal.CompactedError
	return errors.As(err, &cut) && q.Installing()
}

// Check verifies the invariants. waiting are the payload bytes of what Take gave out and of what
// waits in the order.
func (q *ApplyQueue) Check(waiting int) error {
	for _, it := range q.items {
		for i := range it.Commit.Entries {
			waiting += len(it.Commit.Entries[i].Payload)
		}
	}
	if q.installed > q.installs {
		return errors.New("apply queue: more snapshots are done than were queued")
	}
	if q.bytes != waiting {
		return fmt.Errorf("apply queue: %d bytes wait by its count, %d do", q.bytes, waiting)
	}
	return nil
}
