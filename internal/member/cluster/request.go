package cluster

import (
	"errors"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// MemberView is what a member knows of itself when an operation is looked at.
type MemberView struct {
	Now       time.Duration
	Instances []*protocol.Status // of the active instances
	Applied   *apply.Applied
	// Up reports whether the link to a member is up; nil: that is not known.
	Up func(protocol.MemberID) bool
	// Version says what the link to another member shows of its version; nil: that is not known.
	Version func(protocol.MemberID) Version
	// Drained are the other members that are drained.
	Drained []protocol.MemberID
}

// Lead says who leads the global log, as this member knows it.
func (v *MemberView) Lead() order.Lead {
	at, _ := v.Applied.At()
	return at.Lead(v.Instances)
}

// first is how the instance stands whose leader leads the global log.
func (v *MemberView) first() *protocol.Status {
	id := v.Lead().Instance
	i := slices.IndexFunc(v.Instances, func(st *protocol.Status) bool { return st.Instance == id })
	return v.Instances[i]
}

// settled reports whether no change is in progress: no seal and no change of the number of instances remains to be
// applied here, and all active instances have the first one's members.
func (v *MemberView) settled() bool {
	at, configs := v.Applied.At()
	return !v.crossing() && at.Reshape == 0 && member.Settled(&v.first().Config, configs)
}

// Changing reports whether a change of the members, of the profile, of the number of instances or of the protocol is in
// progress, as far as this member knows.
func (v *MemberView) Changing() bool {
	_, configs := v.Applied.At()
	first := v.first()
	return !v.settled() || first.Undecided || first.Config.Joint() || first.Proposed != nil ||
		first.Sealed != protocol.SealNone || !first.Config.Profile.Equal(&configs[0].Profile) ||
		slices.ContainsFunc(first.Config.Members, func(m protocol.Member) bool { return m.Joining })
}

// crossing reports whether the active instances are behind a seal that this member has not applied yet.
func (v *MemberView) crossing() bool {
	at, _ := v.Applied.At()
	return at.Points[0].Instance != v.first().Instance
}

// Request is an operation at the member that an operator asked. It is sent to the leader of the
// first instance. It is tried again after a refusal that is passing, for example when there is no
// leader, or when another change is not complete. It is done when it shows on this member. It is a
// pure rule; not safe for concurrent use.
type Request struct {
	Op  Operation
	cfg member.OperationConfig

	asking bool              // the leader was asked and has not answered
	asked  bool              // a leader was asked
	leader protocol.MemberID // that was asked last
	left   time.Duration     // since when another one leads, or none; 0: it leads
	lost   error             // why no answer came to an earlier question; nil: one came to each
	again  time.Duration     // it is asked again no sooner
	last   error             // why it was refused last
	agreed time.Duration     // since when the leader says that it is done; 0: it does not
	ended  bool
	err    error
	watch  *apply.ConfigWatch
}

// NewRequest begins an operation. Members that are added as voters join first.
func NewRequest(cfg member.OperationConfig, op Operation, v *MemberView) *Request {
	op.Changes = v.first().Config.Joins(op.Changes)
	q := &Request{Op: op, cfg: cfg}
	q.ended = op.Kind == TransferLeader && op.To != 0 && v.Lead().Leader == op.To
	return q
}

// Next says what to do now. ask is the member to ask, which may be this one: its answer is for Answered. 0: no one.
func (q *Request) Next(v *MemberView) (ask protocol.MemberID, done bool, err error) {
	switch leader := v.Lead().Leader; {
	case q.ended:
	case q.agreed > 0:
		q.show(v)
	case q.asking || v.Now < q.again:
		return 0, false, nil
	case leader == 0:
		q.retry(v.Now, q.Op.refuse(protocol.ReasonNoLeader, 0))
	default:
		q.asking, q.asked, q.leader, q.left = true, true, leader, 0
		q.beginWatch(v)
		return leader, false, nil
	}
	return 0, q.ended, q.err
}

// beginWatch begins to watch for a membership change or a new profile before the leader is asked: before its answer
// comes, the change may be in effect here, and another one may take its place. What is in effect already may be older
// than the operation, so then the watch begins with the answer.
func (q *Request) beginWatch(v *MemberView) {
	if !q.Op.Kind.configures() || q.watch != nil {
		return
	}
	if w := v.Applied.Watch(q.Op.Changes, false); !w.Seen() {
		q.watch = w
	}
}

// retry waits for a while after a refusal that is passing.
func (q *Request) retry(now time.Duration, err error) {
	q.last, q.again = err, now+q.cfg.Heartbeat/2
}

// Deserted reports whether the member that was asked has not been the leader for an election timeout, so that another
// one may be asked. The link with a stalled member breaks much later.
func (q *Request) Deserted(v *MemberView) bool {
	switch {
	case !q.Op.Kind.repeats(), !q.asking, v.Lead().Leader == q.leader:
		q.left = 0
	case q.left == 0:
		q.left = max(v.Now, 1)
	}
	return q.left > 0 && v.Now-q.left >= q.cfg.Election
}

// Lost takes in that no answer comes, because of err. The leader may have begun.
func (q *Request) Lost(v *MemberView, err error) {
	q.asking = false
	err = q.Op.Unanswered(err)
	if !q.Op.Kind.repeats() {
		q.ended, q.err = true, err
		return
	}
	q.lost = err
	q.retry(v.Now, err)
}

// Answered takes in what became of the operation at the leader.
func (q *Request) Answered(v *MemberView, err error) {
	q.asking = false
	var refused *member.RefusedError
	switch {
	case errors.As(err, &refused) &&
		(passing(refused.Reason) || refused.Reason == protocol.ReasonRemoved && !v.first().Removed):
		q.retry(v.Now, err)
	case refused != nil && q.lost != nil && (refused.Reason != protocol.ReasonProfile || q.Op.Kind != Switch):
		q.ended, q.err = true, errors.Join(err, q.lost)
	case refused != nil || errors.Is(err, member.ErrMaybeCommitted):
		q.ended, q.err = true, err
	case err != nil: // perhaps it is carried out, and only the answer did not come
		q.ended, q.err = true, q.Op.Unanswered(err)
	default:
		q.agreed = max(v.Now, 1)
		q.show(v)
	}
}

// show ends the request when the operation shows on this member.
func (q *Request) show(v *MemberView) {
	switch q.Op.Kind {
	case ChangeMembers, Tune:
		if q.Op.removes(q.cfg.Self) { // it is in effect at the leader; this member may never learn of it
			q.ended = true
			break
		}
		if q.watch == nil {
			q.watch = v.Applied.Watch(q.Op.Changes, false)
		}
		q.ended = q.watch.Seen()
	case Reshape:
		at, _ := v.Applied.At()
		q.ended = len(v.Instances) == q.Op.Instances && len(at.Points) == q.Op.Instances
		q.giveUp(v)
	case Switch:
		q.ended = began(&q.cfg, &q.Op.Seal, v)
		q.giveUp(v)
	default:
		q.ended = true
	}
}

// giveUp ends a request that does not show on this member, though the leader said so long ago that it is done.
func (q *Request) giveUp(v *MemberView) {
	if v.Now-q.agreed >= q.cfg.GiveUp && !q.ended {
		q.ended, q.err = true, q.Op.Unanswered(&member.StalledError{What: q.Op.Kind.String(), For: q.cfg.GiveUp})
	}
}

// End ends the request, whether it is done or not.
func (q *Request) End(v *MemberView) { v.Applied.Unwatch(q.watch) }

// Unanswered is the error of a request that is not done when its operator waits no longer, because
// of err. A leader that refused may have begun before it was one no more.
func (q *Request) Unanswered(err error) error {
	switch {
	case q.agreed > 0 || q.asking || q.lost != nil:
		return q.Op.Unanswered(err)
	case q.asked:
		return errors.Join(q.last, err)
	}
	return errors.Join(member.ErrNotSent, q.last, err)
}
