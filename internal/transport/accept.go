package transport

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"time"
)

const (
	maxHandshakes = 128 // connections in the handshake, or fewer: see handshakes
	maxGuests     = 64  // members that may talk without being peers
	maxIncoming   = 4   // snapshots from one member at a time
)

// inKey names an accepted connection. Frames: one per stream. Requests: one. Snapshots: a few, distinguished by
// stream.
type inKey struct {
	from   uint64
	what   purpose
	stream uint32
}

// inbound is an accepted connection.
type inbound struct {
	key     inKey
	conn    net.Conn
	ctx     context.Context // ends with the connection, with the cause
	end     context.CancelCauseFunc
	gone    chan struct{} // closed when nothing of it runs any more
	counted *counters
}

// listen accepts connections of one network card.
func (t *Transport) listen(card uint32, l net.Listener) {
	pause := time.Duration(0)
	for {
		conn, err := l.Accept()
		switch {
		case t.ctx.Err() != nil:
			if err == nil {
				hangUp(conn)
			}
			return
		case errors.Is(err, net.ErrClosed):
			t.log.Error("listener closed", "addr", l.Addr(), "err", err)
			if t.opt.Deaf != nil {
				t.opt.Deaf(&ListenerError{Addr: l.Addr().String(), Err: err})
			}
			return
		case err != nil: // e.g. out of file descriptors: others may free some
			t.refused(l.Addr().String(), err)
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(pause):
			case <-t.ctx.Done():
			}
			continue
		}
		pause = 0
		if !t.spawn(func() { t.admit(conn, card) }) {
			hangUp(conn)
		}
	}
}

// admit makes the handshake and then serves the connection.
func (t *Transport) admit(raw net.Conn, card uint32) {
	addr := raw.RemoteAddr().String()
	if !t.addWaiting(raw) {
		raw.Close()
		return
	}
	conn := t.shaper.wrap(raw, card, 0, nil)
	in, err := t.receive(conn)
	t.removeWaiting(raw)
	if err != nil {
		hangUp(conn)
		switch {
		case errors.Is(err, errAnswered):
			t.log.Info("a new member was told who the members are", "addr", addr)
		case t.ctx.Err() == nil:
			t.refused(addr, err)
		}
		return
	}
	if t.shaper.on() && !isShaped(in.conn) { // SetNet came within the handshake
		in.end(ErrDropped)
	}
	t.serve(in)
}

// handshakes is how many connections may be in the handshake if the limit of descriptors allows that many: strangers
// must not exhaust the descriptors that the member needs.
func handshakes(descriptors int) int { return max(8, min(maxHandshakes, descriptors/16)) }

// addWaiting notes a connection whose handshake is in progress. If there are more than there may be, the oldest is
// closed, so a flood of strangers costs no more than that.
func (t *Transport) addWaiting(conn net.Conn) bool {
	if tc, ok := conn.(*net.TCPConn); ok {
		if err := tc.SetKeepAliveConfig(keepAlive); err != nil {
			return false
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	if len(t.waiting) >= t.handshakes {
		t.waiting[0].Close()
		t.waiting = slices.Delete(t.waiting, 0, 1)
	}
	t.waiting = append(t.waiting, conn)
	return true
}

func (t *Transport) removeWaiting(conn net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting, conn); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
}

// register enters a connection, or explains why not.
func (t *Transport) register(h *hello, conn net.Conn) (*inbound, Reason) {
	in := &inbound{key: inKey{h.from, h.purpose, h.stream}, conn: conn, gone: make(chan struct{})}
	limit := time.NewTimer(t.timing.handshake / 2)
	defer limit.Stop()
	for {
		older, reason := t.enter(in)
		if reason != 0 || older == nil {
			return in, reason
		}
		older.end(ErrReplaced)
		select {
		case <-older.gone:
		case <-limit.C: // its handler does not return
			return nil, ReasonBusy
		case <-t.ctx.Done():
			return nil, ReasonClosing
		}
	}
}

// enter puts in into the table, unless an older connection is still there.
func (t *Transport) enter(in *inbound) (older *inbound, reason Reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ReasonClosing
	}
	if in.key.what == forRequests {
		in.key.stream %= maxRequestConns
	}
	if in.key.what == forSnapshot {
		for in.key.stream = 0; t.inbound[in.key] != nil; in.key.stream++ {
		}
		if in.key.stream >= maxIncoming {
			return nil, ReasonBusy
		}
	}
	if older := t.inbound[in.key]; older != nil {
		return older, 0
	}
	if in.key.what == forFrames && t.countInbound(in.key.from) >= t.opt.MaxStreams+maxIncoming+maxRequestConns {
		return nil, ReasonBusy
	}
	if in.counted = t.countersOf(in.key.from); in.counted == nil {
		return nil, ReasonBusy
	}
	in.ctx, in.end = context.WithCancelCause(t.ctx)
	t.inbound[in.key] = in
	return nil, 0
}

func (t *Transport) countInbound(from uint64) (n int) {
	for k := range t.inbound {
		if k.from == from {
			n++
		}
	}
	return n
}

// countersOf returns the counters of a member's traffic; nil: too many guests.
func (t *Transport) countersOf(id uint64) *counters {
	if p := t.peer(id); p != nil {
		return p.counted
	}
	if c := t.guests[id]; c != nil {
		return c
	}
	if len(t.guests) >= maxGuests {
		return nil
	}
	c := t.newCounters()
	t.guests[id] = c
	return c
}

func (t *Transport) unregister(in *inbound) {
	in.end(nil)
	t.mu.Lock()
	delete(t.inbound, in.key)
	if t.countInbound(in.key.from) == 0 {
		delete(t.guests, in.key.from)
	}
	t.mu.Unlock()
	close(in.gone)
}

// endUnadmitted ends the connections of members that may no longer talk.
func (t *Transport) endUnadmitted() {
	t.mu.Lock()
	var all []*inbound
	for _, in := range t.inbound {
		all = append(all, in)
	}
	t.mu.Unlock()
	for _, in := range all {
		if t.admission(in.key.from) != 0 {
			in.end(ErrRemoved)
		}
	}
}

// serve reads a connection until it ends.
func (t *Transport) serve(in *inbound) {
	defer t.unregister(in)
	if p := t.peer(in.key.from); p != nil {
		p.retry() // it is alive
	}
	ended := make(chan struct{})
	unhook := context.AfterFunc(in.ctx, func() {
		defer close(ended)
		in.sendReason(t)
		hangUp(in.conn)
	})
	var err error
	switch in.key.what {
	case forFrames:
		err = t.readFrames(in)
	case forRequests:
		err = t.answerRequests(in)
	case forSnapshot:
		err = t.readSnapshot(in)
	}
	in.end(err)
	if !unhook() {
		<-ended
	}
	hangUp(in.conn)
	t.log.Debug("incoming connection ended", "member", hexID(in.key.from), "for", in.key.what,
		"stream", in.key.stream, "addr", in.conn.RemoteAddr(), "err", context.Cause(in.ctx))
}

// sendReason tells the dialer why its connection ends, if that is possible without waiting.
func (in *inbound) sendReason(t *Transport) {
	own, err := t.told()
	if in.key.what != forFrames || err != nil {
		return
	}
	r := t.replyTo(in.key.from, &own, ReasonMalformed)
	var malformed *FrameError
	switch err := context.Cause(in.ctx); {
	case errors.Is(err, ErrRemoved):
		r.reason = cmp.Or(t.admission(in.key.from), ReasonUnknown)
	case errors.Is(err, ErrReplaced):
		r.reason = ReasonReplaced
	case errors.Is(err, ErrClosed):
		r.reason = ReasonClosing
	case !errors.As(err, &malformed):
		return
	}
	if err := in.conn.SetWriteDeadline(time.Now().Add(goodbye)); err == nil {
		in.conn.Write(r.encode()) // best effort
	}
}
