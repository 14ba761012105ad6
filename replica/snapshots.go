package replica

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/braidlog/braid/datadir"
	"github.com/braidlog/braid/member"
	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
)

// requestView asks the apply loop for a view of the state as it is now. A view that comes too late is
// closed.
func (l *applyLoop) requestView(ctx context.Context) (member.StateView, error) {
	reply, gone := make(chan member.StateView), make(chan struct{})
	defer close(gone)
	l.push(member.ApplyItem{View: func(v member.StateView) {
		select {
		case reply <- v:
		case <-gone:
			if v.State != nil {
				_ = v.State.Close() // nobody has read from it
			}
		}
	}})
	select {
	case v := <-reply:
		return v, v.Err
	case <-ctx.Done():
		return member.StateView{}, ctx.Err()
	case <-l.r.stop:
		return member.StateView{}, member.ErrStopped
	}
}

// askSnapshot has the state as it is now sent to a member. With l, that instance's leader is here and
// has no log for the member any more. Without l, the member misses an instance that is retired, or
// its state is damaged. One stream serves all that ask while it runs.
func (r *Replica) askSnapshot(l *eventLoop, to protocol.MemberID, term protocol.Term) {
	h := stream{Term: term}
	if l != nil {
		h.Instance, h.After = l.id, l.inst.Core().Status().First-1
	}
	r.lmu.Lock()
	begin := r.streams.Ask(to, h.Instance)
	r.lmu.Unlock()
	if begin {
		r.spawn(func(ctx context.Context) { r.sendSnapshot(ctx, to, h) })
	}
}

// sendSnapshot streams the state as it is now to a member, and tells those who asked how it ended.
func (r *Replica) sendSnapshot(ctx context.Context, to protocol.MemberID, h stream) {
	began := r.now()
	cursor, err := r.streamSnapshot(ctx, to, h)
	if err != nil {
		r.log.Warn("sending a snapshot failed", "to", to, "err", err)
		cursor = order.Cursor{}
	} else {
		r.log.Info("snapshot sent", "to", to, "position", cursor.Position, "took", r.now()-began)
	}
	r.lmu.Lock()
	askers := r.streams.End(to)
	r.lmu.Unlock()
	for _, id := range askers {
		if l := r.hosted(id); l != nil {
			l.input(protocol.SnapshotSent{To: to, Index: cursor.Point(id).Index}, 0)
		}
	}
}

func (r *Replica) streamSnapshot(ctx context.Context, to protocol.MemberID, h stream) (order.Cursor, error) {
	v, err := r.apply.requestView(ctx)
	if err != nil {
		return order.Cursor{}, err
	}
	r.lmu.Lock()
	r.streams.Begun(to, v.Meta.Cursor)
	r.lmu.Unlock()
	h.SnapshotHeader = datadir.SnapshotHeader{Meta: v.Meta, HasState: true}
	meta, err := json.Marshal(h)
	if err == nil {
		err = r.links.SendSnapshot(ctx, uint64(to), meta, writeView(ctx, v.State))
	}
	return v.Meta.Cursor, errors.Join(err, v.State.Close())
}

// HandleSnapshot implements transport.Handler. It makes a received snapshot durable and offers it to
// the cores.
func (r *Replica) HandleSnapshot(from uint64, meta []byte, body io.Reader) error {
	var h stream
	if err := json.Unmarshal(meta, &h); err != nil {
		return &protocol.CorruptError{What: "snapshot stream", Detail: err.Error()}
	}
	if len(h.Cursor.Points) == 0 || len(h.Cursor.Points) != 1+len(h.Others) {
		return &protocol.CorruptError{What: "snapshot stream", Detail: "no instances"}
	}
	verdict, err := r.admitSnapshot(&h)
	switch {
	case err != nil:
		return err
	case verdict == member.IntakeKnown:
		r.offer(from, &h) // not needed, but the sender should learn how far this member is
		return nil
	case verdict == member.IntakeLog:
		return nil // the sender tries from where its snapshot ends, and learns from the answer
	}
	err = r.receive(from, &h, body)
	r.intake.done(&h.Cursor, err)
	return err
}

// intake holds the SnapshotIntake, and what others wait for.
type intake struct {
	mu    sync.Mutex
	rule  member.SnapshotIntake
	ended chan struct{} // closed when the snapshot that is being received has come or failed
}

// admitSnapshot asks the SnapshotIntake what to do with a snapshot. It waits while another snapshot is
// being received. The link ensures that this one comes or fails.
func (r *Replica) admitSnapshot(h *stream) (member.SnapshotVerdict, error) {
	o := member.SnapshotOffer{Cursor: h.Cursor, Instance: h.Instance, Base: h.After}
	for {
		have, _ := r.apply.at()
		_, repairing := r.apply.repairing()
		r.intake.mu.Lock()
		verdict := r.intake.rule.Offer(&have, repairing, &o)
		if verdict == member.IntakeTake {
			r.intake.ended = make(chan struct{})
		}
		ended := r.intake.ended
		r.intake.mu.Unlock()
		if verdict != member.IntakeWait {
			return verdict, nil
		}
		select {
		case <-ended:
		case <-r.stop:
			return verdict, member.ErrStopped
		}
	}
}

func (i *intake) done(got *order.Cursor, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err != nil {
		got = nil
	}
	i.rule.Done(got)
	close(i.ended)
}

// receive writes a snapshot to a file, and offers it to the cores.
func (r *Replica) receive(from uint64, h *stream, body io.Reader) error {
	copyBody := func(w io.Writer) error {
		_, err := io.Copy(w, body)
		return err
	}
	if err := r.snaps.Receive(h.SnapshotHeader, copyBody); err != nil {
		poke(r.apply.useless)
		return err
	}
	r.offer(from, h)
	r.overRetired(&h.Meta)
	if _, repairing := r.apply.repairing(); repairing {
		r.apply.push(member.ApplyItem{Repair: true})
	}
	return nil
}

// overRetired installs a snapshot for an instance that is retired in it. If this member has everything
// else, no core accepts the snapshot.
func (r *Replica) overRetired(meta *member.Meta) {
	for _, l := range r.all() {
		if meta.Cursor.Retired(l.id) {
			r.apply.pushInstall(l.id, &protocol.Base{})
			return
		}
	}
}

// offer tells all cores about a durable snapshot. Each core accepts it or not, by what it knows to be
// committed. The sender is the leader only of the instance that asked, so only that core gets the term.
func (r *Replica) offer(from uint64, h *stream) {
	for _, l := range r.all() {
		if h.Cursor.Point(l.id) == (order.Point{Instance: l.id}) {
			continue // the snapshot has nothing of this instance, or it was not in force in it
		}
		in := protocol.SnapshotReceived{From: protocol.MemberID(from), Base: h.Base(l.id)}
		if l.id == h.Instance {
			in.Term = h.Term
		}
		l.input(in, 0)
	}
}

// stream is a snapshot's header on its way to another member, with the instance whose leader sends
// the snapshot, and that leader's term.
type stream struct {
	Instance protocol.InstanceID `json:"instance"`
	Term     protocol.Term       `json:"term"`
	// After is the index after which the sender has that instance's log; 0: the sender did not say.
	After protocol.Index `json:"after,omitempty"`
	datadir.SnapshotHeader
}

// writeView makes a function for datadir.Snapshots.Write or SendSnapshot from a state machine's Snapshot.
func writeView(ctx context.Context, view member.Snapshot) func(io.Writer) error {
	return func(w io.Writer) error { return view.WriteTo(ctx, w) }
}
