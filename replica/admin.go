package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/transport"
	"github.com/braidlog/braid/wal"
)

// A request between members starts with a byte. The byte says who or what the request is for.
const (
	askProgram  byte = 'p' // Options.Answer
	askChange   byte = 'c' // for the leader: change the membership
	askTransfer byte = 't' // for the leader: hand leadership over
	askStay     byte = 's' // for the leader of the first instance: keep leading it
	askReshape  byte = 'r' // for the leader: weave the log from other instances
	askMissing  byte = 'm' // for the leader: this member needs an instance that may be retired
	askState    byte = 'd' // for any member: this member's state is damaged
	askLink     byte = 'l' // for any member: this member has a link to it, and is to be found there
)

// refusal is the answer to a request that was refused.
type refusal struct {
	Reason protocol.Reason   `json:"reason,omitempty"`
	Leader protocol.MemberID `json:"leader,omitempty"`
}

func (r *Replica) answer(ctx context.Context, from protocol.MemberID, request []byte) ([]byte, error) {
	if len(request) == 0 {
		return nil, errors.New("empty request")
	}
	var err error
	switch body := request[1:]; request[0] {
	case askProgram:
		if r.opt.Answer == nil {
			return nil, errors.New("this member answers no requests")
		}
		return r.opt.Answer(ctx, from, body)
	case askChange:
		var changes []protocol.Change
		if err := json.Unmarshal(body, &changes); err != nil {
			return nil, err
		}
		err = r.change(ctx, changes)
	case askTransfer:
		var to protocol.MemberID
		if err := json.Unmarshal(body, &to); err != nil {
			return nil, err
		}
		err = r.transfer(ctx, to)
	case askReshape:
		var instances int
		if err := json.Unmarshal(body, &instances); err != nil {
			return nil, err
		}
		err = r.reshapeHere(ctx, instances)
	case askMissing:
		var id protocol.InstanceID
		if err := json.Unmarshal(body, &id); err != nil {
			return nil, err
		}
		r.missing(from, id)
	case askState:
		var needs order.Cursor
		if err := json.Unmarshal(body, &needs); err != nil {
			return nil, err
		}
		if err := r.sendState(from, &needs); err != nil {
			return nil, err
		}
	case askLink:
		var m protocol.Member
		if err := json.Unmarshal(body, &m); err != nil {
			return nil, err
		}
		r.welcome(from, &m)
	case askStay:
		first := r.first()
		first.do(first.hosted.Stay)
	default:
		return nil, fmt.Errorf("unknown request %q", request[0])
	}
	var refused *member.RefusedError
	if errors.As(err, &refused) {
		return json.Marshal(refusal{refused.Reason, refused.Leader})
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(refusal{})
}

// Ask sends a request to the Options.Answer of a member, which may be this one.
func (r *Replica) Ask(ctx context.Context, to protocol.MemberID, request []byte) ([]byte, error) {
	if to == r.opt.Self {
		return r.answer(ctx, to, append([]byte{askProgram}, request...))
	}
	return r.links.Request(ctx, uint64(to), append([]byte{askProgram}, request...))
}

// atLeader runs an administrative request here if this member leads, otherwise at the leader.
// It tries again after a refusal that is passing, for example when there is no leader, or when
// another change is not complete. It ends when ctx ends or the member stops.
func (r *Replica) atLeader(ctx context.Context, what string, kind byte, arg any, here func(context.Context) error) error {
	body, err := json.Marshal(arg)
	if err != nil {
		return err
	}
	pause := time.NewTicker(max(r.opt.Heartbeat/2, time.Millisecond))
	defer pause.Stop()
	for {
		leader := r.first().status.Load().Leader
		switch leader {
		case 0:
			err = &member.RefusedError{What: what, Reason: protocol.ReasonNoLeader}
		case r.opt.Self:
			err = here(ctx)
		default:
			err = r.askLeader(ctx, leader, what, append([]byte{kind}, body...))
		}
		var refused *member.RefusedError
		if !errors.As(err, &refused) || !passing(refused.Reason) {
			return err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-r.stop:
			return r.stopped()
		}
	}
}

// passing reports whether the reason for a refusal goes away after a short wait.
func passing(r protocol.Reason) bool {
	switch r {
	case protocol.ReasonNoLeader, protocol.ReasonNotLeader, protocol.ReasonChangePending, protocol.ReasonTransferring, protocol.ReasonRestriping:
		return true
	}
	return false
}

func (r *Replica) askLeader(ctx context.Context, leader protocol.MemberID, what string, request []byte) error {
	reply, err := r.links.Request(ctx, uint64(leader), request)
	if err != nil {
		return fmt.Errorf("%s at leader %s: %w", what, leader, err)
	}
	var ref refusal
	if err := json.Unmarshal(reply, &ref); err != nil {
		return err
	}
	if ref.Reason != protocol.ReasonNone {
		return &member.RefusedError{What: what, Reason: ref.Reason, Leader: ref.Leader}
	}
	return nil
}

// ChangeMembers makes membership changes; it makes several changes jointly. It returns when they
// are in force on this member. If it removes this member, it returns when the leader has it in force.
func (r *Replica) ChangeMembers(ctx context.Context, changes []protocol.Change) error {
	changes = r.joins(changes)
	err := r.atLeader(ctx, "membership change", askChange, changes, func(ctx context.Context) error { return r.change(ctx, changes) })
	if err != nil {
		return err
	}
	for _, c := range changes {
		if c.Kind == protocol.RemoveMember && c.Member.ID == r.opt.Self {
			return nil // the leader has it in force; this member may never learn of it
		}
	}
	return r.apply.whenConfig(ctx, nil, func(all []protocol.Config) bool { return inForceInAll(all, changes) })
}

// joins makes a member that is added as a voter join first.
func (r *Replica) joins(changes []protocol.Change) []protocol.Change {
	return r.first().status.Load().Config.Joins(changes)
}

func inForceInAll(configs []protocol.Config, changes []protocol.Change) bool {
	return !slices.ContainsFunc(configs, func(c protocol.Config) bool { return !inForce(&c, changes) })
}

func inForce(c *protocol.Config, changes []protocol.Change) bool {
	for _, ch := range changes {
		m := c.Find(ch.Member.ID)
		switch ch.Kind {
		case protocol.RemoveMember:
			if m != nil {
				return false
			}
		case protocol.AddVoter:
			if m == nil || m.Learner {
				return false
			}
		default:
			if m == nil || ch.Kind == protocol.UpdateMember && !m.Amended(&ch.Member) {
				return false
			}
		}
	}
	return !c.Joint()
}

// change proposes a membership change at this member, which leads the first instance, and waits
// until it is in force. The other instances follow. Until all have followed, change refuses every
// change that does not only remove members.
func (r *Replica) change(ctx context.Context, changes []protocol.Change) error {
	changes = r.joins(changes)
	// A change that only removes does not wait for instances that cannot follow: perhaps they cannot
	// follow because of the member that is to be removed.
	removes := !slices.ContainsFunc(changes, func(c protocol.Change) bool { return c.Kind != protocol.RemoveMember })
	if cursor, configs := r.apply.at(); cursor.Reshape != 0 || !removes && !member.Settled(&r.first().status.Load().Config, configs[1:]) {
		return &member.RefusedError{What: "membership change", Reason: protocol.ReasonChangePending, Leader: r.opt.Self}
	}
	token, refused, forget := r.awaitRefusal()
	defer forget()
	done := inForceInAll
	leaves := slices.ContainsFunc(changes, func(c protocol.Change) bool { return c.Kind == protocol.RemoveMember && c.Member.ID == r.opt.Self })
	if leaves { // this member soon receives nothing of the first instance, and applies nothing any more
		done = func(configs []protocol.Config, changes []protocol.Change) bool { return inForce(&configs[0], changes) }
	}
	r.first().input(protocol.ProposeChange{Context: token, Changes: changes}, 0)
	err := r.apply.whenConfig(ctx, refused, func(all []protocol.Config) bool { return done(all, changes) })
	if err != nil || !leaves {
		return err
	}
	return r.poll(ctx, "removal from all instances", 5*r.opt.ElectionTimeout, nil, func() bool {
		return !slices.ContainsFunc(r.all()[1:], func(l *eventLoop) bool { return !l.left() })
	})
}

// left reports whether the instance goes on without this member. Then this member may stop it.
func (l *eventLoop) left() bool {
	st := l.status.Load()
	return st.Config.Find(l.r.opt.Self) == nil && (st.Role != protocol.Leader || st.Commit >= st.Last)
}

// poll waits until ok reports true of the loops' status, until a refusal comes, or until timeout.
func (r *Replica) poll(ctx context.Context, what string, timeout time.Duration, refused <-chan protocol.Rejection, ok func() bool) error {
	ticker := time.NewTicker(max(r.opt.Heartbeat/10, time.Millisecond))
	defer ticker.Stop()
	limit := time.NewTimer(timeout)
	defer limit.Stop()
	for {
		select {
		case <-ticker.C:
			if ok() {
				return nil
			}
		case ref := <-refused:
			return &member.RefusedError{What: what, Reason: ref.Reason, Leader: ref.Leader}
		case <-limit.C:
			return &member.StalledError{What: what, For: timeout}
		case <-ctx.Done():
			return ctx.Err()
		case <-r.stop:
			return r.stopped()
		}
	}
}

// awaitRefusal returns a token, which a request to the core has as its context, and a channel on
// which a refusal of that request comes. forget ends the wait.
func (r *Replica) awaitRefusal() (token uint64, refused <-chan protocol.Rejection, forget func()) {
	token = r.contexts.Add(1) | 1<<63 // differs from all contexts of reads
	c := make(chan protocol.Rejection, 1)
	r.cmu.Lock()
	defer r.cmu.Unlock()
	r.changes[token] = c
	return token, c, func() {
		r.cmu.Lock()
		defer r.cmu.Unlock()
		delete(r.changes, token)
	}
}

// refused passes a refusal on to the membership change or transfer that waits for it.
func (r *Replica) refused(ref protocol.Rejection) {
	r.cmu.Lock()
	defer r.cmu.Unlock()
	if c := r.changes[ref.Context]; c != nil {
		select {
		case c <- ref:
		default:
		}
	}
}

// TransferLeader hands leadership of the first instance to a voter (0: the most advanced one). It
// returns when the member that led sees the other leader. If one member is to lead all instances,
// the other instances follow. If the instances are spread, the others stay where they are, and the
// new leader of the first one keeps it, even if another member is preferred.
func (r *Replica) TransferLeader(ctx context.Context, to protocol.MemberID) error {
	if to != 0 && r.first().status.Load().Leader == to {
		return nil
	}
	return r.atLeader(ctx, "leadership transfer", askTransfer, to, func(ctx context.Context) error { return r.transfer(ctx, to) })
}

// transfer hands leadership of the first instance over. This member leads it.
func (r *Replica) transfer(ctx context.Context, to protocol.MemberID) error {
	first := r.first()
	st := first.status.Load()
	if to != 0 && !st.Config.Voter(to) {
		return &member.RefusedError{What: "leadership transfer", Reason: protocol.ReasonInvalidChange, Leader: st.Leader}
	}
	if to == r.opt.Self {
		return nil
	}
	token, refused, forget := r.awaitRefusal()
	defer forget()
	first.input(protocol.Transfer{To: to, Context: token}, 0)
	leader := protocol.MemberID(0)
	err := r.poll(ctx, "leadership transfer", 3*r.opt.ElectionTimeout, refused, func() bool {
		leader = first.status.Load().Leader
		return leader != 0 && leader != r.opt.Self && (to == 0 || leader == to)
	})
	if err == nil {
		r.transferred(ctx, leader)
	}
	return err
}

// transferred makes the other instances that this member leads follow the first one to its new
// leader. If the instances are spread, it tells the new leader instead that an operator chose it.
// If that request fails, leadership of the first instance may move again.
func (r *Replica) transferred(ctx context.Context, leader protocol.MemberID) {
	if r.opt.Leaders != protocol.LeadersSpread {
		for _, l := range r.all()[1:] {
			l.input(protocol.Transfer{To: leader}, 0)
		}
		return
	}
	if _, err := r.links.Request(ctx, uint64(leader), []byte{askStay}); err != nil {
		r.log.Info("a leader was not told to stay", "member", leader, "err", err)
	}
}

// LogStats and LinkStats are the counts of packages wal and transport.
type (
	LogStats  = wal.WriterStats
	LinkStats = transport.Stats
)

// Status is what a member knows of itself and its cluster.
type Status struct {
	Instances []protocol.Status
	// Begun is the number of instances with which the cluster began.
	Begun int
	// Weave says where each of Instances is in the global log; nil unless they are woven.
	Weave    []member.WeaveStatus
	Applied  order.Cursor
	Config   protocol.Config // as applied
	LogBytes int64
	Log      LogStats
	Links    LinkStats
	Bodies   BodyStats
	Disk     member.DiskStats
	// PendingBytes are the bytes of this member's proposals that are not settled.
	PendingBytes int64
	// Commits counts the entries committed in this life, Dropped the messages that were dropped
	// because an inbox was full, and Snapshots the snapshots that were written.
	Commits, Dropped, Snapshots uint64
}

// Status describes the member.
func (r *Replica) Status() Status {
	var instances []protocol.Status
	var weave []member.WeaveStatus
	for _, l := range r.all() {
		instances = append(instances, *l.status.Load())
		if w := l.woven.Load(); w != nil {
			w := *w
			w.Waiting = r.apply.backlogOf(l.id)
			weave = append(weave, w)
		}
	}
	cursor, configs := r.apply.at()
	return Status{
		Begun:     len(r.opt.Begin.Points),
		Instances: instances, Weave: weave, Applied: cursor, Config: configs[0],
		LogBytes: r.wal.Size(), Log: r.writer.Metrics(), Links: r.links.Stats(), Bodies: r.bodies.stats(), Disk: r.disk.Stats(),
		PendingBytes: r.proposer.pendingBytes(),
		Commits:      r.metrics.commits.Load(), Dropped: r.metrics.dropped.Load(), Snapshots: r.metrics.snapshots.Load(),
	}
}
