package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/protocol"
)

// fakeLog is a log of one member in memory: it applies what is proposed, in batches, in one goroutine. Leadership and
// membership are set by the test.
type fakeLog struct {
	sm      braid.DurableStateMachine
	options braid.Options

	mu       sync.Mutex
	queue    []fakeProposal
	closed   bool
	wake     chan struct{}
	position braid.Position
	leader   braid.MemberID
	term     uint64
	members  []braid.Member
	removed  []braid.MemberID
	peers    []protocol.PeerStatus
	// amend, if set, changes the result of Status.
	amend func(*braid.Status)
	// refuse, if set, is what proposals get.
	refuse error
	// reads: read barriers do without a proposal.
	reads bool
	// barrier, if set, is what read barriers get.
	barrier error
	// held, if set, holds read barriers up until it is closed.
	held chan struct{}
	// silent: other members do not answer.
	silent bool
	// early: commands in braid.ModeAccepted are answered at once, and wait in lane for a barrier over lanes.
	early bool
	lane  [][]byte
	// behind, if set, is what this member has not applied: a read barrier applies it first, and only once.
	behind []byte
	// stuck: proposals are taken and never answered.
	stuck bool
	// transferred is where leadership was last handed to.
	transferred braid.MemberID
	barriers    int
	unread      int // how many of the next barriers end with a timeout
	// tuned is the last change of settings, untuned the refusal of changes, and tunables what there is.
	tuned    braid.Tuning
	untuned  error
	until    time.Time // the deadline of the last change of settings or of instances
	tunables []braid.Tunable
	// switched is the last change of the protocol, and unswitched the refusal of them.
	switched   braid.Switch
	unswitched error
	// advice is what Advise returns, or unadvised if it is set.
	advice    braid.Advice
	unadvised error
	// instances is what the log was last reshaped to.
	instances int
	// meanwhile, if set, runs once, right before the next membership change is ordered.
	meanwhile func(l *fakeLog)
	// refuseChange, if set, is the reason for which a change of the membership is refused.
	refuseChange func(*braid.Change) protocol.Reason

	changes chan struct{}
	done    chan struct{}
	failure error

	// bodies are kept until they are released. fetch, if set, is what asking for one gets.
	bodies   map[braid.BodyRef][]byte
	released int
	fetched  int
	fetch    error
}

type fakeProposal struct {
	command, body []byte
	done          func(any, error)
}

func openFakeLog(o braid.Options, sm braid.DurableStateMachine) *fakeLog {
	l := &fakeLog{
		sm: sm, options: o, wake: make(chan struct{}, 1), position: sm.Applied(), leader: o.Self, term: 2,
		members: o.Members, changes: make(chan struct{}, 1), done: make(chan struct{}), bodies: map[braid.BodyRef][]byte{},
	}
	go l.apply()
	return l
}

func (l *fakeLog) apply() {
	defer close(l.done)
	for range l.wake {
		l.mu.Lock()
		queue, closed := l.queue, l.closed
		l.queue = nil
		commands := make([]braid.Command, len(queue))
		for i := range queue {
			l.position++
			commands[i] = braid.Command{Position: l.position, Data: queue[i].command, Body: l.keep(queue[i].body)}
		}
		l.mu.Unlock()
		err := l.sm.Apply(commands)
		for i := range queue {
			queue[i].done(commands[i].Result, err)
		}
		if err != nil {
			l.failure = err
		}
		if closed || err != nil {
			return
		}
	}
}

// keep keeps the body of the entry at the present position.
func (l *fakeLog) keep(body []byte) *braid.BodyRef {
	if len(body) == 0 {
		return nil
	}
	ref := braid.BodyRef{Instance: 1, Index: braid.Index(l.position), Term: 2, K: 1, Size: uint32(len(body)),
		Digest: protocol.Digest(body)}
	l.bodies[ref] = body
	return &ref
}

func (l *fakeLog) Body(_ context.Context, ref braid.BodyRef) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fetched++
	body, ok := l.bodies[ref]
	if !ok || l.fetch != nil {
		return nil, errors.Join(l.fetch, &braid.BodyError{Ref: ref, Need: 1})
	}
	return body, nil
}

func (l *fakeLog) ReleaseBody(ref braid.BodyRef) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.bodies, ref)
	l.released++
}

func (l *fakeLog) DiskNeed() int64 { return 0 }

func (l *fakeLog) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *fakeLog) ProposeAsync(command []byte, done func(any, error)) error {
	return l.proposeAsync(command, nil, done)
}

func (l *fakeLog) proposeAsync(command, body []byte, done func(any, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return braid.ErrStopped
	case l.refuse != nil:
		return l.refuse
	case l.stuck:
		return nil
	}
	l.queue = append(l.queue, fakeProposal{append([]byte(nil), command...), body, done})
	l.poke()
	return nil
}

func (l *fakeLog) Propose(ctx context.Context, command []byte) (any, error) {
	return l.proposeBody(ctx, command, nil)
}

func (l *fakeLog) proposeBody(ctx context.Context, command, body []byte) (any, error) {
	type outcome struct {
		result any
		err    error
	}
	ch := make(chan outcome, 1)
	if err := l.proposeAsync(command, body, func(r any, err error) { ch <- outcome{r, err} }); err != nil {
		return nil, err
	}
	select {
	case o := <-ch:
		return o.result, o.err
	case <-ctx.Done():
		return nil, braid.ErrMaybeCommitted
	}
}

func (l *fakeLog) ReadBarrier(ctx context.Context) error {
	l.mu.Lock()
	err, held, behind := l.barrier, l.held, l.behind
	if l.barriers++; l.unread > 0 {
		l.unread--
		err = braid.ErrReadTimeout
	}
	l.behind = nil
	l.mu.Unlock()
	if behind != nil {
		if _, err := l.Propose(ctx, behind); err != nil {
			return err
		}
	}
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err != nil {
		return err
	}
	if l.mu.Lock(); l.reads {
		l.mu.Unlock()
		return nil
	}
	l.mu.Unlock()
	_, err = l.Propose(ctx, nil)
	return err
}

func (l *fakeLog) ChangeMembers(_ context.Context, changes ...braid.Change) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.meanwhile != nil {
		l.meanwhile(l)
		l.meanwhile = nil
	}
	c, removed := protocol.Config{Members: l.members}, l.removed
	for _, change := range changes {
		if l.refuseChange != nil && l.refuseChange(&change) != protocol.ReasonNone {
			return &braid.RefusedError{What: "membership change", Reason: l.refuseChange(&change)}
		}
		c = c.Clone()
		m := c.Find(change.Member.ID)
		switch {
		case change.Kind == braid.RemoveMember:
			kept := c.Members[:0]
			for _, o := range c.Members {
				if o.ID != change.Member.ID {
					kept = append(kept, o)
				}
			}
			c.Members = kept
			removed = append(removed, change.Member.ID)
		case m != nil:
			m.Learner = m.Learner && change.Kind != braid.AddVoter
			m.Amend(&change.Member)
		default:
			change.Member.Learner = change.Kind == braid.AddLearner
			c.Members = append(c.Members, change.Member)
		}
	}
	if c.PeerURLTaken(changes) {
		return &braid.RefusedError{What: "membership change", Reason: protocol.ReasonPeerURLTaken}
	}
	l.members, l.removed = c.Members, removed
	l.changed()
	return nil
}

func (*fakeLog) SetNet(string) error { return nil }

func (l *fakeLog) HandOver(context.Context) {}

func (l *fakeLog) Drain(bool) {}

func (l *fakeLog) TransferLeader(_ context.Context, to braid.MemberID) error {
	l.mu.Lock()
	l.transferred = to
	l.mu.Unlock()
	return nil
}

func (l *fakeLog) Reshape(ctx context.Context, instances int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until, _ = ctx.Deadline()
	l.instances = instances
	return l.refuse
}

func (l *fakeLog) Tune(ctx context.Context, t braid.Tuning) (braid.Profile, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until, _ = ctx.Deadline()
	if l.untuned != nil {
		return braid.Profile{}, l.untuned
	}
	l.tuned = t
	return braid.Profile{Version: t.Version + 1, Settings: t.Set}, nil
}

func (l *fakeLog) Tunables() []braid.Tunable { return l.tunables }

func (l *fakeLog) Switch(ctx context.Context, s braid.Switch) (braid.Profile, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until, _ = ctx.Deadline()
	if l.unswitched != nil {
		return braid.Profile{}, l.unswitched
	}
	l.switched = s
	return braid.Profile{Version: s.Version + 1, Protocol: s.Protocol, Settings: s.Settings}, nil
}

func (l *fakeLog) PlanSwitch(_ context.Context, s braid.Switch) (braid.SwitchPlan, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return braid.SwitchPlan{Version: s.Version, Seal: s.Version + 1, Protocol: s.Protocol}, l.unswitched
}

func (l *fakeLog) Advise(context.Context) (braid.Advice, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.advice, l.unadvised
}

// Ask has a second member answer that is this one: enough to go through the encoding.
func (l *fakeLog) Ask(ctx context.Context, _ braid.MemberID, request []byte) ([]byte, error) {
	if l.silent {
		return nil, braid.ErrReadTimeout
	}
	return l.options.Answer(ctx, l.options.Self, request)
}

func (l *fakeLog) Status() braid.Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := protocol.Status{
		Instance: 1, Self: l.options.Self, Term: protocol.Term(l.term), Leader: l.leader, Role: protocol.Leader,
		Commit: protocol.Index(l.position), Last: protocol.Index(l.position), Peers: l.peers,
		Config: protocol.Config{Members: l.members, Removed: l.removed},
	}
	c := in.Config.Clone()
	st := braid.Status{
		Self: l.options.Self, Cluster: l.options.Cluster, Instances: []protocol.Status{in}, Applied: l.position,
		Order: braid.OrderSingle, Progress: []braid.InstanceProgress{{Instance: 1, Applied: protocol.Index(l.position)}},
		Members: c.Members,
	}
	if l.amend != nil {
		l.amend(&st)
	}
	first := &st.Instances[0]
	st.Lead = braid.Lead{Instance: first.Instance, Leader: first.Leader, Term: first.Term, Open: true}
	for i := range st.Instances {
		st.Lead.Open = st.Lead.Open && st.Instances[i].Led()
	}
	return st
}

// set changes what the log pretends.
func (l *fakeLog) set(change func(l *fakeLog)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
	l.changed()
}

func (l *fakeLog) changed() {
	select {
	case l.changes <- struct{}{}:
	default:
	}
}

func (l *fakeLog) CheckState() {}

func (l *fakeLog) Changes(context.Context) <-chan struct{} { return l.changes }
func (l *fakeLog) Done() <-chan struct{}                   { return l.done }
func (l *fakeLog) Err() error                              { return l.failure }

func (l *fakeLog) Close() error {
	l.mu.Lock()
	l.closed = true
	l.poke()
	l.mu.Unlock()
	<-l.done
	return nil
}

// ProposeWith answers with what applying gave, as raft does, or early. It withdraws nothing.
func (l *fakeLog) ProposeWith(ctx context.Context, command, body []byte, o braid.ProposeOptions) (any, error) {
	l.mu.Lock()
	if l.early && o.Mode == braid.ModeAccepted {
		l.lane = append(l.lane, append([]byte(nil), command...))
		l.mu.Unlock()
		return &braid.Accepted{}, nil
	}
	l.mu.Unlock()
	ctx, cancel := limited(ctx, o.Timeout)
	defer cancel()
	return l.proposeBody(ctx, command, body)
}

// limited is a context that also ends after a timeout, if there is one.
func limited(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// Client implements Log. The tests of streams of puts have a real log.
func (l *fakeLog) Client() *braid.Client { return nil }

func (l *fakeLog) AnswersEarly() bool   { return l.early }
func (l *fakeLog) MayAnswerEarly() bool { return l.early }

// Read knows no tokens, but that of all lanes: that their commands are applied.
func (l *fakeLog) Read(ctx context.Context, o braid.ReadOptions) error {
	ctx, cancel := limited(ctx, o.Timeout)
	defer cancel()
	if o.Barrier || len(o.After) > 0 {
		if err := l.drain(ctx); err != nil {
			return err
		}
	}
	if o.Local {
		return nil
	}
	return l.ReadBarrier(ctx)
}

// drain orders what waits in the lane.
func (l *fakeLog) drain(ctx context.Context) error {
	l.mu.Lock()
	lane := l.lane
	l.lane = nil
	l.mu.Unlock()
	for _, command := range lane {
		if _, err := l.Propose(ctx, command); err != nil {
			return err
		}
	}
	return nil
}
