package braid

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/member"
)

// ReadyWithin bounds how far a ready member may be behind. A member under load is always a moment
// behind what is committed, so no lag at all would be too much to ask.
const ReadyWithin = 2 * time.Second

// Ready returns nil if a member is ready: it knows a leader of every instance, and within [ReadyWithin] it has
// applied what was acknowledged anywhere before the call. So the member is up to date, and not only with the part
// that it received. Otherwise the error says what is missing, [ErrNoLeader] or [ErrReadTimeout]; asking again is
// always safe. A member that was removed is not ready once it knows that, although it still runs for a while: the
// error is an [*ExpelledError]. For a member that has stopped, it is [ErrStopped], joined with the reason.
//
// Ready does not wait for a leader: [Node.WaitReady] does.
func Ready(ctx context.Context, node interface {
	Status() Status
	ReadBarrier(ctx context.Context) error
	Done() <-chan struct{}
	Err() error
},
) error {
	select {
	case <-node.Done():
		return errors.Join(ErrStopped, node.Err())
	default:
	}
	st := node.Status()
	if len(st.Instances) == 0 {
		return ErrNoLeader
	}
	if st.removed() {
		return member.NewRemoved(st.Self)
	}
	for i := range st.Instances {
		if st.Instances[i].Leader == 0 {
			return fmt.Errorf("%w of instance %d", ErrNoLeader, st.Instances[i].Instance)
		}
	}
	within, cancel := context.WithTimeout(ctx, ReadyWithin)
	defer cancel()
	err := node.ReadBarrier(within)
	if err != nil && ctx.Err() == nil && errors.Is(within.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: more than %s behind: %w", ErrReadTimeout, ReadyWithin, err)
	}
	return err
}

// WaitReady waits until [Ready] returns nil for this member. It waits for a leader, as after Open, and until the member
// has caught up. Call it with a ctx that ends: without a majority of the members it waits as long as ctx lasts.
//
// The error is [ErrReadTimeout], joined with ctx's error and with [ErrNoLeader] if none is known, [ErrStopped],
// [ErrWithinApply], or an [*ExpelledError] if the member was removed. A retry is safe.
func (n *Node) WaitReady(ctx context.Context) error {
	if ctx.Err() != nil {
		return errors.Join(ErrReadTimeout, ctx.Err())
	}
	waits, cancel := context.WithCancel(ctx) // ctx may last much longer
	defer cancel()
	var err error
	for range n.Changes(waits) {
		err = Ready(ctx, n)
		for errors.Is(err, ErrReadTimeout) && ctx.Err() == nil {
			err = Ready(ctx, n) // the call before waited for ReadyWithin
		}
		if err == nil || !errors.Is(err, ErrNoLeader) {
			return err
		}
	}
	if ctx.Err() == nil {
		return errors.Join(ErrStopped, n.Err())
	}
	return errors.Join(ErrReadTimeout, err, ctx.Err())
}
