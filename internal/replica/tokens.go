package replica

import (
	"context"
	"errors"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/intake"
	"github.com/braidlog/braid/protocol"
)

// awaitTokens lets a reader wait until commands are applied here.
func (l *applyLoop) awaitTokens(t *intake.TokenRead) error {
	l.amu.Lock()
	err := l.known.AwaitTokens(t)
	l.amu.Unlock()
	if err == nil {
		l.wakeReaders()
	}
	return err
}

// tendReads tells readers that have waited for too long why, once for all instances at each tick.
func (l *eventLoop) tendReads(tick bool) {
	if !tick || l != l.r.first() {
		return
	}
	for _, r := range l.r.apply.expiredTokens(l.r.now()) {
		r.Done(r.Err())
	}
}

func (l *applyLoop) expiredTokens(now time.Duration) []*intake.TokenRead {
	l.amu.Lock()
	defer l.amu.Unlock()
	return l.known.ExpiredTokens(now)
}

// abandonTokens ends a reader's wait. It reports false if the reader was told already, or is about to be.
func (l *applyLoop) abandonTokens(t *intake.TokenRead) bool {
	l.amu.Lock()
	defer l.amu.Unlock()
	return l.known.AbandonTokens(t)
}

// AwaitTokens returns when the commands of all tokens are applied on this member. If they are not in
// ctx's time, and within the time for which a proposal is tried, the error is a [member.TokenError].
func (r *Replica) AwaitTokens(ctx context.Context, tokens []protocol.Token) error {
	if err := protocol.CheckTokens(tokens); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.Join(member.ErrReadTimeout, ctx.Err())
	}
	if r.ctx.Err() != nil {
		return r.stopped()
	}
	if len(tokens) == 0 {
		return nil
	}
	told := make(chan error, 1)
	t := intake.NewTokenRead(tokens, r.now()+r.tuning().GiveUp, func(err error) { told <- err })
	if err := r.apply.awaitTokens(t); err != nil {
		return err
	}
	return r.awaitRead(ctx, t, told)
}

// awaitRead waits for the end of a read that waits for tokens.
func (r *Replica) awaitRead(ctx context.Context, t *intake.TokenRead, told <-chan error) error {
	var why error
	for long := r.apply.within.long(); why == nil; long = nil {
		select {
		case err := <-told:
			return err
		case <-r.stop:
			return r.stopped()
		case <-ctx.Done():
			why = ctx.Err()
		case <-long:
			why = r.fromApply()
		}
	}
	if !r.apply.abandonTokens(t) {
		return <-told // it comes at once
	}
	return errors.Join(t.Err(), why)
}
