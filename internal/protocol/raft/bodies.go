package raft

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/internal/protocol/raft/tracker"
	"github.com/braidlog/braid/protocol"
)

// bodies is the owner's last report about the bodies of committed entries (protocol.Bodies).
type bodies struct {
	// missing: some are not held here in any form, as far as is known.
	missing bool
	// maxK is the largest k among those alive.
	maxK uint8
	// partial is the largest k among those that the disk does not hold whole, as of the
	// configuration restripes.
	partial   uint8
	restripes uint32
	// said is the last report of the owner. It accounts for the entries up to at. spoken: the owner
	// has said something.
	said   protocol.Bodies
	at     protocol.Index
	spoken bool
}

// ownerSays takes in a protocol.Bodies. It accounts only for entries that the owner was given. The
// log knows more about later entries, especially those that a member finds in it at its start.
func (r *Raft) ownerSays(in protocol.Bodies) {
	r.bodies.said, r.bodies.at, r.bodies.spoken = in, r.given, true
	r.weighBodies()
}

// weighBodies computes the state of this member's bodies from what the owner said and from the log
// after that.
func (r *Raft) weighBodies() {
	b := &r.bodies
	if !b.spoken {
		return
	}
	b.missing, b.maxK, b.partial, b.restripes = b.said.Missing > 0, b.said.MaxK, b.said.Partial, b.said.Restripes
	for i := max(b.at, r.log.Base) + 1; i <= r.log.Last; {
		run := r.log.Run(i, r.log.Last+1)
		for j := range run {
			e := &run[j]
			b.missing = b.missing || e.BodySize > 0 && e.Form == protocol.FormNone
			if e.Coded() && e.Form != protocol.FormWhole {
				b.partial = max(b.partial, e.K)
			}
		}
		i += protocol.Index(len(run))
	}
}

// tellBodies tells the leader the state of this member's bodies, in an answer that leaves when the disk is done.
func (r *Raft) tellBodies(m message.Message) {
	m.Lacking, m.Partial, m.Restripes = r.bodies.missing, r.bodies.partial, r.bodies.restripes
}

// tellBodiesNow is tellBodies in an answer that does not wait for the disk.
func (r *Raft) tellBodiesNow(m message.Message) {
	r.tellBodies(m)
	m.Restripes = r.obeyed()
}

// noteCoded notes an entry that was appended.
func (r *Raft) noteCoded(e *protocol.Entry) {
	if e.BodySize == 0 {
		return
	}
	if e.Coded() {
		r.coded = append(r.coded, e.Index)
		r.lastCoded = max(r.lastCoded, e.Index)
	}
	if e.Form == protocol.FormNone {
		r.bodies.missing = true
	}
}

// raise raises the commit index.
func (r *Raft) raise(to protocol.Index) {
	if to <= r.commit {
		return
	}
	r.commit = to
	n := 0
	for n < len(r.coded) && r.coded[n] <= to {
		n++
	}
	r.coded = slices.Delete(r.coded, 0, n)
}

// commitTo commits everything up to an index on a leader.
func (r *Raft) commitTo(to protocol.Index) {
	for i := r.commit + 1; i <= to; i++ {
		r.lead.uncommitted -= r.log.At(i).Bytes()
	}
	coded := len(r.coded)
	r.raise(to)
	if len(r.coded) < coded {
		for _, p := range r.lead.peers {
			p.ForgetHeld(to)
		}
	}
	r.afterCommit()
}

// maxK is the largest k of a body that may be alive: in the log, or as the owner said.
func (r *Raft) maxK() uint8 { return max(r.bodies.maxK, r.log.MaxK()) }

// checkBodies verifies the invariants of the fields about bodies.
func checkBodies(r *Raft) error {
	for _, p := range r.lead.peers {
		if err := r.checkHeld(p); err != nil {
			return err
		}
	}
	return nil
}

// checkCoded checks the body of an uncommitted entry, before which there is this number of coded ones.
func (r *Raft) checkCoded(e *protocol.Entry, before int) error {
	if _, row := e.Form.Row(); row && !e.Coded() || e.BodySize == 0 && e.Form != protocol.FormNone {
		return fmt.Errorf("entry %d: %s of a body of %d bytes with k=%d", e.Index, e.Form, e.BodySize, e.K)
	}
	if r.lead.ready && e.BodySize > 0 && e.Form != protocol.FormWhole {
		return fmt.Errorf("leads with %s of %d (C3)", e.Form, e.Index)
	}
	if !e.Coded() {
		return nil
	}
	if before == len(r.coded) || r.coded[before] != e.Index || r.lastCoded < e.Index {
		return fmt.Errorf("coded entries are %v, not %d; at most %d", r.coded, e.Index, r.lastCoded)
	}
	if r.lead.ready && e.Index < r.members.At {
		return fmt.Errorf("configuration at %d after coded %d (C8)", r.members.At, e.Index)
	}
	if most := r.members.Config.MaxRows(); r.lead.ready && most > 0 && e.K > most {
		return fmt.Errorf("entry %d has k=%d, but members hold whole what is above %d", e.Index, e.K, most)
	}
	return nil
}

// checkHeld: a leader believes of a peer only what that peer acknowledged of entries that
// are in question (C7).
func (r *Raft) checkHeld(p *tracker.Progress) error {
	last := r.commit
	for _, h := range p.Held {
		if h.Index <= last || h.Index > p.Match || !slices.Contains(r.coded, h.Index) || h.Form == protocol.FormNone {
			return fmt.Errorf("peer %s holds %+v, match %d, commit %d", p.ID, p.Held, p.Match, r.commit)
		}
		last = h.Index
	}
	if p.Filling.Last > 0 && (p.Filling.Last > p.Match || p.Filling.Last > p.Whole) {
		return fmt.Errorf("peer %s: bodies up to %d under way, match %d, whole %d", p.ID, p.Filling.Last, p.Match, p.Whole)
	}
	return nil
}
