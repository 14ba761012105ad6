package raft

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Check is protocol.Core's.
func (r *Raft) Check() error {
	for _, check := range [...]func(*Raft) error{
		checkIndexes, checkDisk, checkRole, checkUncommitted, checkMembers, checkPeers, checkReads, checkBodies,
		checkLanes, checkSeals,
	} {
		if err := check(r); err != nil {
			return fmt.Errorf("raft: member %s term %d %s: %w", r.cfg.Self, r.term, r.role, err)
		}
	}
	return nil
}

func checkIndexes(r *Raft) error {
	switch {
	case r.commit < r.log.Base || r.commit > r.log.Last:
		return fmt.Errorf("commit %d outside of the log, %d to %d", r.commit, r.log.Base, r.log.Last)
	case r.given != r.commit:
		return fmt.Errorf("commit %d, handed over %d", r.commit, r.given)
	case r.verified > r.log.Last:
		return fmt.Errorf("verified %d beyond last %d", r.verified, r.log.Last)
	case r.term < r.log.LastTerm:
		return fmt.Errorf("log ends in term %d", r.log.LastTerm)
	}
	return r.log.Check()
}

func checkDisk(r *Raft) error {
	return r.disk.Check(r.log.Last, r.commit)
}

func checkRole(r *Raft) error {
	l := &r.lead
	switch r.role {
	case protocol.Leader:
		if r.leader != r.cfg.Self {
			return fmt.Errorf("leads, but knows %s as leader", r.leader)
		}
		if l.ready && (l.first > r.log.Last || r.log.LastTerm != r.term) {
			return fmt.Errorf("no entry of its term: first %d, last %d of term %d", l.first, r.log.Last, r.log.LastTerm)
		}
	case protocol.Candidate, protocol.PreCandidate:
		if r.leader != 0 {
			return fmt.Errorf("stands although %s leads", r.leader)
		}
		if r.role == protocol.Candidate && r.vote != r.cfg.Self {
			return fmt.Errorf("stands, but voted for %s", r.vote)
		}
	}
	promise, _ := r.members.Promise(r.commit)
	if r.role == protocol.Follower && r.leader != 0 && r.votes.stand < r.votes.heard+promise {
		return fmt.Errorf("stands at %s, but heard of leader %s at %s", r.votes.stand, r.leader, r.votes.heard)
	}
	if r.role != protocol.Leader && (len(l.peers) > 0 || l.ready || r.leader == r.cfg.Self) {
		return fmt.Errorf("does not lead, but has %d peers and leader %s", len(l.peers), r.leader)
	}
	return nil
}

// checkUncommitted: what is known of the uncommitted entries as a whole is what they say one by one.
func checkUncommitted(r *Raft) error {
	bytes, coded := 0, 0
	err := r.log.Each(r.commit+1, r.log.Last, func(e *protocol.Entry) error {
		if err := checkCoded(r, e, coded); err != nil {
			return err
		}
		if bytes += e.Bytes(); e.Coded() {
			coded++
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case r.role == protocol.Leader && bytes != r.lead.uncommitted:
		return fmt.Errorf("%d bytes uncommitted, says %d", bytes, r.lead.uncommitted)
	case coded != len(r.bodies.Coded.Indexes):
		return fmt.Errorf("coded entries are %v, commit %d, last %d", r.bodies.Coded.Indexes, r.commit, r.log.Last)
	}
	return nil
}

func checkLanes(r *Raft) error { return r.lanes.Check(r.seeLanes()) }

// checkSeals: a leader appends nothing behind a seal but its first entry, and a closed core does not stand.
func checkSeals(r *Raft) error {
	if r.seals.Closed() && (r.role == protocol.Candidate || r.role == protocol.PreCandidate) {
		return fmt.Errorf("stands, but its log is closed")
	}
	at := r.seals.First()
	if at == 0 || r.role != protocol.Leader {
		return nil
	}
	return r.log.Each(max(at, r.log.Base)+1, r.log.Last, func(e *protocol.Entry) error {
		if e.Term == r.term && e.Index != r.lead.first {
			return fmt.Errorf("appended %s at %d behind the seal %d", e.Kind, e.Index, at)
		}
		return nil
	})
}

func checkMembers(r *Raft) error { return r.members.Check(&r.log) }

func checkPeers(r *Raft) error {
	for i, p := range r.lead.peers {
		if i > 0 && r.lead.peers[i-1].ID >= p.ID || p.ID == r.cfg.Self {
			return fmt.Errorf("peers are not sorted at %s", p.ID)
		}
		if err := p.Check(r.log.Last, r.cfg.MaxInflightBytes); err != nil {
			return err
		}
		if p.Leaving == 0 != slices.Contains(r.members.Config.All(), p.ID) {
			return fmt.Errorf("peer %s: leaving at %d, but the config says otherwise", p.ID, p.Leaving)
		}
		if p.LeaveBy != 0 && (p.Leaving == 0 || r.members.Retains(p.ID)) {
			return fmt.Errorf("peer %s: leaves by %s, leaving at %d, other instances have %v", p.ID, p.LeaveBy, p.Leaving,
				r.members.Others)
		}
	}
	for _, id := range r.members.Others {
		if r.role == protocol.Leader && id != r.cfg.Self && r.members.Retains(id) && r.lead.peer(id) == nil {
			return fmt.Errorf("other instances have %s, which is removed here and gets no entries", id)
		}
	}
	return nil
}

func checkReads(r *Raft) error {
	rd := &r.lead.reads
	if len(rd.asked) > 0 && (rd.index > r.commit || rd.round > r.lead.round) {
		return fmt.Errorf("reads at %d in round %d, commit %d, round %d", rd.index, rd.round, r.commit, r.lead.round)
	}
	return nil
}

// checkBodies verifies the invariants of the fields about bodies.
func checkBodies(r *Raft) error {
	for _, p := range r.lead.peers {
		if err := r.see().CheckHeld(p); err != nil {
			return err
		}
	}
	return nil
}

// checkCoded checks the body of an uncommitted entry, before which there is this number of coded ones.
func checkCoded(r *Raft, e *protocol.Entry, before int) error {
	if _, row := e.Form.Row(); row && !e.Coded() || e.BodySize == 0 && e.Form != protocol.FormNone {
		return fmt.Errorf("entry %d: %s of a body of %d bytes with k=%d", e.Index, e.Form, e.BodySize, e.K)
	}
	if r.lead.ready && e.BodySize > 0 && e.Form != protocol.FormWhole {
		return fmt.Errorf("leads with %s of %d (C3)", e.Form, e.Index)
	}
	if !e.Coded() {
		return nil
	}
	if before == len(r.bodies.Coded.Indexes) || r.bodies.Coded.Indexes[before] != e.Index ||
		r.bodies.Coded.Last < e.Index {
		return fmt.Errorf("coded entries are %v, not %d; at most %d", r.bodies.Coded.Indexes, e.Index, r.bodies.Coded.Last)
	}
	if r.lead.ready && e.Index < r.members.At {
		return fmt.Errorf("configuration at %d after coded %d (C8)", r.members.At, e.Index)
	}
	if most := r.members.Config.MaxRows(); r.lead.ready && most > 0 && e.K > most {
		return fmt.Errorf("entry %d has k=%d, but members hold whole what is above %d", e.Index, e.K, most)
	}
	return nil
}
