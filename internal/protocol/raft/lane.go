package raft

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/raftlog"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// Lanes (docs/internals/lcr.md) are alongside the log and its placement, on the leader and on followers alike:
//
//	lane.go       what a member holds of lanes that is not committed
//	lanemarks.go  what the log says about lanes
//	laneown.go    a member and its own lane
//	lanelead.go   a leader puts parts of lanes into the log
//	lanebody.go   large bodies, of which a lane carries rows
//	lanestatus.go what people see of lanes
//
// In the log there are whole groups. So whatever is committed is recovered, sent to laggards and
// compacted as anything else. What is held of lanes only goes before that.

// lanes is all that a member knows about lanes; nil if there are none in this cluster.
type lanes struct {
	// confirmed is what the log says up to what was handed over as committed, end what it says to its
	// end.
	confirmed, end laneMarks
	// opened are the lanes that entries after the commit index open, in the order of the log. Another
	// one may close them before they are committed.
	opened []openedLane
	// held are lanes with anything held, sorted. Each is known.
	held []*heldLane
	// cells is the highest number of a cell that this member ever used. stale are cells that a start
	// found to be void.
	cells uint64
	stale []uint64
	own   ownLane
	lead  laneLeading
	// fence is this member's last promise.
	fence fenced
	// parked are messages of the leader that wait for batches.
	parked parking
	// counts is for people to see: nothing depends on it.
	counts protocol.LaneCounts
	// wrong says what was found that must never be.
	wrong error
}

type openedLane struct {
	index protocol.Index
	lane  protocol.Lane
}

// heldLane is the uncommitted part of a lane that a member holds.
type heldLane struct {
	lane protocol.Lane
	// base: entries up to it are committed. From there on the batches follow each other without a gap:
	// batches[i] has number base+1+i.
	base    uint64
	batches []protocol.Entry // shared with messages: never written to
	cells   []laneCell       // one for each batch
	bytes   int              // of the batches
	// rows is how many of the batches have a body of which a row is held.
	rows int
	// pieces are parts of bodies that a leader gathers because it holds them not whole; nil on others.
	// asks is how often it asked.
	pieces []lanePiece
	asks   uint64
	// urgent: someone waits for the result of entries up to here, so the leader does not wait for
	// others before it puts them into the log.
	urgent uint64
	// fetched is when a leader asked last for what it is missing.
	fetched time.Duration
	// owed is an answer to the lane's member that waits for an Append to it; only on a leader.
	owed laneOwed
}

// laneCell is where a batch is on disk: durable when the step is.
type laneCell struct{ number, step uint64 }

func (h *heldLane) high() uint64 { return h.base + uint64(len(h.batches)) }

// after returns the batches after a number that is not below base.
func (h *heldLane) after(n uint64) []protocol.Entry {
	return h.batches[min(n-h.base, uint64(len(h.batches))):]
}

// durable is how far the lane is on this member's disk.
func (h *heldLane) durable(d *raftlog.Disk) uint64 {
	n, _ := slices.BinarySearchFunc(h.cells, d.Done, func(c laneCell, done uint64) int {
		if c.step <= done {
			return -1
		}
		return 1
	})
	return h.base + uint64(n)
}

// laneWindow is how many bytes of one lane may be held and not committed. Any single batch may be.
func (r *Raft) laneWindow() int { return r.cfg.MaxInflightBytes }

// known reports whether a lane is open, or may be: an entry that closes it may be cut from the log.
func (l *lanes) known(lane protocol.Lane) bool {
	return l.confirmed.of(lane) != nil || slices.ContainsFunc(l.opened, func(o openedLane) bool { return o.lane == lane })
}

func (l *lanes) find(lane protocol.Lane) (int, bool) {
	return slices.BinarySearchFunc(l.held, lane, func(h *heldLane, lane protocol.Lane) int { return compareLanes(h.lane, lane) })
}

// hold returns what is held of an open lane.
func (l *lanes) hold(lane protocol.Lane) *heldLane {
	i, ok := l.find(lane)
	if !ok {
		h := &heldLane{lane: lane}
		if m := l.confirmed.of(lane); m != nil {
			h.base = m.to
		}
		l.held = slices.Insert(l.held, i, h)
	}
	return l.held[i]
}

// The cell of a lane's entry: member | incarnation | envelope | payload, and if it has a body what is held
// of that, as on the wire. The envelope's index is the number in the lane.
const laneCellHead = 16

// storeInLane adds a batch to a lane, in memory and on disk.
func (r *Raft) storeInLane(h *heldLane, e *protocol.Entry) {
	end := laneCellHead + protocol.HeadSize + len(e.Payload)
	buf := make([]byte, 0, end+bodyRoom(e))
	buf = binary.LittleEndian.AppendUint64(buf, uint64(h.lane.Member))
	buf = binary.LittleEndian.AppendUint64(buf, h.lane.Incarnation)
	buf = append(buf[:laneCellHead+protocol.HeadSize], e.Payload...)
	b := *e
	b.Payload = buf[laneCellHead+protocol.HeadSize:]
	if e.BodySize > 0 {
		buf = append(e.AppendBodyHead(buf), e.Body...)
		b.Payload, b.Body = buf[laneCellHead+protocol.HeadSize:end:end], buf[end+protocol.BodyHeadSize:]
		if e.Form != protocol.FormWhole {
			h.rows++
		}
	}
	b.Seal(protocol.Index(h.high()+1), 0, buf[laneCellHead:])
	l := r.lanes
	l.cells++
	r.out.Record(protocol.Record{Kind: protocol.RecordCell, Cell: protocol.Cell{Number: l.cells, Data: buf}})
	h.batches = append(h.batches, b)
	h.cells = append(h.cells, laneCell{l.cells, r.out.Seq})
	h.bytes += b.Bytes()
}

// bodyRoom is what an entry's body takes in a cell.
func bodyRoom(e *protocol.Entry) int {
	if e.BodySize == 0 {
		return 0
	}
	return protocol.BodyHeadSize + e.BodyLen()
}

// onLane takes in a part of a lane, from its member or from another one that was asked for it.
func onLane(r *Raft, m message.Message) {
	l, lane := r.lanes, m.ID.Session
	if l == nil || !l.known(lane) || lane.Member == r.cfg.Self && lane == l.own.lane {
		return
	}
	h := l.hold(lane)
	gap := false
	for i := range m.Entries {
		e := &m.Entries[i]
		if e.BodySize > 0 && r.takePiece(h, m.From, e) {
			continue
		}
		if gap = uint64(e.Index) > h.high()+1; gap || !r.takesInto(h, e) {
			break
		}
		if uint64(e.Index) == h.high()+1 {
			r.storeInLane(h, e)
			r.joinNext(h)
			l.counts.ReceivedBytes += uint64(e.Bytes())
		}
	}
	if m.Force {
		h.urgent = max(h.urgent, h.high())
	}
	if m.From == lane.Member && m.Context != 0 {
		r.acknowledgeLane(m, h, gap)
	}
}

// takesInto reports whether a batch may be held, if it is the next one of the lane.
func (r *Raft) takesInto(h *heldLane, e *protocol.Entry) bool {
	return e.Kind == protocol.EntryBatch && e.CheckProposal() == nil && r.ownForm(e) &&
		(h.bytes == 0 || h.bytes+e.Bytes() <= r.laneWindow() || uint64(e.Index) <= h.high())
}

// acknowledgeLane says how far the lane is held, once that is durable. Reject says that something is missing before
// what came.
func (r *Raft) acknowledgeLane(m message.Message, h *heldLane, gap bool) {
	round := r.countsFor(m.Round)
	if gap {
		r.answer(message.With(protocol.Message{Type: message.LaneResp, To: m.From, Context: m.Context, Reject: true},
			message.Part{Index: protocol.Index(h.durable(&r.disk)), ID: protocol.ProposalID{Session: h.lane}}))
		return
	}
	for i := len(r.out.Release) - 1; i >= 0 && i >= len(r.out.Release)-4; i-- {
		if a := message.Of(r.out.Release[i]); a.Type == message.LaneResp && a.To == m.From && a.ID.Session == h.lane && a.Round == round && !a.Reject {
			r.out.Seq = r.disk.Touch()
			a.Index, a.Context = protocol.Index(h.high()), max(a.Context, m.Context)
			return
		}
	}
	if p := r.peer(m.From); m.Later && r.role == protocol.Leader && r.lead.ready && p != nil && p.Phase == tracker.Stream {
		h.owe(m, r.now)
		return
	}
	r.answerLane(h, m.From, m.Context, round)
}

// answerLane tells a lane's member how far this one holds it, once that is durable.
func (r *Raft) answerLane(h *heldLane, to protocol.MemberID, context, round uint64) {
	h.owed = laneOwed{}
	a := message.With(protocol.Message{Type: message.LaneResp, To: to, Context: context},
		message.Part{Index: protocol.Index(h.high()), Round: round, ID: protocol.ProposalID{Session: h.lane}})
	if r.cfg.Mutant == MutantLaneAckEarly {
		r.send(a)
		return
	}
	r.release(a)
}

// onLaneFetch sends a leader what it is missing of a lane.
func onLaneFetch(r *Raft, m message.Message) {
	if r.lanes == nil {
		return
	}
	i, ok := r.lanes.find(m.ID.Session)
	if !ok || uint64(m.Index) <= r.lanes.held[i].base {
		return // what is committed is in its log, or will be
	}
	h := r.lanes.held[i]
	batches := h.batches[:h.durable(&r.disk)-h.base]
	if from := uint64(m.Index) - 1 - h.base; from < uint64(len(batches)) {
		batches = batches[from:]
		n := protocol.Fitting(batches, r.cfg.MaxFrameBytes)
		for i := range batches[:n] {
			r.lanes.counts.SentBytes += uint64(batches[i].Bytes())
		}
		r.send(message.With(protocol.Message{Type: message.Lane, To: m.From, Entries: batches[:n:n]},
			message.Part{ID: protocol.ProposalID{Session: h.lane}, Force: h.high() <= h.urgent}))
	}
}

// lanesAppended takes in an entry that was just appended to the log.
func (r *Raft) lanesAppended(e *protocol.Entry) {
	if l := r.lanes; l != nil {
		if l.end.apply(e); e.Kind == protocol.EntryLane {
			l.opened = append(l.opened, openedLane{e.Index, e.ID.Session})
		}
	}
}

// lanesCut goes back to what the log says, which was cut.
func (r *Raft) lanesCut() {
	if l := r.lanes; l != nil {
		l.end, l.opened = l.confirmed.clone(), l.opened[:0]
		for i := r.given + 1; i <= r.log.Last; i++ {
			r.lanesAppended(r.log.At(i))
		}
	}
}

// fitLanes reports whether entries that are to follow those before them say about lanes what they can.
func (r *Raft) fitLanes(entries []protocol.Entry) bool {
	if r.lanes == nil || !slices.ContainsFunc(entries, func(e protocol.Entry) bool { _, ok := e.Range(); return ok }) {
		return true
	}
	end := r.lanes.end.clone()
	if entries[0].Index <= r.log.Last {
		end = r.lanes.confirmed.clone()
		for i := r.given + 1; i < entries[0].Index; i++ {
			end.apply(r.log.At(i))
		}
	}
	for i := range entries {
		if !end.fits(&entries[i]) {
			return false
		}
		end.apply(&entries[i])
	}
	return true
}

// lanesCommitted takes in entries that are committed. Groups whose payload is only on disk get it back from what is
// held of their lanes: a member finds its own batches in them.
func (r *Raft) lanesCommitted(entries []protocol.Entry) {
	if l := r.lanes; l != nil {
		for i := range entries {
			e := &entries[i]
			if _, ok := e.Range(); ok && !e.Applicable() {
				if batches := r.ranged(e); batches != nil {
					group := protocol.NewGroup(batches)
					e.Payload = group.Payload
				}
			}
			l.confirmed.apply(e)
		}
		last := entries[len(entries)-1].Index
		l.opened = slices.DeleteFunc(l.opened, func(o openedLane) bool { return o.index <= last })
	}
}

// lanesInstalled starts again after a snapshot.
func (r *Raft) lanesInstalled(base *protocol.Base) {
	l := r.lanes
	if l == nil {
		return
	}
	var d laneDerived
	if err := base.Restore(&d); err != nil {
		panic(fmt.Sprintf("raft: member %s: a snapshot that was taken has no lanes: %v", r.cfg.Self, err))
	}
	l.confirmed, l.end, l.opened = d.laneMarks, d.clone(), nil
	r.settleLanes()
}

// settleLanes gives up what is held and is committed, or belongs to lanes that are closed. The log has
// what is committed: its record is before the one that empties the cell.
func (r *Raft) settleLanes() {
	l := r.lanes
	if l == nil {
		return
	}
	says := &l.confirmed
	if r.cfg.Mutant == MutantLaneDropEarly {
		says = &l.end
	}
	for _, h := range l.held {
		if !l.known(h.lane) {
			r.dropFromLane(h, h.high())
		} else if m := says.of(h.lane); m != nil && m.to > h.base {
			r.dropFromLane(h, m.to)
		}
	}
	r.countAnew()
	l.held = slices.DeleteFunc(l.held, func(h *heldLane) bool { return len(h.batches) == 0 && !l.known(h.lane) })
}

// dropFromLane gives up a lane's entries up to a number.
func (r *Raft) dropFromLane(h *heldLane, to uint64) {
	n := int(min(to, h.high()) - h.base)
	for i := range n {
		if h.bytes -= h.batches[i].Bytes(); h.rows > 0 && h.partial(h.base+1+uint64(i)) {
			h.rows--
		}
		if h.lane == r.lanes.own.lane {
			delete(r.lanes.own.ids, h.batches[i].ID)
		}
		r.out.Record(protocol.Record{Kind: protocol.RecordDrop, Cell: protocol.Cell{Number: h.cells[i].number}})
	}
	h.base = max(to, h.base+uint64(n))
	if h.lane == r.lanes.own.lane {
		r.keepTail(h, h.batches[:n])
	}
	if h.batches, h.cells = h.batches[n:], h.cells[n:]; len(h.batches) == 0 {
		h.batches, h.cells = nil, nil
	}
	if len(h.pieces) > 0 {
		h.dropPieces(func(n uint64) bool { return n <= h.base })
		r.joinNext(h)
	}
}

// recoverLanes finds what the disk holds of lanes. The log is loaded, and its commit index known.
func (r *Raft) recoverLanes(rec *protocol.Recovered) error {
	if !r.cfg.Lanes {
		return nil
	}
	r.lanes = &lanes{}
	l := r.lanes
	l.own = ownLane{lane: r.cfg.Session, ids: map[protocol.ProposalID]bool{}}
	var d laneDerived
	if err := rec.Base.Restore(&d); err != nil {
		return err
	}
	l.confirmed = d.laneMarks
	r.lanesCut()
	for _, c := range rec.Cells {
		if err := r.recoverCell(c); err != nil {
			return err
		}
	}
	r.sameName()
	return nil
}

// sameName is for a mutant: this incarnation continues with the lane of the one before.
func (r *Raft) sameName() {
	l := r.lanes
	if m := l.end.member(r.cfg.Self); m != nil && r.cfg.Mutant == MutantLaneSameName {
		l.own.lane = m.lane
		for _, b := range l.hold(m.lane).batches {
			l.own.ids[b.ID] = true
		}
	}
}

// recoverCell takes a batch that the disk holds of a lane. Which lanes are committed how far may not be known yet, as
// the commit index that is on disk lags. Batches that were given up are committed. So the first batch that is there
// says where the lane continues.
func (r *Raft) recoverCell(c protocol.Cell) error {
	wrong := func(detail string) error { return &protocol.CorruptError{What: "cell of a lane", Detail: detail} }
	l := r.lanes
	l.cells = max(l.cells, c.Number)
	le := binary.LittleEndian
	switch {
	case len(c.Data) < laneCellHead, c.Number == fenceCell && len(c.Data) != laneCellHead+8:
		return wrong(fmt.Sprintf("%d bytes", len(c.Data)))
	case c.Number == fenceCell:
		l.fence.number = le.Uint64(c.Data[laneCellHead:])
		return nil
	}
	lane := protocol.Lane{Member: protocol.MemberID(le.Uint64(c.Data)), Incarnation: le.Uint64(c.Data[8:])}
	e, rest, err := protocol.DecodeEntry(c.Data[laneCellHead:], true)
	if err == nil && e.BodySize > 0 {
		rest, err = e.DecodeBody(rest)
	}
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return wrong("has more than a batch")
	case !l.known(lane):
		l.stale = append(l.stale, c.Number)
		return nil
	}
	h := l.hold(lane)
	switch n := uint64(e.Index); {
	case n <= h.base:
		l.stale = append(l.stale, c.Number)
		return nil
	case len(h.batches) == 0:
		h.base = n - 1
	case n != h.high()+1:
		return wrong(fmt.Sprintf("has number %d of lane %s, after %d", n, lane, h.high()))
	}
	h.batches, h.cells, h.bytes = append(h.batches, e), append(h.cells, laneCell{number: c.Number}), h.bytes+e.Bytes()
	if h.partial(h.high()) {
		h.rows++
	}
	return nil
}

// dropStale empties the cells that a start found to be void.
func (r *Raft) dropStale() {
	for _, n := range r.lanes.stale {
		r.out.Record(protocol.Record{Kind: protocol.RecordDrop, Cell: protocol.Cell{Number: n}})
	}
	r.lanes.stale = nil
}

// laneHighs says of each lane how far this member's disk holds more than what is committed.
func (r *Raft) laneHighs() (highs []message.LaneHigh) {
	if r.lanes == nil {
		return nil
	}
	for _, h := range r.lanes.held {
		if high := h.durable(&r.disk); high > h.base {
			highs = append(highs, message.LaneHigh{Lane: h.lane, High: high})
		}
	}
	return highs
}

// fencePromise is this member's durable promise to a fence.
func (r *Raft) fencePromise() uint64 {
	if r.lanes == nil || r.lanes.fence.step > r.disk.Done {
		return 0
	}
	return r.lanes.fence.number
}

// checkLanes verifies the invariants of lanes.
func checkLanes(r *Raft) error {
	l := r.lanes
	if l == nil {
		return nil
	}
	for i, h := range l.held {
		if i > 0 {
			if at, _ := l.find(h.lane); at != i {
				return fmt.Errorf("lanes: %v is not sorted", h.lane)
			}
		}
		if err := r.checkLane(h); err != nil {
			return fmt.Errorf("lane %s: %w", h.lane, err)
		}
	}
	end := l.confirmed.clone()
	if err := r.log.Each(r.given+1, r.log.Last, func(e *protocol.Entry) error { end.apply(e); return nil }); err != nil {
		return err
	}
	if !end.equal(&l.end) {
		return fmt.Errorf("lanes: the log says %v at its end, not %v", end, l.end)
	}
	if l.wrong != nil {
		return l.wrong
	}
	return r.checkOwnLane()
}

func (r *Raft) checkLane(h *heldLane) error {
	l, bytes, rows := r.lanes, 0, 0
	for i := range h.batches {
		b := &h.batches[i]
		if h.partial(h.base + 1 + uint64(i)) {
			rows++
		}
		if b.BodySize > 0 && (b.Form == protocol.FormNone || !b.Resident() || h.lane == l.own.lane && b.Form != protocol.FormWhole) {
			return fmt.Errorf("holds %s of the body of %d, %d bytes", b.Form, b.Index, len(b.Body))
		}
		if n := h.base + 1 + uint64(i); uint64(h.batches[i].Index) != n {
			return fmt.Errorf("holds %d where %d belongs", h.batches[i].Index, n)
		}
		if c := h.cells[i]; c.number > l.cells || c.step > r.disk.Seq || i > 0 && (c.step < h.cells[i-1].step || c.number <= h.cells[i-1].number) {
			return fmt.Errorf("cell %d of step %d", c.number, c.step)
		}
		bytes += h.batches[i].Bytes()
	}
	switch m := l.confirmed.of(h.lane); {
	case rows != h.rows || len(h.pieces) > 0 && r.role != protocol.Leader:
		return fmt.Errorf("%d rows, says %d, and %d pieces", rows, h.rows, len(h.pieces))
	case bytes != h.bytes || len(h.cells) != len(h.batches):
		return fmt.Errorf("%d bytes in %d batches, says %d", bytes, len(h.batches), h.bytes)
	case m != nil && h.base < m.to:
		return fmt.Errorf("holds from %d on what is committed up to %d", h.base+1, m.to)
	case !l.known(h.lane):
		return fmt.Errorf("is not open")
	}
	return h.checkPieces()
}
