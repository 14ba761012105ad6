package lane

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/raftlog"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// Lanes is all that a member knows about lanes; nil if there are none in this cluster.
type Lanes struct {
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
	lead  leading
	// earlier is about this member's earlier incarnations.
	earlier earlier
	// fence is this member's last promise.
	fence fenced
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
	cells   []cell           // one for each batch
	bytes   int              // of the batches
	// rows is how many of the batches have a body that is held as a row.
	rows int
	// pieces are parts of bodies that a leader gathers because it holds them not whole; nil on others.
	// asks is how often it asked.
	pieces []piece
	asks   uint64
	// urgent: someone waits for the result of entries up to here, so the leader does not wait for
	// others before it puts them into the log.
	urgent uint64
	// fetched is when a leader asked last for what it is missing.
	fetched time.Duration
	// owed is an answer to the lane's member that waits for an Append to it; only on a leader.
	owed owedAnswer
}

// cell is where a batch is on disk: durable when the step is.
type cell struct{ number, step uint64 }

func (h *heldLane) high() uint64 { return h.base + uint64(len(h.batches)) }

// after returns the batches after a number that is not below base.
func (h *heldLane) after(n uint64) []protocol.Entry {
	return h.batches[min(n-h.base, uint64(len(h.batches))):]
}

// durable is how far the lane is on this member's disk.
func (h *heldLane) durable(d *raftlog.Disk) uint64 {
	n, _ := slices.BinarySearchFunc(h.cells, d.Done, func(c cell, done uint64) int {
		if c.step <= done {
			return -1
		}
		return 1
	})
	return h.base + uint64(n)
}

// known reports whether a lane is open, or may be: an entry that closes it may be cut from the log.
func (l *Lanes) known(lane protocol.Lane) bool {
	return l.confirmed.of(lane) != nil || slices.ContainsFunc(l.opened, func(o openedLane) bool { return o.lane == lane })
}

func (l *Lanes) find(lane protocol.Lane) (int, bool) {
	return slices.BinarySearchFunc(l.held, lane, func(h *heldLane, lane protocol.Lane) int {
		return compareLanes(h.lane, lane)
	})
}

// hold returns what is held of an open lane.
func (l *Lanes) hold(lane protocol.Lane) *heldLane {
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
const cellHead = 16

// store adds a batch to a lane, in memory and on disk.
func (l *Lanes) store(v *View, h *heldLane, e *protocol.Entry) {
	end := cellHead + protocol.HeadSize + len(e.Payload)
	buf := make([]byte, 0, end+bodyRoom(e))
	buf = binary.LittleEndian.AppendUint64(buf, uint64(h.lane.Member))
	buf = binary.LittleEndian.AppendUint64(buf, h.lane.Incarnation)
	buf = append(buf[:cellHead+protocol.HeadSize], e.Payload...)
	b := *e
	b.Payload = buf[cellHead+protocol.HeadSize:]
	if e.BodySize > 0 {
		buf = append(e.AppendBodyHead(buf), e.Body...)
		b.Payload, b.Body = buf[cellHead+protocol.HeadSize:end:end], buf[end+protocol.BodyHeadSize:]
		if e.Form != protocol.FormWhole {
			h.rows++
		}
	}
	b.Seal(protocol.Index(h.high()+1), 0, buf[cellHead:])
	l.cells++
	v.Out.Record(protocol.Record{Kind: protocol.RecordCell, Cell: protocol.Cell{Number: l.cells, Data: buf}})
	h.batches = append(h.batches, b)
	h.cells = append(h.cells, cell{l.cells, v.Out.Seq})
	h.bytes += b.Bytes()
}

// decodeCell decodes the cell of a lane's entry, which has cellHead bytes at least. rest is what comes after the entry.
func decodeCell(data []byte) (lane protocol.Lane, e protocol.Entry, rest []byte, err error) {
	le := binary.LittleEndian
	lane = protocol.Lane{Member: protocol.MemberID(le.Uint64(data)), Incarnation: le.Uint64(data[8:])}
	e, rest, err = protocol.DecodeEntry(data[cellHead:], true)
	if err == nil && e.BodySize > 0 {
		rest, err = e.DecodeBody(rest)
	}
	return lane, e, rest, err
}

// bodyRoom is what an entry's body takes in a cell.
func bodyRoom(e *protocol.Entry) int {
	if e.BodySize == 0 {
		return 0
	}
	return protocol.BodyHeadSize + e.BodyLen()
}

// OnPart takes in a part of a lane, from its member or from another one that was asked for it.
func (l *Lanes) OnPart(v *View, m message.Message) {
	lane := m.ID.Session
	if l == nil || !l.known(lane) || lane.Member == v.Settings.Self && lane == l.own.lane {
		return
	}
	h := l.hold(lane)
	gap := false
	for i := range m.Entries {
		e := &m.Entries[i]
		if e.BodySize > 0 && l.takePiece(v, h, m.From, e) {
			continue
		}
		if gap = uint64(e.Index) > h.high()+1; gap || !v.takesInto(h, e) {
			break
		}
		if uint64(e.Index) == h.high()+1 {
			l.store(v, h, e)
			l.joinNext(v, h)
			l.counts.ReceivedBytes += uint64(e.Bytes())
		}
	}
	if m.Force {
		h.urgent = max(h.urgent, h.high())
	}
	if m.From == lane.Member && m.Context != 0 {
		l.acknowledge(v, m, h, gap)
	}
}

// takesInto reports whether a batch may be held, if it is the next one of the lane.
func (v *View) takesInto(h *heldLane, e *protocol.Entry) bool {
	return e.Kind == protocol.EntryBatch && e.CheckProposal() == nil && v.ownForm(e) &&
		(h.bytes == 0 || h.bytes+e.Bytes() <= v.window() || uint64(e.Index) <= h.high())
}

// acknowledge says how far the lane is held, once that is durable. Reject says that something is missing before
// what came.
func (l *Lanes) acknowledge(v *View, m message.Message, h *heldLane, gap bool) {
	round := l.fence.countsFor(v.Settings, m.Round)
	if gap {
		v.Out.Answer(message.With(protocol.Message{Type: message.LaneResp, To: m.From, Context: m.Context, Reject: true},
			message.Part{Index: protocol.Index(h.durable(v.Disk)), ID: protocol.ProposalID{Session: h.lane}}))
		return
	}
	for i := len(v.Out.Release) - 1; i >= 0 && i >= len(v.Out.Release)-4; i-- {
		if a := message.Of(v.Out.Release[i]); a.Type == message.LaneResp && a.To == m.From && a.ID.Session == h.lane &&
			a.Round == round && !a.Reject {
			v.Out.Seq = v.Disk.Touch()
			a.Index, a.Context = protocol.Index(h.high()), max(a.Context, m.Context)
			return
		}
	}
	if p := v.Peer(m.From); m.Later && v.Role == protocol.Leader && v.Ready && p != nil && p.Phase == tracker.Stream {
		h.owe(m, v.Now)
		return
	}
	l.answer(v, h, m.From, m.Context, round)
}

// answer tells a lane's member how far this one holds it, once that is durable.
func (l *Lanes) answer(v *View, h *heldLane, to protocol.MemberID, context, round uint64) {
	h.owed = owedAnswer{}
	a := message.With(protocol.Message{Type: message.LaneResp, To: to, Context: context},
		message.Part{Index: protocol.Index(h.high()), Round: round, ID: protocol.ProposalID{Session: h.lane}})
	if v.Settings.Mutant == MutantAckEarly {
		v.Out.Post(a)
		return
	}
	v.Out.PostDurable(a)
}

// OnFetch sends a leader what it is missing of a lane.
func (l *Lanes) OnFetch(v *View, m message.Message) {
	if l == nil {
		return
	}
	i, ok := l.find(m.ID.Session)
	if !ok || uint64(m.Index) <= l.held[i].base {
		return // what is committed is in its log, or will be
	}
	h := l.held[i]
	batches := h.batches[:h.durable(v.Disk)-h.base]
	if from := uint64(m.Index) - 1 - h.base; from < uint64(len(batches)) {
		batches = batches[from:]
		n := protocol.Fitting(batches, v.Settings.MaxFrameBytes)
		for i := range batches[:n] {
			l.counts.SentBytes += uint64(batches[i].Bytes())
		}
		v.Out.Post(message.With(protocol.Message{Type: message.Lane, To: m.From, Entries: batches[:n:n]},
			message.Part{ID: protocol.ProposalID{Session: h.lane}, Force: h.high() <= h.urgent}))
	}
}

// Highs says of each lane how far this member's disk holds more than what is committed.
func (l *Lanes) Highs(v *View) (highs []message.LaneHigh) {
	if l == nil {
		return nil
	}
	for _, h := range l.held {
		if high := h.durable(v.Disk); high > h.base {
			highs = append(highs, message.LaneHigh{Lane: h.lane, High: high})
		}
	}
	return highs
}

// Promised is this member's durable promise to a fence.
func (l *Lanes) Promised(v *View) uint64 {
	if l == nil || l.fence.step > v.Disk.Done {
		return 0
	}
	return l.fence.number
}
