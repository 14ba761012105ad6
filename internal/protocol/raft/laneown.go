package raft

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// A member brings blind proposals to all others itself, by its own lane, while it does not lead. It continues to send
// what others miss until the log has it.

// LanePath is the path of proposals that may take a lane. All others take path 0.
const LanePath protocol.Path = 1

// PathOf is Raft's protocol.Proposing.Path where there are lanes.
func PathOf(o *protocol.ProposeOptions) protocol.Path {
	if o.Blind || o.Mode == protocol.ModeAccepted {
		return LanePath
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
	// tailBytes ≤ laneTail.
	tail      []protocol.Entry
	tailBytes int
	// to are the members to which the lane goes, sorted, and at is the configuration that has them.
	to []*laneTarget
	at protocol.Index
	// ask is when to ask the leader again to open the lane.
	ask time.Duration
	// gen is the generation under which acknowledgements are counted, and accepted how far the lane was said to be
	// accepted.
	gen, accepted uint64
}

// laneTarget is the member's view of another one to which it sends its lane.
type laneTarget struct {
	id protocol.MemberID
	// acked: the member's disk holds the lane up to here. It only grows. next is what to send next.
	// acked < next.
	acked, next uint64
	// counted: so it said under the generation active. counted ≤ acked.
	counted uint64
	// trip is how long its answers take, recently, that do not go along with others; 0: not known.
	trip time.Duration
	// frames are in flight, ascending, from numbers after acked and before next; bytes is their sum.
	frames []laneFrame
	bytes  int
	// began is when sending began again, an instant + 1ns: earlier answers do not count. moved is from when on nothing
	// was heard: when something was acknowledged or sent again last, or earlier if the member is to be asked sooner.
	// probe: one frame at a time, until it is acknowledged. paused: nothing but questions, until it answers.
	began         uint64
	moved         time.Duration
	probe, paused bool
}

type laneFrame struct {
	last  uint64
	bytes int
}

// laneOpen reports whether this member may bring proposals by its lane.
func (r *Raft) laneOpen() bool {
	return r.lanes != nil && r.lanes.confirmed.of(r.lanes.own.lane) != nil
}

// olderLane is what this member holds of the lane of an earlier incarnation of its own, nil if nothing. Some of
// it may have been acknowledged.
func (l *lanes) olderLane() *heldLane {
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
func (r *Raft) settledOlder() bool {
	h := r.lanes.olderLane()
	if h == nil {
		return true
	}
	m := r.lanes.end.of(h.lane)
	return r.role == protocol.Leader && (m == nil || m.to >= h.high())
}

// laneRoute is what routes depend on alongside the leader and the term.
type laneRoute struct{ open, older bool }

func (l *lanes) route() laneRoute {
	if l == nil {
		return laneRoute{}
	}
	return laneRoute{l.confirmed.of(l.own.lane) != nil, l.olderLane() != nil}
}

// routes says where proposals go.
func (r *Raft) routes() []protocol.Route {
	leader := protocol.Route{To: r.leader, Term: r.term}
	switch {
	case r.lanes == nil:
		return nil
	case !r.settledOlder():
		return []protocol.Route{{}, {}}
	case r.role == protocol.Leader || !r.laneOpen():
		return []protocol.Route{leader, leader}
	}
	return []protocol.Route{leader, {To: r.cfg.Self}}
}

// takeIntoLane puts those proposals into the lane that may take it, and returns the others. Commands in the lane are
// not proposed to a leader too: the leader finds it there.
func (r *Raft) takeIntoLane(in *protocol.Propose) []protocol.Entry {
	l := r.lanes
	open := r.role != protocol.Leader && r.laneOpen()
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
		case open && e.Kind == protocol.EntryBatch && PathOf(&o) == LanePath:
			r.bring(h, e, &o)
		default:
			rest = append(rest, *e)
		}
	}
	if h.high() > had {
		r.sendLane()
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
func (r *Raft) bring(h *heldLane, e *protocol.Entry, o *protocol.ProposeOptions) {
	switch {
	case e.Bytes() > min(r.cfg.MaxUncommittedBytes, protocol.MaxEntryBytes), e.BodySize > 0 && (e.Form != protocol.FormWhole || !e.Resident()):
		r.out.RejectProposal(e.ID, protocol.ReasonTooLarge, r.leader)
	case e.CheckProposal() != nil:
		r.out.RejectProposal(e.ID, protocol.ReasonMalformed, r.leader)
	case h.bytes > 0 && h.bytes+e.Bytes() > r.laneWindow():
		r.lanes.counts.Refused++
		r.out.RejectProposal(e.ID, protocol.ReasonOverloaded, r.leader)
	default:
		if e.BodySize > 0 {
			coded := *e
			coded.K = r.laneK()
			e = &coded
		}
		r.storeInLane(h, e)
		r.lanes.own.ids[e.ID] = true
		h.hasten(e.ID, o)
	}
}

// sendLane sends all others what they miss of this member's lane, as far as their windows allow.
func (r *Raft) sendLane() {
	l := r.lanes
	if len(l.own.ids) == 0 {
		return
	}
	h := l.hold(l.own.lane)
	r.trackTargets()
	for _, t := range l.own.to {
		r.sendLaneTo(h, t)
	}
}

// trackTargets sets the targets to the other members of the configuration.
func (r *Raft) trackTargets() {
	o := &r.lanes.own
	if o.at == r.members.At && o.to != nil {
		return
	}
	o.at = r.members.At
	old := o.to
	o.to = nil
	for _, id := range r.members.Config.All() {
		if i := slices.IndexFunc(old, func(t *laneTarget) bool { return t.id == id }); i >= 0 {
			o.to = append(o.to, old[i])
		} else if id != r.cfg.Self {
			o.to = append(o.to, &laneTarget{id: id, next: 1, moved: r.now})
		}
	}
}

func (r *Raft) sendLaneTo(h *heldLane, t *laneTarget) {
	o := &r.lanes.own
	for t.next = max(t.next, o.first(h)); t.next <= h.high() && !t.paused; {
		batches := o.from(h, t.next)
		n := protocol.Fitting(batches, r.cfg.MaxFrameBytes)
		batches = r.dressed(t.id, batches[:n])
		bytes := 0
		for i := range batches[:n] {
			bytes += batches[i].Bytes()
		}
		if len(t.frames) > 0 && (t.probe || t.bytes+bytes > r.cfg.MaxInflightBytes) {
			return
		}
		if len(t.frames) == 0 {
			t.moved = r.now
		}
		t.next += uint64(n)
		r.lanes.counts.SentBytes += uint64(bytes)
		t.frames, t.bytes = append(t.frames, laneFrame{t.next - 1, bytes}), t.bytes+bytes
		r.send(message.With(protocol.Message{Type: message.Lane, To: t.id, Context: message.Stamp(r.now), Entries: batches[:n:n]},
			message.Part{ID: protocol.ProposalID{Session: h.lane}, Round: r.lanes.own.gen, Force: t.next-1 <= h.urgent, Later: r.laneLater(t, batches)}))
	}
}

// laneTail is how many bytes of the own lane are kept for those who miss them, after they are committed. It is what
// comes in the time of a few answers.
func (r *Raft) laneTail() int { return r.laneWindow() / 4 }

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
func (r *Raft) keepTail(h *heldLane, batches []protocol.Entry) {
	o, n := &r.lanes.own, len(batches)
	lacked := uint64(math.MaxUint64)
	for _, t := range o.to {
		lacked = min(lacked, t.acked+1)
	}
	if lacked > h.base || n == 0 || uint64(batches[n-1].Index) != h.base || !r.lanes.known(h.lane) {
		o.tail, o.tailBytes = nil, 0 // no one is missing anything, or a snapshot skipped some
		return
	}
	o.tail = append(o.tail, batches...)
	for i := range batches {
		o.tailBytes += batches[i].Bytes()
	}
	n = 0
	for n < len(o.tail) && (uint64(o.tail[n].Index) < lacked || o.tailBytes > r.laneTail()) {
		o.tailBytes -= o.tail[n].Bytes()
		n++
	}
	o.tail = o.tail[n:]
}

// anew begins again to send a target what it did not acknowledge.
func (t *laneTarget) anew(now time.Duration) {
	t.next, t.frames, t.bytes = t.acked+1, t.frames[:0], 0
	t.began, t.moved, t.probe, t.paused = message.Stamp(now), now, true, false
}

func onLaneResp(r *Raft, m message.Message) {
	if r.lanes != nil && m.ID.Session == r.lanes.own.lane {
		r.heldByOther(m.From, laneHeld{high: uint64(m.Index), round: m.Round, context: m.Context, gap: m.Reject})
	}
}

// laneHeld is what a member says of this member's lane: its disk holds it up to high, which counts for the
// generation round. It answers what was sent at context. gap: something was missing before what came. along: it
// may have waited to go along with something.
type laneHeld struct {
	high, round, context uint64
	gap, along           bool
}

// heldByOther takes in what another member says that it holds of this member's lane.
func (r *Raft) heldByOther(id protocol.MemberID, said laneHeld) {
	l := r.lanes
	i := slices.IndexFunc(l.own.to, func(t *laneTarget) bool { return t.id == id })
	if i < 0 || !l.known(l.own.lane) {
		return
	}
	h, t := l.hold(l.own.lane), l.own.to[i]
	if said.high > h.high() || said.context < t.began {
		return
	}
	t.paused = false
	if trip := r.now - time.Duration(said.context-1); !said.along && !said.gap && said.context > 0 {
		t.trip = tracker.Recent(t.trip, trip)
	}
	if said.round == l.own.gen && said.round > 0 || r.cfg.Mutant == MutantLaneOldGeneration {
		t.counted = max(t.counted, said.high)
	}
	if n := said.high; n > t.acked {
		t.acked, t.moved, t.probe, t.paused = n, r.now, false, false
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
		t.anew(r.now)
	}
	r.sendLaneTo(h, t)
	r.acceptLane()
}

// tickLanes repeats what was not answered.
func (r *Raft) tickLanes() {
	l := r.lanes
	if l == nil {
		return
	}
	r.askLane()
	if len(l.own.ids) == 0 {
		return
	}
	r.sendLane()
	h := l.hold(l.own.lane)
	for _, t := range l.own.to {
		switch late := r.now >= t.moved+2*r.cfg.Heartbeat; {
		case late && t.acked < h.high() && t.probe:
			t.anew(r.now) // it may be down: it is asked first
			t.paused = true
			r.askLaneTarget(t)
		case late && t.acked < h.high():
			t.anew(r.now)
			r.sendLaneTo(h, t)
		case late && t.counted < h.high():
			t.moved = r.now
			r.askLaneTarget(t)
		}
	}
}

// laneUnreachable: what is in flight to a member is lost. Links that break are mostly back at once, so the
// member is asked soon what it has.
func (r *Raft) laneUnreachable(id protocol.MemberID) {
	if r.lanes == nil {
		return
	}
	for _, t := range r.lanes.own.to {
		if t.id == id && len(t.frames) > 0 {
			t.anew(r.now)
			t.paused, t.moved = true, r.now-2*r.cfg.Heartbeat+r.patience()
		}
	}
}

// askLane has the leader open this member's lane, and end the one of an earlier incarnation. Until then this
// member's proposals go through the leader.
func (r *Raft) askLane() {
	l := r.lanes
	if l.known(l.own.lane) || r.leader == 0 || r.now < l.own.ask || l.own.lane == (protocol.Lane{}) || r.members.Config.Find(r.cfg.Self) == nil {
		return
	}
	l.own.ask = r.now + r.cfg.Heartbeat
	ask := message.Part{ID: protocol.ProposalID{Session: l.own.lane}}
	if h := l.olderLane(); h != nil {
		ask.Round, ask.ID.Seq = h.lane.Incarnation, h.durable(&r.disk)
	}
	if r.role == protocol.Leader {
		r.openLane(r.cfg.Self, &ask)
		return
	}
	r.send(message.With(protocol.Message{Type: message.LaneOpen, To: r.leader}, ask))
}

// checkOwnLane verifies the invariants of a member's own lane.
func (r *Raft) checkOwnLane() error {
	o := &r.lanes.own
	held := 0
	if i, ok := r.lanes.find(o.lane); ok {
		held = len(r.lanes.held[i].batches)
		for j := range r.lanes.held[i].batches {
			if id := r.lanes.held[i].batches[j].ID; !o.ids[id] {
				return fmt.Errorf("own lane: %v is held and not known", id)
			}
		}
	}
	if held != len(o.ids) {
		return fmt.Errorf("own lane: %d batches are held, %d known", held, len(o.ids))
	}
	bytes := 0
	for i := range o.tail {
		if j, ok := r.lanes.find(o.lane); !ok || uint64(o.tail[i].Index) != o.first(r.lanes.held[j])+uint64(i) {
			return fmt.Errorf("own lane: %d of its tail is not before what is held", o.tail[i].Index)
		}
		bytes += o.tail[i].Bytes()
	}
	if bytes != o.tailBytes || bytes > r.laneTail() {
		return fmt.Errorf("own lane: a tail of %d bytes, says %d", bytes, o.tailBytes)
	}
	for _, t := range o.to {
		bytes, last := 0, t.acked
		for _, f := range t.frames {
			if f.last <= last {
				return fmt.Errorf("own lane to %s: frame to %d after %d", t.id, f.last, last)
			}
			bytes, last = bytes+f.bytes, f.last
		}
		if t.counted > t.acked || bytes != t.bytes || t.next <= t.acked || last >= t.next && len(t.frames) > 0 || t.probe && len(t.frames) > 1 {
			return fmt.Errorf("own lane to %s: %d bytes in %d frames to %d, says %d, next %d", t.id, bytes, len(t.frames), last, t.bytes, t.next)
		}
	}
	return nil
}
