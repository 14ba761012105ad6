package lane

import (
	"math"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// A member brings blind proposals to all others itself, by its own lane, while it does not lead. It continues to send
// what others miss until the log has it.

// Path is the path of proposals that may take a lane. All others take path 0.
const Path protocol.Path = 1

// PathOf is Raft's protocol.Proposing.Path where there are lanes.
func PathOf(o *protocol.ProposeOptions) protocol.Path {
	if o.Blind || o.Mode == protocol.ModeAccepted {
		return Path
	}
	return 0
}

// ownLane is a member's part in its own lane.
type ownLane struct {
	lane protocol.Lane
	// ids are the batches that are held of the lane. A batch that is proposed again is there already.
	ids map[protocol.ProposalID]bool
	// tail are the last batches that are committed, as far as a member may miss them; tailBytes is
	// their sum. They end where what is held begins. Without them, a member that is a little behind
	// never catches up with a lane that continues: what it is missing is always committed by then.
	// tailBytes ≤ View.tail.
	tail      []protocol.Entry
	tailBytes int
	// to are the members to which the lane goes, sorted, and at is the configuration that has them.
	to []*target
	at protocol.Index
	// ask is when to ask the leader again to open the lane.
	ask time.Duration
	// gen is the generation under which acknowledgements are counted, and accepted how far the lane was said to be
	// accepted.
	gen, accepted uint64
	shorter       shorter
}

// target is the member's view of another one to which it sends its lane.
type target struct {
	id protocol.MemberID
	// acked: the member's disk holds the lane up to here. It only grows. next is what to send next.
	// acked < next.
	acked, next uint64
	// counted: so it said under the generation active. counted ≤ acked.
	counted uint64
	// trip is how long its answers take, recently, that do not go along with others; 0: not known.
	trip time.Duration
	// frames are in flight, ascending, from numbers after acked and before next; bytes is their sum.
	frames []frame
	bytes  int
	// began is when sending began again, an instant + 1ns: earlier answers do not count. moved is from when on nothing
	// was heard: when something was acknowledged or sent again last, or earlier if the member is to be asked sooner.
	// probe: one frame at a time, until it is acknowledged. paused: nothing but questions, until it answers.
	began         uint64
	moved         time.Duration
	probe, paused bool
}

type frame struct {
	last  uint64
	bytes int
}

// isOpen reports whether this member may bring proposals by its lane.
func (l *Lanes) isOpen() bool {
	return l != nil && l.confirmed.of(l.own.lane) != nil
}

// olderLane is what this member holds of the lane of an earlier incarnation of its own, nil if nothing. Some of
// it may have been acknowledged.
func (l *Lanes) olderLane() *heldLane {
	for _, h := range l.held {
		if h.lane.Member == l.own.lane.Member && h.lane != l.own.lane && len(h.batches) > 0 {
			return h
		}
	}
	return nil
}

// settledOlder reports whether what an earlier incarnation of this member brought comes before what this incarnation
// proposes now. Otherwise its commands would be refused, because a later incarnation has begun, although they
// may have been acknowledged (docs/internals/lcr.md). A leader's own log has to have them; a follower does not
// know which log its proposals come into, so they have to be committed.
func (l *Lanes) settledOlder(v *View) bool {
	h := l.olderLane()
	if h == nil {
		return true
	}
	m := l.end.of(h.lane)
	return v.Role == protocol.Leader && (m == nil || m.to >= h.high())
}

// Route is what routes depend on alongside the leader and the term.
type Route struct {
	open, older, owes bool
	opening           protocol.Term
	byLeader, empty   bool
}

// Route is what routes depend on now.
func (l *Lanes) Route() Route {
	if l == nil {
		return Route{}
	}
	by := l.own.shorter.byLeader
	return Route{l.confirmed.of(l.own.lane) != nil, l.olderLane() != nil, l.Owes(), l.opening(), by,
		by && len(l.own.ids) == 0}
}

// opening is how often lanes were turned off. What a lane had then and the log has not is proposed again.
func (l *Lanes) opening() protocol.Term { return protocol.Term(l.confirmed.start / openings) }

// Routes says where proposals go.
func (l *Lanes) Routes(v *View) []protocol.Route {
	leader := protocol.Route{To: v.Leader, Term: v.Term}
	switch {
	case l == nil:
		return nil
	case !l.settledOlder(v):
		return []protocol.Route{{}, {}}
	case v.Role == protocol.Leader || !l.isOpen():
		return []protocol.Route{leader, leader}
	case l.own.shorter.byLeader && len(l.own.ids) > 0: // what is in the lane comes first
		return []protocol.Route{leader, {}}
	case l.own.shorter.byLeader:
		return []protocol.Route{leader, leader}
	}
	return []protocol.Route{leader, {To: v.Settings.Self, Term: l.opening()}}
}

// Propose puts those proposals into the lane that may take it, and returns the others. Commands in the lane are
// not proposed to a leader too: the leader finds it there.
func (l *Lanes) Propose(v *View, in *protocol.Propose) []protocol.Entry {
	open := v.Role != protocol.Leader && l.isOpen() && !l.own.shorter.byLeader
	if !open && len(l.own.ids) == 0 {
		return in.Entries
	}
	var rest []protocol.Entry
	h := l.hold(l.own.lane)
	had := h.high()
	for i := range in.Entries {
		e, o := &in.Entries[i], in.OptionsOf(i)
		switch {
		case l.own.ids[e.ID]:
			h.hasten(e.ID, &o)
		case open && e.Kind == protocol.EntryBatch && PathOf(&o) == Path:
			l.bring(v, h, e, &o)
		default:
			rest = append(rest, *e)
		}
	}
	if h.high() > had {
		l.send(v)
	}
	return rest
}

// hasten notes that someone waits for the result of a batch that is in the lane.
func (h *heldLane) hasten(id protocol.ProposalID, o *protocol.ProposeOptions) {
	if o.Mode == protocol.ModeConfirmed {
		h.urgent = h.high() // of that batch, or of a later one
	}
}

// bring puts a batch into this member's lane.
func (l *Lanes) bring(v *View, h *heldLane, e *protocol.Entry, o *protocol.ProposeOptions) {
	switch {
	case e.Bytes() > min(v.Settings.MaxUncommittedBytes, protocol.MaxEntryBytes),
		e.BodySize > 0 && (e.Form != protocol.FormWhole || !e.Resident()):
		v.Out.RejectProposal(e.ID, protocol.ReasonTooLarge, v.Leader)
	case e.CheckProposal() != nil:
		v.Out.RejectProposal(e.ID, protocol.ReasonMalformed, v.Leader)
	case h.bytes > 0 && h.bytes+e.Bytes() > v.window():
		l.counts.Refused++
		v.Out.RejectProposal(e.ID, protocol.ReasonOverloaded, v.Leader)
	default:
		if e.BodySize > 0 {
			coded := *e
			coded.K = l.own.k(v)
			e = &coded
		}
		l.store(v, h, e)
		l.own.ids[e.ID] = true
		h.hasten(e.ID, o)
		l.own.shorter.brought(v, h)
	}
}

// send sends all others what they miss of this member's lane, as far as their windows allow.
func (l *Lanes) send(v *View) {
	if len(l.own.ids) == 0 {
		return
	}
	h := l.hold(l.own.lane)
	l.own.trackTargets(v)
	for _, t := range l.own.to {
		l.sendTo(v, h, t)
	}
}

// trackTargets sets the targets to the other members of the configuration.
func (o *ownLane) trackTargets(v *View) {
	if o.at == v.Members.At && o.to != nil {
		return
	}
	o.at = v.Members.At
	old := o.to
	o.to = nil
	for _, id := range v.Members.Config.All() {
		if i := slices.IndexFunc(old, func(t *target) bool { return t.id == id }); i >= 0 {
			o.to = append(o.to, old[i])
		} else if id != v.Settings.Self {
			o.to = append(o.to, &target{id: id, next: 1, moved: v.Now})
		}
	}
}

func (l *Lanes) sendTo(v *View, h *heldLane, t *target) {
	o := &l.own
	for t.next = max(t.next, o.first(h)); t.next <= h.high() && !t.paused; {
		batches := o.from(h, t.next)
		n := protocol.Fitting(batches, v.Settings.MaxFrameBytes)
		batches = v.dressed(t.id, batches[:n])
		bytes := 0
		for i := range batches[:n] {
			bytes += batches[i].Bytes()
		}
		if len(t.frames) > 0 && (t.probe || t.bytes+bytes > v.Settings.MaxInflightBytes) {
			return
		}
		if len(t.frames) == 0 {
			t.moved = v.Now
		}
		t.next += uint64(n)
		l.counts.SentBytes += uint64(bytes)
		t.frames, t.bytes = append(t.frames, frame{t.next - 1, bytes}), t.bytes+bytes
		v.Out.Post(message.With(protocol.Message{Type: message.Lane, To: t.id, Context: message.Stamp(v.Now),
			Entries: batches[:n:n]},
			message.Part{ID: protocol.ProposalID{Session: h.lane}, Round: l.own.gen, Force: t.next-1 <= h.urgent,
				Later: o.later(v, t, batches)}))
	}
}

// first is the first number of the own lane that can still be sent.
func (o *ownLane) first(h *heldLane) uint64 { return h.base + 1 - uint64(len(o.tail)) }

// from returns batches of the own lane from a number on, not all of them. It is not below first.
func (o *ownLane) from(h *heldLane, n uint64) []protocol.Entry {
	if n > h.base {
		return h.after(n - 1)
	}
	return o.tail[n-o.first(h):]
}

// keepTail keeps batches that were just committed, for members that miss them.
func (o *ownLane) keepTail(h *heldLane, batches []protocol.Entry, most int, known bool) {
	n := len(batches)
	lacked := uint64(math.MaxUint64)
	for _, t := range o.to {
		lacked = min(lacked, t.acked+1)
	}
	if lacked > h.base || n == 0 || uint64(batches[n-1].Index) != h.base || !known {
		o.tail, o.tailBytes = nil, 0 // no one is missing anything, or a snapshot skipped some
		return
	}
	o.tail = append(o.tail, batches...)
	for i := range batches {
		o.tailBytes += batches[i].Bytes()
	}
	n = 0
	for n < len(o.tail) && (uint64(o.tail[n].Index) < lacked || o.tailBytes > most) {
		o.tailBytes -= o.tail[n].Bytes()
		n++
	}
	o.tail = o.tail[n:]
}

// anew begins again to send a target what it did not acknowledge.
func (t *target) anew(now time.Duration) {
	t.next, t.frames, t.bytes = t.acked+1, t.frames[:0], 0
	t.began, t.moved, t.probe, t.paused = message.Stamp(now), now, true, false
}

// OnHeld takes in an answer to what was sent of this member's lane.
func (l *Lanes) OnHeld(v *View, m message.Message) {
	if l != nil && m.ID.Session == l.own.lane {
		l.heldBy(v, m.From, heldBy{high: uint64(m.Index), round: m.Round, context: m.Context, gap: m.Reject})
	}
}

// heldBy is what a member says of this member's lane: its disk holds it up to high, which counts for the
// generation round. It answers what was sent at context. gap: something was missing before what came. along: it
// may have waited to go along with something.
type heldBy struct {
	high, round, context uint64
	gap, along           bool
}

// heldBy takes in what another member says that it holds of this member's lane.
func (l *Lanes) heldBy(v *View, id protocol.MemberID, said heldBy) {
	i := slices.IndexFunc(l.own.to, func(t *target) bool { return t.id == id })
	if i < 0 || !l.known(l.own.lane) {
		return
	}
	h, t := l.hold(l.own.lane), l.own.to[i]
	if said.high > h.high() || said.context < t.began {
		return
	}
	t.paused = false
	if trip := v.Now - time.Duration(said.context-1); !said.along && !said.gap && said.context > 0 {
		t.trip = tracker.Recent(t.trip, trip)
	}
	if said.round == l.own.gen && said.round > 0 || v.Settings.Mutant == MutantOldGeneration {
		t.counted = max(t.counted, said.high)
	}
	if n := said.high; n > t.acked {
		t.acked, t.moved, t.probe, t.paused = n, v.Now, false, false
		t.next = max(t.next, n+1)
		done := 0
		for done < len(t.frames) && t.frames[done].last <= n {
			t.bytes -= t.frames[done].bytes
			done++
		}
		t.frames = t.frames[:copy(t.frames, t.frames[done:])]
	}
	switch {
	case !said.gap:
	case said.high+1 < l.own.first(h):
		t.paused = true // it gets that from the log
	case !t.probe:
		t.anew(v.Now)
	}
	l.sendTo(v, h, t)
	l.Accept(v)
}

// Tick repeats what was not answered.
func (l *Lanes) Tick(v *View) {
	if l == nil || len(l.own.ids) == 0 {
		return
	}
	l.send(v)
	h := l.hold(l.own.lane)
	for _, t := range l.own.to {
		switch late := v.Now >= t.moved+2*v.Settings.Heartbeat; {
		case late && t.acked < h.high() && t.probe:
			t.anew(v.Now) // it may be down: it is asked first
			t.paused = true
			l.own.askTarget(v, t)
		case late && t.acked < h.high():
			t.anew(v.Now)
			l.sendTo(v, h, t)
		case late && t.counted < h.high():
			t.moved = v.Now
			l.own.askTarget(v, t)
		}
	}
}

// Unreachable: what is in flight to a member is lost. Links that break are mostly back at once, so the
// member is asked soon what it has.
func (l *Lanes) Unreachable(v *View, id protocol.MemberID) {
	if l == nil {
		return
	}
	for _, t := range l.own.to {
		if t.id == id && len(t.frames) > 0 {
			t.anew(v.Now)
			t.paused, t.moved = true, v.Now-2*v.Settings.Heartbeat+v.Patience()
		}
	}
}

// Ask has the leader open this member's lane, and end the one of an earlier incarnation. Until then this
// member's proposals go through the leader. A leader is to append the entry that is returned.
func (l *Lanes) Ask(v *View) (e protocol.Entry, ok bool) {
	if l == nil || !v.on() || l.known(l.own.lane) || v.Leader == 0 || v.Now < l.own.ask ||
		l.own.lane == (protocol.Lane{}) || v.Members.Config.Find(v.Settings.Self) == nil {
		return e, false
	}
	l.own.ask = v.Now + v.Settings.Heartbeat
	ask := message.Part{ID: protocol.ProposalID{Session: l.own.lane}}
	if h := l.olderLane(); h != nil {
		ask.Round, ask.ID.Seq = h.lane.Incarnation, h.durable(v.Disk)
	}
	if v.Role == protocol.Leader {
		return l.Open(v, v.Settings.Self, &ask)
	}
	v.Out.Post(message.With(protocol.Message{Type: message.LaneOpen, To: v.Leader}, ask))
	return e, false
}
