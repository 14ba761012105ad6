package intake

import (
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/mutant"
	"github.com/braidlog/braid/protocol"
)

// ClientQueue keeps the order of one client's commands. They take effect in the order in which they
// were proposed. When proposals are repeated, one instance may overtake another, and one batch may
// overtake another batch of the same instance. So only one batch of a client is unsettled at a time.
// The commands that come meanwhile form the next batches. Not safe for concurrent use.
type ClientQueue struct {
	// Proposals takes the batches, one after the other. All clients of a member share it.
	Proposals *Proposals
	// Free is called with each settled batch of the client. It is to call Settled in the end.
	Free   func(*Batch)
	Mutant mutant.Name // client-overtakes

	waiting batchQueue
	// unsettled is how many batches were proposed and are not settled; ≤ 1.
	unsettled int
	// broken is why no further commands are taken: an earlier command failed. Perhaps it has no
	// effect, perhaps it takes effect later. Then no commands wait.
	broken error
}

// BrokenError says that a command was not proposed, because an earlier command of the same client
// failed and may still take effect. The command has no effect. The caller continues with a new client.
type BrokenError struct{ Cause error }

func (e *BrokenError) Error() string {
	return "braid: not proposed, for an earlier command of this client failed: " + e.Cause.Error()
}

// Unwrap returns why the earlier command failed.
func (e *BrokenError) Unwrap() error { return e.Cause }

// Add takes a command. fresh says that an instance has to look for a batch. On an error the command
// is not taken; those before it and after it are.
func (q *ClientQueue) Add(now func() time.Duration, command []byte, done Done) (fresh bool, err error) {
	if q.Proposals.Keyed() {
		return q.addKeyed(now, command, &protocol.ProposeOptions{}, done)
	}
	if err := q.admit(CommandCost(command)); err != nil {
		return false, err
	}
	if o := q.waiting.open; o != nil && o.Options != nil {
		q.waiting.turn(nil, 0)
	}
	b := q.waiting.room(q.Proposals, command)
	if b == nil {
		b = q.waiting.begin(q.Proposals, 0, command)
		b.Free = q.Free
	}
	b.Add(command, done)
	q.Proposals.took(b)
	q.waiting.added(q.Proposals)
	return q.propose(now), nil
}

// AddWith is Add for a command with options.
func (q *ClientQueue) AddWith(now func() time.Duration, command []byte, o *protocol.ProposeOptions,
	done Done) (fresh bool, err error) {
	if q.Proposals.Keyed() {
		return q.addKeyed(now, command, o, done)
	}
	use, path, err := q.Proposals.use(o)
	if err != nil {
		return false, err
	}
	if len(q.Proposals.Proposing.Held(o)) > 0 {
		return q.AddBody(now, q.Proposals.waiting(command, o, done))
	}
	if use == nil {
		if fresh, err = q.Add(now, command, done); err == nil {
			q.Proposals.last.Batch.noteBlind(o)
		}
		return fresh, err
	}
	if err := q.admit(CommandCost(command) + int64(use.Bytes())); err != nil {
		return false, err
	}
	q.waiting.ordered = true
	if open := q.waiting.open; open != nil {
		q.Proposals.fit(open)
	}
	b := q.waiting.roomWith(q.Proposals, command, use, path)
	if b == nil {
		b = q.waiting.begin(q.Proposals, 0, command)
		b.Free = q.Free
	}
	b.addWith(command, use, path, done)
	b.noteBlind(o)
	b.fits = q.Proposals.followed
	q.Proposals.took(b)
	q.waiting.added(q.Proposals)
	return q.propose(now), nil
}

// addKeyed is AddWith where each command goes to the group of its keys. A batch has commands of one
// group, so commands of different groups wait for each other.
func (q *ClientQueue) addKeyed(now func() time.Duration, command []byte, o *protocol.ProposeOptions,
	done Done) (fresh bool, err error) {
	home, err := q.Proposals.Home(o)
	if err == nil {
		err = q.admit(CommandCost(command))
	}
	if err != nil {
		return false, err
	}
	if b := q.waiting.open; b != nil && b.home != home {
		q.waiting.close()
	}
	begun, b := q.Proposals.addTo(home, &q.waiting, command, done)
	if begun {
		b.Free = q.Free
	}
	return q.propose(now), nil
}

// AddBody is Add for a batch with one command, as of NewBodyBatch. If that is to wait for other
// commands, all that come behind it wait too.
func (q *ClientQueue) AddBody(now func() time.Duration, b *Batch) (fresh bool, err error) {
	if err := q.Proposals.refuseUnkeyed(b); err != nil {
		return false, err
	}
	if err := q.admit(b.Cost()); err != nil {
		return false, err
	}
	b.Free, b.whole = q.Free, true
	b.after.begin(now())
	q.Proposals.took(b)
	q.waiting.addWhole(b)
	return q.propose(now), nil
}

func (q *ClientQueue) admit(cost int64) error {
	if q.broken != nil {
		return &BrokenError{q.broken}
	}
	return q.Proposals.reserve(cost)
}

// propose proposes the next batch, unless one is unsettled. The time for which it may be tried
// begins now.
func (q *ClientQueue) propose(now func() time.Duration) (fresh bool) {
	for q.unsettled < q.most() {
		b := q.waiting.pop()
		if b == nil {
			break
		}
		b.Born = now()
		fresh = q.Proposals.addWhole(b) || fresh
		q.unsettled++
	}
	return fresh
}

// most is how many batches may be unsettled at a time.
func (q *ClientQueue) most() int {
	if q.Mutant == member.MutantClientOvertakes {
		return 2
	}
	return 1
}

// Settled notes that a batch is settled. Then the next one is proposed. If a command of the batch
// failed, or if there are no proposals any more, those that wait are not proposed: they are to fail
// with err.
func (q *ClientQueue) Settled(now func() time.Duration, b *Batch) (fresh bool, unproposed []*Batch, err error) {
	q.Proposals.Settled(now(), b)
	q.unsettled--
	if b.failed == nil && q.Proposals.err == nil && q.broken == nil {
		return q.propose(now), nil, nil
	}
	unproposed = gone(q.waiting.drain())
	for _, w := range unproposed {
		w.Free = q.Proposals.Free
	}
	switch {
	case b.failed != nil:
		q.broken, err = b.failed, &BrokenError{b.failed}
	case len(unproposed) > 0:
		q.broken, err = q.Proposals.err, q.Proposals.err
	}
	return false, unproposed, err
}

// Check reports a broken invariant.
func (q *ClientQueue) Check() error {
	switch {
	case q.unsettled < 0 || q.unsettled > q.most():
		return fmt.Errorf("client: %d batches are unsettled", q.unsettled)
	case q.broken != nil && (q.waiting.open != nil || len(q.waiting.full) > 0):
		return fmt.Errorf("client: commands wait after a failure: %w", q.broken)
	}
	return nil
}
