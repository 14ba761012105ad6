package iss

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// How a member that is behind catches up: it requests entries, and is sent them.

// catchUp is what a member that is behind has requested and received, and the snapshots that it sends others.
type catchUp struct {
	// requestedAt is when this member last requested entries, and grewAt when its log last grew. retryAfter is the
	// pause before it requests again. requestedAfter is how far its log went at the request.
	requestedAt, grewAt, retryAfter time.Duration
	requestedAfter                  protocol.Index
	// pending are messages with decided entries that do not follow the log's end yet, of pendingBytes.
	pending      []*protocol.Message
	pendingBytes int
	// streaming are the members that are being sent a snapshot from here.
	streaming map[protocol.MemberID]bool
}

// sending is how this member sends another one entries of the log. All leaders together fill the log, each with as
// many messages in flight as its window allows. So a member that is behind would never catch up with one message in
// a round trip.
type sending struct {
	// after is the slot after which the other member requested last.
	after protocol.Index
	// flights are in flight, oldest first, of bytes together.
	//
	//	after < each flight's last < the next one's; len(flights) ≤ window
	flights []paxos.Flight
	bytes   int
	// window limits the flights. It is one at first and when some may be lost, and grows by one with each request
	// that shows progress. It does not shrink with the depth.
	window int
	// sentAt is when entries were last sent, and retryAfter the pause before the same ones are sent again: they may
	// be on a slow link.
	sentAt, retryAfter time.Duration
}

// maxRetryTimeouts limits that pause, in election timeouts. A slow link may have a queue of many seconds, and each
// repetition makes it longer.
const maxRetryTimeouts = 8

// request handles a request, and returns after which slot entries are to be sent. again: not now. A request that
// goes back comes from a member that has lost the end of its log, or other requests overtook it: so it counts once
// in a heartbeat. Otherwise each message would cause a request, and each request many messages.
func (t *sending) request(
	after protocol.Index, now, heartbeat time.Duration, most int,
) (from protocol.Index, again bool) {
	switch {
	case t.sentAt != 0 && after <= t.after:
		pause := t.retryAfter
		if after < t.after {
			pause = min(pause, heartbeat)
		}
		if now < t.sentAt+pause {
			return 0, true
		}
		t.flights, t.bytes, t.window = nil, 0, 1
		return after, false
	case len(t.flights) == 0 || t.flights[len(t.flights)-1].Last < after:
		t.flights, t.bytes = nil, 0
	}
	for len(t.flights) > 0 && t.flights[0].Last <= after {
		t.bytes -= t.flights[0].Bytes
		t.flights = t.flights[1:]
	}
	t.retryAfter = 0
	if t.window < most {
		t.window++
	}
	if n := len(t.flights); n > 0 {
		return t.flights[n-1].Last, false
	}
	return after, false
}

// sendEntries sends a member decided entries after an index, as many as fit into its window, or a snapshot.
// Repeated requests are answered once.
func (s *ISS) sendEntries(to protocol.MemberID, after protocol.Index) {
	o := s.other(to)
	switch {
	case after >= s.log.Last(), after+1 < s.first() && s.cfg.Mutant == MutantPastDropped:
		return
	case after < s.log.Base:
		s.sendSnapshot(to)
		return
	case o == nil:
		s.sendRun(to, after)
		return
	}
	t := &o.sending
	from, again := t.request(after, s.now, s.cfg.Heartbeat, s.sendWindow(o))
	if again {
		return
	}
	t.after, t.sentAt, t.retryAfter = after, s.now,
		min(max(2*t.retryAfter, s.cfg.Heartbeat), maxRetryTimeouts*s.cfg.ElectionTimeout)
	for from < s.log.Last() && len(t.flights) < t.window && (len(t.flights) == 0 || t.bytes < s.cfg.MaxInflightBytes) {
		f := s.sendRun(to, from)
		t.flights, t.bytes = append(t.flights, f), t.bytes+f.Bytes
		from = f.Last
	}
}

// noteUnsent records which peers were not sent all of a segment because their windows were full when the epoch
// ended.
func (g *members) noteUnsent(b *broadcast) {
	for _, p := range b.peers {
		if o := g.other(p.ID); o != nil && p.Next <= b.prop.End {
			o.unsent = max(o.unsent, b.prop.End)
		}
	}
}

// sendRest sends a member what it was not sent when an epoch ended, now that it acknowledges what it was sent.
func (s *ISS) sendRest(m *protocol.Message) {
	if o := s.other(m.From); o != nil && m.Commit < o.unsent {
		s.sendEntries(m.From, m.Commit)
	}
}

// sendRun sends as many entries as fit into one message.
func (s *ISS) sendRun(to protocol.MemberID, after protocol.Index) (f paxos.Flight) {
	m := s.send(to, MsgTell, Part{})
	m.Entries = s.log.Run(after, s.cfg.MaxFrameBytes, s.cfg.MaxFrameEntries)
	f.Bytes = paxos.Bytes(m.Entries)
	f.Last, f.Sent = after+protocol.Index(len(m.Entries)), s.now
	return f
}

// sendWindow limits the messages in flight to a member that is behind: twice what all leaders together send it
// while it is not, so that it comes closer.
func (s *ISS) sendWindow(o *other) int {
	return 2 * max(1, len(s.epochVoters())) * s.depth(&paxos.Peer{ID: o.id, Trip: o.trip})
}

// onTell appends decided entries, and requests more as long as there are any. Messages that overtook others wait
// for them. It requests only if the log has grown since the last request: otherwise the requests in progress are
// enough.
func onTell(s *ISS, m *protocol.Message) {
	if len(m.Entries) > 0 && m.Entries[0].Index > s.log.Last()+1 {
		s.addPending(m)
		return
	}
	s.learnEntries(m.Entries)
	s.learnPending()
	if s.log.Last() > s.catchUp.requestedAfter && s.log.Last() < m.Commit {
		s.requestEntries(m.From)
	}
}

// learnPending appends pending entries that now follow the log's end, and drops those that the log has.
func (s *ISS) learnPending() {
	for i := 0; i < len(s.catchUp.pending); i++ {
		if first := s.catchUp.pending[i].Entries; first[0].Index <= s.log.Last()+1 {
			s.learnEntries(first)
			s.catchUp.pendingBytes -= paxos.Bytes(first)
			s.catchUp.pending = slices.Delete(s.catchUp.pending, i, i+1)
			i = -1 // an earlier one may follow now
		}
	}
}

// addPending keeps a message that does not follow the log's end yet. What does not fit is sent again.
func (s *ISS) addPending(m *protocol.Message) {
	if n := paxos.Bytes(m.Entries); s.epoch != nil && s.catchUp.pendingBytes+n <= s.cfg.MaxInflightBytes {
		s.catchUp.pending, s.catchUp.pendingBytes = append(s.catchUp.pending, m), s.catchUp.pendingBytes+n
	}
}

// learnEntries appends entries that follow the log's end, and compares those that the log has.
func (s *ISS) learnEntries(entries []protocol.Entry) {
	for i := range entries {
		e := &entries[i]
		if s.diverged(s.log.Diverges(s.cfg.Instance, s.from, e)) {
			return
		}
		if s.epoch != nil && !s.waits() && e.Index == s.log.Last()+1 && slots.Readable(e) && e.Applicable() {
			s.appendDecided(*e)
		}
	}
}

// diverged reports whether another member has decided another value than this one. Then this member stops.
func (s *ISS) diverged(err *protocol.DivergedError) bool {
	if err != nil {
		s.out.Diverged, s.stopped = err, true
	}
	return err != nil
}
