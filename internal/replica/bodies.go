package replica

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/braidlog/braid/internal/member/body"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// bodies runs body.Bodies on one goroutine. A few more goroutines answer the questions of other
// members from the disk. So neither of them holds up replication. Locks here guard what they share.
type bodies struct {
	r     *Replica
	store *wal.Bodies
	*body.BodyAccess
	machine *body.Bodies // used by that goroutine alone
	used    *tuning      // what machine was made with, or was given since; of that goroutine alone once it runs

	// kept is what is known of all bodies, and cores are the event loops that are told of it. kmu
	// guards both.
	kmu   sync.Mutex
	kept  *body.Kept
	cores []*instanceBodies

	cmu   sync.Mutex
	cache *body.BodyCache // guarded by cmu

	// mu guards what waits for the goroutine, and the callers that wait for a body.
	mu      sync.Mutex
	inbox   *body.BodyInbox
	flights map[protocol.BodyRef]*flight
	wake    chan struct{}

	// questions are those of other members. When it is full, more questions are dropped. The other
	// members ask them again.
	questions chan *protocol.Message
	// reads are the bytes of the bodies that this member reads for itself now; ≤ bodyReadBytes.
	reads *semaphore.Weighted
}

// flight is a body that several callers wait for together.
type flight struct {
	done chan struct{}
	body []byte
	err  error
}

const (
	// bodyGatherBytes bounds the bytes of the bodies that are gathered at the same time, for each
	// urgency: those that are restored, those that are read, and those that a new leader needs.
	bodyGatherBytes = 64 << 20
	// bodyTimeout is how long a body is gathered at most.
	bodyTimeout = 10 * time.Second
	// bodyReadBytes bounds the bytes of the bodies that this member reads for itself from its disk at
	// the same time. One body alone may be larger. bodyReaders bounds how many these are.
	bodyReadBytes = 32 << 20
	bodyReaders   = 8
	// bodyServers is how many goroutines answer questions of other members.
	bodyServers = 2
	// bodyQuestionBytes bounds each of these questions.
	bodyQuestionBytes = 4 << 10
)

func newBodies(r *Replica, store *wal.Bodies) *bodies {
	t := r.tuning()
	b := &bodies{
		r: r, store: store, used: t, cache: body.NewBodyCache(r.opt.BodyCacheBytes),
		flights: map[protocol.BodyRef]*flight{}, wake: make(chan struct{}, 1),
		inbox: body.NewBodyInbox(body.BodyLimits{
			Bytes: body.InboxBytes, Asks: body.InboxAsks, Trims: body.HolderCounts,
		}),
		questions: make(chan *protocol.Message, body.Questions), reads: semaphore.NewWeighted(bodyReadBytes),
	}
	b.BodyAccess = body.NewBodyAccess(body.BodyConfig{
		Self: r.opt.Self, Hedge: t.Hedge, Retry: t.Retry,
		GatherBytes: bodyGatherBytes, Timeout: bodyTimeout, Filling: body.Filling, HolderCounts: body.HolderCounts,
		Trim: func() bool { return r.tuning().TrimWhole },
	}, store, b)
	b.machine = body.NewBodies(b.BodyAccess)
	return b
}

// start starts the goroutines. The member's event loops run already or will start soon.
func (b *bodies) start() {
	b.Kept((*body.Kept).NotifyAll)
	b.r.spawn(b.run)
	for range bodyServers {
		b.r.spawn(b.serve)
	}
}

// handle takes a message about bodies that no core handles. It returns false for all others.
func (b *bodies) handle(m *protocol.Message) bool {
	switch m.Type {
	case protocol.MsgFetch:
		if m.Size() > bodyQuestionBytes {
			b.r.metrics.dropped.Add(1) // no member asks so much
			return true
		}
		select {
		case b.questions <- m:
		default:
			b.r.metrics.dropped.Add(1)
		}
	case protocol.MsgFetchResp:
		b.Inbox(func(i *body.BodyInbox) {
			if !i.Answer(m) {
				b.r.metrics.dropped.Add(1)
			}
		})
	default:
		return false
	}
	return true
}

// run is the goroutine that runs body.Bodies.
func (b *bodies) run(ctx context.Context) {
	ticker := time.NewTicker(b.used.bodyTicks())
	defer ticker.Stop()
	for {
		if next := b.r.tuning(); next != b.used {
			b.used = next
			b.machine.Tune(&next.Tuning)
			ticker.Reset(next.bodyTicks())
		}
		var tick <-chan time.Time
		if b.machine.Busy() {
			tick = ticker.C
		}
		ticked := false
		select {
		case <-b.wake:
		case <-tick:
			ticked = true
		case <-ctx.Done():
			b.shut()
			return
		}
		b.mu.Lock()
		mail := b.inbox.Take()
		b.mu.Unlock()
		b.machine.Turn(mail, ticked)
	}
}

// shut ends body.Bodies. Everybody who waits for an answer gets an error.
func (b *bodies) shut() {
	err := b.r.stopped()
	b.mu.Lock()
	mail := b.inbox.Close(err)
	b.mu.Unlock()
	b.machine.Close(mail, err)
}

// serve answers questions of other members.
func (b *bodies) serve(ctx context.Context) {
	for {
		select {
		case m := <-b.questions:
			b.Serve(m)
		case <-ctx.Done():
			return
		}
	}
}

// want asks for bodies to be made whole, because a core needs them.
func (b *bodies) want(refs []protocol.BodyRef) {
	b.Inbox(func(i *body.BodyInbox) { i.Want(refs) })
}

// unreachable takes in that the link to a member broke.
func (b *bodies) unreachable(id protocol.MemberID) {
	b.Inbox(func(i *body.BodyInbox) { i.Down(id) })
}

// follow takes in who the members are now.
func (b *bodies) follow(c *protocol.Config) {
	b.Inbox(func(i *body.BodyInbox) { i.Follow(c) })
}
