package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/braidlog/braid/order"
	"github.com/braidlog/braid/protocol"
)

// maxEntriesBetween is how many entries may gather between snapshots, whatever their
// size: each costs the core some memory.
const maxEntriesBetween = 200_000

// At opens the newest snapshot with a state, which must go as far as this base in an
// instance. It may go further: what a snapshot holds is committed.
func (s *Snapshots) At(base protocol.Base, instance protocol.InstanceID) (*SnapshotReader, error) {
	all, err := s.positions()
	if err != nil {
		return nil, err
	}
	for i := len(all) - 1; i >= 0; i-- {
		f, err := s.Open(all[i])
		if err != nil {
			return nil, err
		}
		if f.Header.HasState && f.Header.covers(instance, base.Index) {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("braid: no snapshot at index %d of instance %d in %s", base.Index, instance, s.dir)
}

// maybeSnapshot begins a snapshot when enough was applied since the last one.
func (l *applyLoop) maybeSnapshot() error {
	if l.busy || l.logged < l.r.opt.SnapshotBytes && l.entries < maxEntriesBetween {
		return nil
	}
	l.logged, l.entries = 0, 0
	l.busy = true
	if d, ok := l.applier.sm.(DurableStateMachine); ok {
		return l.checkpoint(d)
	}
	v := l.view()
	if v.err != nil {
		return fmt.Errorf("state machine: snapshot: %w", v.err)
	}
	l.r.spawn(func(ctx context.Context) {
		err := l.r.snaps.Write(v.header, writeView(ctx, v.view))
		l.wrote(v.header.Meta, errors.Join(err, v.view.Close()))
	})
	return nil
}

// checkpoint notes how far a state machine on disk has come, after making that durable.
func (l *applyLoop) checkpoint(d DurableStateMachine) error {
	if err := d.Sync(); err != nil {
		return fmt.Errorf("state machine: sync: %w", err)
	}
	h := SnapshotHeader{Meta: l.applier.Meta()}
	l.r.spawn(func(context.Context) { l.wrote(h.Meta, l.r.snaps.Write(h, nil)) })
	return nil
}

// wrote ends a snapshot: the log may be cut, and the next snapshot may begin. Failing to
// write one loses nothing; it is tried again after as much log.
func (l *applyLoop) wrote(meta Meta, err error) {
	if err != nil {
		l.r.log.Error("snapshot failed", "position", meta.Cursor.Position, "err", err)
	} else {
		l.r.log.Info("snapshot written", "position", meta.Cursor.Position)
		l.r.metrics.snapshots.Add(1)
		l.r.loop.snapshotWritten(meta)
	}
	l.push(applyItem{wrote: true})
}

// requestView asks the apply loop for a snapshot of the state as it is now.
func (l *applyLoop) requestView(ctx context.Context) (viewReply, error) {
	reply := make(chan viewReply, 1)
	l.push(applyItem{view: reply})
	select {
	case v := <-reply:
		return v, v.err
	case <-ctx.Done():
		return viewReply{}, ctx.Err()
	case <-l.r.stop:
		return viewReply{}, ErrStopped
	}
}

// sendSnapshot streams the state as it is now to a member that is behind the log.
func (r *Replica) sendSnapshot(ctx context.Context, to protocol.MemberID, term protocol.Term) {
	began := time.Now()
	index, err := r.streamSnapshot(ctx, to, term)
	if err != nil {
		r.log.Warn("sending a snapshot failed", "to", to, "err", err)
		index = 0
	} else {
		r.log.Info("snapshot sent", "to", to, "index", index, "took", time.Since(began))
	}
	r.loop.input(protocol.SnapshotSent{To: to, Index: index}, 0)
}

func (r *Replica) streamSnapshot(ctx context.Context, to protocol.MemberID, term protocol.Term) (protocol.Index, error) {
	v, err := r.apply.requestView(ctx)
	if err != nil {
		return 0, err
	}
	meta, err := json.Marshal(stream{Term: term, SnapshotHeader: v.header})
	if err == nil {
		err = r.links.SendSnapshot(ctx, uint64(to), meta, writeView(ctx, v.view))
	}
	return v.header.Cursor.Point(r.instance).Index, errors.Join(err, v.view.Close())
}

// HandleSnapshot implements transport.Handler: it makes a received snapshot durable and
// offers it to the core.
func (r *Replica) HandleSnapshot(from uint64, meta []byte, body io.Reader) error {
	var h stream
	if err := json.Unmarshal(meta, &h); err != nil {
		return &protocol.CorruptError{What: "snapshot stream", Detail: err.Error()}
	}
	cursor, _ := r.apply.at()
	if h.Cursor.Position <= cursor.Position {
		return r.offer(from, h) // of no use, but the sender should learn how far this member is
	}
	copyBody := func(w io.Writer) error {
		_, err := io.Copy(w, body)
		return err
	}
	if err := r.snaps.Write(h.SnapshotHeader, copyBody); err != nil {
		return err
	}
	return r.offer(from, h)
}

func (r *Replica) offer(from uint64, h stream) error {
	r.loop.input(protocol.SnapshotReceived{From: protocol.MemberID(from), Term: h.Term, Base: h.Base(r.instance)}, 0)
	return nil
}

// Restore brings the state machine and its meta to the newest snapshot, at start. It
// returns how far the state of a state machine on disk is already.
func Restore(s *Snapshots, sm StateMachine) (meta Meta, skip protocol.Position, err error) {
	h, ok, err := s.Newest()
	if err != nil {
		return meta, 0, err
	}
	d, durable := sm.(DurableStateMachine)
	if durable {
		skip = d.Applied()
	}
	switch {
	case !ok && skip > 0:
		return meta, 0, &DirError{s.dir, fmt.Sprintf("the state machine is at position %d, but there is no snapshot", skip)}
	case !ok, durable && skip >= h.Command:
		return h.Meta, skip, nil
	case !h.HasState && h.Command > 0:
		return meta, 0, &DirError{s.dir, fmt.Sprintf(
			"the log begins after command %d, but the state machine is only at %d", h.Command, skip)}
	case !h.HasState:
		return h.Meta, skip, nil
	}
	f, err := s.Open(h.Cursor.Position)
	if err != nil {
		return meta, 0, err
	}
	defer f.Close()
	if err := sm.Restore(f); err != nil {
		return meta, 0, fmt.Errorf("state machine: restore: %w", err)
	}
	return h.Meta, h.Command, f.Verify()
}

// Bootstrap is the meta of a cluster's first moment: nothing happened in its instances,
// these are the members, who hold the rows of coded bodies in their order.
func Bootstrap(begin order.Cursor, members []protocol.Member) Meta {
	config := protocol.Config{Members: slices.Clone(members)}
	config.Number()
	m := Meta{Cursor: begin, Config: config}
	for range begin.Points[1:] {
		m.Others = append(m.Others, config.Clone())
	}
	return m
}
