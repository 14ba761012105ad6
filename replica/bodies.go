package replica

import (
	"context"
	"sync"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/wal"
)

// bodies runs member.Bodies on a goroutine, and beside it a few that answer other members'
// questions from the disk, so that neither holds up replication. What they share is behind
// locks here.
type bodies struct {
	r     *Replica
	store *wal.Bodies
	*member.BodyAccess
	machine *member.Bodies // the goroutine's own

	// kept is what is known of all bodies; it and the event loops that are told of it are
	// guarded by kmu.
	kmu   sync.Mutex
	kept  *member.Kept
	cores []*instanceBodies

	cmu   sync.Mutex
	cache *member.BodyCache // guarded by cmu

	// What waits for the goroutine, and who waits for a body, guarded by mu.
	mu      sync.Mutex
	inbox   *member.BodyInbox
	flights map[protocol.BodyRef]*flight
	wake    chan struct{}

	// questions of other members; more than it holds are dropped, and asked again.
	questions chan *protocol.Message
	readers   chan struct{} // holds a token for each read of this member's own
}

// flight is a body that several callers wait for together.
type flight struct {
	done chan struct{}
	body []byte
	err  error
}

const (
	// bodyGatherBytes bounds the bodies that are gathered at once.
	bodyGatherBytes = 64 << 20
	// bodyInboxBytes bounds the fragments that arrived and wait for the gatherer.
	bodyInboxBytes = 128 << 20
	// bodyAsks bounds the questions of this member's own that wait.
	bodyAsks = 1 << 16
	// bodyTimeout is how long a body is gathered for, at most.
	bodyTimeout = 10 * time.Second
	// bodyReaders is how many bodies are read from this member's disk at once for itself.
	bodyReaders = 8
	// bodyServers answer questions of other members at the same time.
	bodyServers = 2
	// bodyQuestions is how many questions may wait for them.
	bodyQuestions = 1024
	// maxFilling is how many missing bodies are restored at the same time, and maxCensuses of
	// how many it is asked at the same time who holds them.
	maxFilling  = 8
	maxCensuses = 64
)

func newBodies(r *Replica, store *wal.Bodies) *bodies {
	b := &bodies{
		r: r, store: store, cache: member.NewBodyCache(r.opt.BodyCacheBytes),
		flights: map[protocol.BodyRef]*flight{}, wake: make(chan struct{}, 1),
		inbox:     member.NewBodyInbox(member.BodyLimits{Bytes: bodyInboxBytes, Asks: bodyAsks, Trims: maxCensuses}),
		questions: make(chan *protocol.Message, bodyQuestions), readers: make(chan struct{}, bodyReaders),
	}
	b.BodyAccess = member.NewBodyAccess(member.BodyConfig{
		Self: r.opt.Self, Hedge: max(r.opt.Heartbeat/2, time.Millisecond), Retry: r.opt.ElectionTimeout,
		GatherBytes: bodyGatherBytes, Timeout: bodyTimeout, Filling: maxFilling, Censuses: maxCensuses, Trim: r.opt.TrimWhole,
	}, store, b)
	b.machine = member.NewBodies(b.BodyAccess)
	return b
}

// start begins to work. The member's loops run already or will soon.
func (b *bodies) start() {
	b.Kept((*member.Kept).TellAll)
	b.r.spawn(b.run)
	for range bodyServers {
		b.r.spawn(b.serve)
	}
}

// handle takes a message that concerns no core; false: it is not one of those.
func (b *bodies) handle(m *protocol.Message) bool {
	switch m.Type {
	case protocol.MsgFetch:
		select {
		case b.questions <- m:
		default:
			b.r.metrics.dropped.Add(1)
		}
	case protocol.MsgFetchResp:
		b.Inbox(func(i *member.BodyInbox) {
			if !i.Answer(m) {
				b.r.metrics.dropped.Add(1)
			}
		})
	default:
		return false
	}
	return true
}

// run is the machine's goroutine.
func (b *bodies) run(ctx context.Context) {
	ticker := time.NewTicker(max(b.r.opt.Heartbeat/4, time.Millisecond))
	defer ticker.Stop()
	for {
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

// shut ends the machine: nothing more will be answered.
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

// scrub reads all bodies on disk, slowly. spend waits for as long as so many bytes may take;
// false: the member stops.
func (b *bodies) scrub(spend func(int64) bool) bool {
	s := b.Scrubber()
	for read, more := s.Next(); more; read, more = s.Next() {
		if !spend(read) {
			return false
		}
	}
	return true
}

// want makes bodies whole for a core.
func (b *bodies) want(refs []protocol.BodyRef) {
	b.Inbox(func(i *member.BodyInbox) { i.Want(refs) })
}

// unreachable says that a link broke.
func (b *bodies) unreachable(id protocol.MemberID) {
	b.Inbox(func(i *member.BodyInbox) { i.Down(id) })
}

// follow says which members there are now.
func (b *bodies) follow(c *protocol.Config) {
	b.Inbox(func(i *member.BodyInbox) { i.Follow(c) })
}
