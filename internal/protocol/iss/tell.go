package iss

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// How a member that is behind hears of what was decided: it asks, and is told.

// catchUp is what a member that is behind has asked for and received, and which members it sends snapshots.
type catchUp struct {
	// requestedAt is when this member last asked for a part of the log, and grown when the log last grew. pause is how long
	// it waits for an answer before it asks again. askedAfter is how far its log went when it asked.
	requestedAt, grewAt, retryAfter time.Duration
	requestedAfter                  protocol.Index
	// pending are messages with decided entries that do not follow the log's end yet, of toldBytes.
	pending      []*protocol.Message
	pendingBytes int
	// streaming are the members that are being sent a snapshot from here.
	streaming map[protocol.MemberID]bool
}

// sending is what a member tells another one of the log. All leaders together fill the log, each with as many messages
// on their way as its window allows. So who is behind would never catch up if it were told one message in a round trip.
type sending struct {
	// after is the slot after which the other asked last.
	after protocol.Index
	// flights are on their way, oldest first, and have bytes together.
	//
	//	after < each flight's last < the next one's; len(flights) ≤ window
	flights []paxos.Flight
	bytes   int
	// window is how many flights there may be. It is one at first and when some may be lost, and grows by one with each
	// question that shows progress. It does not shrink with the depth.
	window int
	// sentAt is when it was told last, and pause how long it is not told the same again: that may be on a slow way.
	sentAt, retryAfter time.Duration
}

// maxRetryTimeouts is for how many election timeouts a member is not told the same again, at most. A slow way may have a queue
// of many seconds, and each repetition makes it longer.
const maxRetryTimeouts = 8

// request takes in a question, and returns after which slot the other is to be told. again: it is not to be told now. A
// question that goes back comes from a member that has lost the end of its log, or it was overtaken by others: so it counts
// once in a heartbeat. Otherwise each message would bring a question, and each question many messages.
func (t *sending) request(after protocol.Index, now, heartbeat time.Duration, most int) (from protocol.Index, again bool) {
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

// sendEntries sends a member decided entries after an index, as many as fit into its window, or a snapshot. One that asked several
// times is told once.
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
	t.after, t.sentAt, t.retryAfter = after, s.now, min(max(2*t.retryAfter, s.cfg.Heartbeat), maxRetryTimeouts*s.cfg.ElectionTimeout)
	for from < s.log.Last() && len(t.flights) < t.window && (len(t.flights) == 0 || t.bytes < s.cfg.MaxInflightBytes) {
		f := s.sendRun(to, from)
		t.flights, t.bytes = append(t.flights, f), t.bytes+f.Bytes
		from = f.Last
	}
}

// noteUnsent notes who was not sent all of a segment, because messages to it filled its window when the epoch ended.
func (g *members) noteUnsent(b *broadcast) {
	for _, p := range b.peers {
		if o := g.other(p.ID); o != nil && p.Next <= b.prop.End {
			o.unsent = max(o.unsent, b.prop.End)
		}
	}
}

// sendRest tells a member what it was not sent when an epoch ended, now that it answers what it was sent.
func (s *ISS) sendRest(m *protocol.Message) {
	if o := s.other(m.From); o != nil && m.Commit < o.unsent {
		s.sendEntries(m.From, m.Commit)
	}
}

// sendRun sends what fits into one message.
func (s *ISS) sendRun(to protocol.MemberID, after protocol.Index) (f paxos.Flight) {
	m := s.send(to, MsgTell, Part{})
	m.Entries = s.log.Run(after, s.cfg.MaxFrameBytes, s.cfg.MaxFrameEntries)
	f.Bytes = paxos.Bytes(m.Entries)
	f.Last, f.Sent = after+protocol.Index(len(m.Entries)), s.now
	return f
}

// sendWindow is how many messages may be on their way to a member that is behind: twice what all leaders together send it
// while it is not, so that it comes closer.
func (s *ISS) sendWindow(o *other) int {
	return 2 * max(1, len(s.epochVoters())) * s.depth(&paxos.Peer{ID: o.id, Trip: o.trip})
}

// onTell learns, and asks for more as long as there is. What overtook other messages waits for them. It asks if the log has
// grown since the last question, also by what came otherwise: a question that says the same would only add to those under way.
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

// learnPending learns what was kept, as far as it fits by now, and forgets what the log has.
func (s *ISS) learnPending() {
	for i := 0; i < len(s.catchUp.pending); i++ {
		if first := s.catchUp.pending[i].Entries; first[0].Index <= s.log.Last()+1 {
			s.learnEntries(first)
			s.catchUp.pendingBytes -= paxos.Bytes(first)
			s.catchUp.pending = slices.Delete(s.catchUp.pending, i, i+1)
			i = -1 // what came before may fit now
		}
	}
}

// addPending keeps what cannot be learned yet. What does not fit is told again.
func (s *ISS) addPending(m *protocol.Message) {
	if n := paxos.Bytes(m.Entries); s.epoch != nil && s.catchUp.pendingBytes+n <= s.cfg.MaxInflightBytes {
		s.catchUp.pending, s.catchUp.pendingBytes = append(s.catchUp.pending, m), s.catchUp.pendingBytes+n
	}
}

// learnEntries learns entries, as far as they follow the log's end, and compares those that the log has.
func (s *ISS) learnEntries(entries []protocol.Entry) {
	for i := range entries {
		e := &entries[i]
		if s.diverged(s.log.Diverges(s.cfg.Instance, s.from, e)) {
			return
		}
		if s.epoch != nil && e.Index == s.log.Last()+1 && slots.Readable(e) && e.Applicable() {
			s.appendDecided(*e)
		}
	}
}

// diverged reports whether another member has decided something else than this one has. Then this member stops.
func (s *ISS) diverged(err *protocol.DivergedError) bool {
	if err != nil {
		s.out.Diverged, s.stopped = err, true
	}
	return err != nil
}
