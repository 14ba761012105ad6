package replica

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/braidlog/braid/internal/datadir"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/member/apply"
	"github.com/braidlog/braid/internal/member/snapshot"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

// exchange runs a member's StateExchange, and is what that asks of the member.
type exchange struct {
	r     *Replica
	mu    sync.Mutex
	rule  *snapshot.StateExchange
	ended chan struct{} // closed when no snapshot is being received any more; then there is another
}

func newExchange(r *Replica) *exchange {
	x := &exchange{r: r, ended: make(chan struct{})}
	x.rule = snapshot.NewStateExchange(x, r.tuning().Election, "")
	x.rule.Derive = r.opt.derive
	return x
}

// do lets f use the StateExchange.
func (x *exchange) do(f func(*snapshot.StateExchange)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rule.Election = x.r.tuning().Election
	f(x.rule)
}

// Now implements snapshot.ExchangeHost, as the methods below do.
func (x *exchange) Now() time.Duration { return x.r.now() }

func (x *exchange) At() (order.Cursor, []protocol.Config) { return x.r.apply.at() }

func (x *exchange) InForce() []protocol.InstanceID { return x.r.loops.Load().ids }

func (x *exchange) Tell(instance protocol.InstanceID, in protocol.Input) {
	if l := x.r.hosted(instance); l != nil {
		l.input(in, 0)
	}
}

func (x *exchange) Push(it apply.ApplyItem) { x.r.apply.push(it) }

func (x *exchange) View(to protocol.MemberID) {
	x.r.apply.push(apply.ApplyItem{View: func(v apply.StateView) {
		if v.Err != nil {
			x.unsent(to, v.Err)
		}
		x.do(func(m *snapshot.StateExchange) { m.Viewed(to, v) })
	}})
}

func (x *exchange) Send(to protocol.MemberID, o *member.SnapshotOffer, state member.Snapshot) {
	x.r.spawn(func(ctx context.Context) {
		began := x.r.now()
		meta, err := json.Marshal(o)
		if err == nil {
			err = x.r.snapshots.to(to).run(x.r.now, func() error {
				return x.r.links.SendSnapshot(ctx, uint64(to), meta, writeView(ctx, state))
			})
		}
		if err = errors.Join(err, state.Close()); err != nil {
			x.unsent(to, err)
		} else {
			x.r.log.Info("snapshot sent", "event", "snapshot-sent", "member", to,
				"position", o.Cursor.Position, "took", x.r.now()-began)
		}
		x.do(func(m *snapshot.StateExchange) { m.Sent(to, err) })
	})
}

func (x *exchange) unsent(to protocol.MemberID, err error) {
	x.r.log.Warn("sending a snapshot failed", "event", "snapshot-unsent", "member", to, "err", err)
}

func (x *exchange) Ended() {
	close(x.ended)
	x.ended = make(chan struct{})
}

func (x *exchange) AskState(to protocol.MemberID, q snapshot.StateQuestion) {
	x.r.spawn(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, q.Within)
		defer cancel()
		body, err := json.Marshal(&q)
		if err == nil {
			err = x.r.ask(ctx, to, "state", append([]byte{askState}, body...))
		}
		if err != nil {
			x.r.log.Info("a member does not send its state", "member", to, "err", err)
		}
		x.do(func(m *snapshot.StateExchange) { m.Answered(q, err) })
	})
}

// HandleSnapshot implements transport.Handler. It makes a snapshot durable if the StateExchange
// takes it.
func (r *Replica) HandleSnapshot(ctx context.Context, from uint64, meta []byte, body io.Reader) error {
	o := &member.SnapshotOffer{}
	if err := json.Unmarshal(meta, o); err != nil {
		return &protocol.CorruptError{What: "snapshot stream", Detail: err.Error()}
	}
	x, id := r.exchange, protocol.MemberID(from)
	if verdict, err := x.admit(ctx, id, o); err != nil || verdict != snapshot.IntakeTake {
		return err
	}
	began := r.now()
	err := r.snapshots.from(id).run(r.now, func() error {
		return r.dir.Snapshots.Receive(datadir.SnapshotHeader{Meta: o.Meta, HasState: o.HasState}, func(w io.Writer) error {
			_, err := io.Copy(w, body)
			return err
		})
	})
	if err == nil {
		r.snapshots.receive.observe(r.now() - began)
	}
	x.do(func(m *snapshot.StateExchange) { m.Received(id, o, err) })
	return err
}

// admit asks what to do with a snapshot. It waits as long as another one is being received. The link ensures that this
// one comes or fails, and tells when no one sends it any more.
func (x *exchange) admit(ctx context.Context, from protocol.MemberID,
	o *member.SnapshotOffer) (verdict snapshot.SnapshotVerdict, err error) {
	for {
		var ended chan struct{}
		x.do(func(m *snapshot.StateExchange) {
			verdict, err = m.Offered(from, o)
			ended = x.ended
		})
		if err != nil || verdict != snapshot.IntakeWait {
			return verdict, err
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return verdict, context.Cause(ctx)
		case <-x.r.stop:
			return verdict, member.ErrStopped
		}
	}
}

// CheckState says that the state machine may have found its state damaged. If it has, another
// member's state replaces it.
func (r *Replica) CheckState() { r.apply.push(apply.ApplyItem{Halt: true}) }

// writeView makes a function for datadir.Snapshots.Write or SendSnapshot from a state machine's Snapshot.
func writeView(ctx context.Context, view member.Snapshot) func(io.Writer) error {
	return func(w io.Writer) error { return view.WriteTo(ctx, w) }
}
