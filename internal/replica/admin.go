package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/internal/member/damage"
	"github.com/braidlog/braid/internal/member/instance"
	"github.com/braidlog/braid/internal/member/snapshot"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/transport"
	"github.com/braidlog/braid/internal/wal"
	"github.com/braidlog/braid/protocol"
)

// A request between members starts with a byte. The byte says who or what the request is for, or is
// a cluster.OperationKind.
const (
	askProgram byte = 'p' // Options.Answer
	askStay    byte = 's' // for the leader of the first instance: keep leading it
	askMissing byte = 'm' // for the leader: this member needs an instance that may be retired
	askState   byte = 'd' // for any member: this member's state is damaged
	askLink    byte = 'l' // for any member: this member has a link to it, and is to be found there
	askReport  byte = 'f' // for any member: what this member measured; the answer is what the leader's fitter decided
	askDrained byte = 'n' // for any member: this member is to lead nothing, or may lead again
	askOrigin  byte = 'o' // for any member: where this member's log comes from; the answer says where that one's does
)

func (r *Replica) answer(ctx context.Context, from protocol.MemberID, request []byte) ([]byte, error) {
	if len(request) == 0 {
		return nil, errors.New("empty request")
	}
	if op, ok, err := cluster.DecodeOperation(request); ok {
		if err == nil {
			err = r.execute(ctx, op)
		}
		return cluster.EncodeAnswer(err)
	}
	switch body := request[1:]; request[0] {
	case askProgram:
		if r.opt.Answer == nil {
			return nil, errors.New("this member answers no requests")
		}
		return r.opt.Answer(ctx, from, body)
	case askMissing:
		var id protocol.InstanceID
		if err := json.Unmarshal(body, &id); err != nil {
			return nil, err
		}
		r.exchange.do(func(m *snapshot.StateExchange) { m.Missing(from, id) })
	case askState:
		var q snapshot.StateQuestion
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, err
		}
		var err error
		r.exchange.do(func(m *snapshot.StateExchange) { err = m.StateAsked(from, &q) })
		return cluster.EncodeAnswer(err)
	case askLink:
		var m protocol.Member
		if err := json.Unmarshal(body, &m); err != nil {
			return nil, err
		}
		r.welcome(from, &m)
	case askReport:
		return r.fitting.answerReport(from, body)
	case askOrigin:
		return r.who.answerOrigin(from, body)
	case askDrained:
		r.noteDrained(from, body)
	case askStay:
		first := r.first()
		first.do(first.hosted.Stay)
	default:
		return nil, fmt.Errorf("unknown request %q", request[0])
	}
	return cluster.EncodeAnswer(nil)
}

// Ask sends a request to the Options.Answer of a member, which may be this one.
func (r *Replica) Ask(ctx context.Context, to protocol.MemberID, request []byte) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, notSent(ctx)
	}
	if r.ctx.Err() != nil {
		return nil, r.stopped()
	}
	if to == r.opt.Self {
		return r.answer(ctx, to, append([]byte{askProgram}, request...))
	}
	answer, err := r.links.Request(ctx, uint64(to), append([]byte{askProgram}, request...))
	if err != nil && r.ctx.Err() != nil {
		err = errors.Join(r.stopped(), err)
	}
	return answer, err
}

// ask asks a member for something. what says for what.
func (r *Replica) ask(ctx context.Context, to protocol.MemberID, what string, request []byte) error {
	answer, err := r.links.Request(ctx, uint64(to), request)
	if err != nil {
		return fmt.Errorf("%s at leader %s: %w", what, to, err)
	}
	return cluster.DecodeAnswer(what, answer)
}

// LogStats and LinkStats are the counts of packages wal and transport.
type (
	LogStats  = wal.WriterStats
	LinkStats = transport.Stats
)

// Status is what a member knows of itself and its cluster.
type Status struct {
	Instances []protocol.Status
	// Lead says who leads the global log.
	Lead order.Lead
	// Begun is the number of instances with which the cluster began.
	Begun int
	// Weave says where each of Instances is in the global log; nil unless they are merged.
	Weave    []instance.MergeStatus
	Applied  order.Cursor
	Config   protocol.Config // as applied
	LogBytes int64
	Log      LogStats
	Links    LinkStats
	Trips    []fit.Trip // round trips to other members that are known
	Bodies   BodyStats
	Disk     damage.DiskStats
	// PendingBytes are the bytes of this member's proposals that are not settled.
	PendingBytes int64
	// Commits counts the entries committed in this incarnation, Dropped the messages that were dropped because an inbox
	// was full, and Snapshots the snapshots that were written.
	Commits, Dropped, Snapshots uint64
	// Starved counts the steps outside the log that waited because the process had no descriptor left.
	Starved uint64
	Stages  StageStats
	// SnapshotTimes is how long snapshots took.
	SnapshotTimes SnapshotStats
	// Fit is the newest decision of the leader's fitter that this member knows; nil: it knows none. It does not change.
	Fit *fit.Published
	// Fitted counts what this member's own fitter did.
	Fitted fit.Done
}

// Status describes the member.
func (r *Replica) Status() Status {
	var known []*protocol.Status
	var instances []protocol.Status
	var weave []instance.MergeStatus
	for _, l := range r.all() {
		st := l.status.Load()
		known, instances = append(known, st), append(instances, *st)
		if w := l.woven.Load(); w != nil {
			w := *w
			w.Waiting = r.apply.backlogOf(l.id)
			weave = append(weave, w)
		}
	}
	cursor, configs := r.apply.at()
	s := Status{
		Begun: len(r.opt.Begin.Points), Lead: cursor.Lead(known),
		Instances: instances, Weave: weave, Applied: cursor, Config: configs[0],
		LogBytes: r.dir.Log.Size(), Log: r.writer.Metrics(), Links: r.links.Stats(), Bodies: r.bodies.stats(),
		Disk: r.disk.Stats(), PendingBytes: r.proposer.pendingBytes(),
		Commits: r.metrics.commits.Load(), Dropped: r.metrics.dropped.Load(), Snapshots: r.metrics.snapshots.Load(),
		Starved: r.metrics.starved.Load(), Stages: r.stages.stats(),
		SnapshotTimes: r.snapshots.stats(r.apply.installing()),
	}
	if r.fitting != nil {
		s.Fit, s.Fitted, s.Trips = r.fitting.newest(), r.fitting.done(), r.fitting.shortest()
	}
	return s
}

// Profile is the applied profile.
func (r *Replica) Profile() protocol.Profile {
	_, configs := r.apply.at()
	return configs[0].Profile
}
