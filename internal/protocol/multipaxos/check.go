package multipaxos

import (
	"errors"
	"fmt"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// Check is protocol.Core's.
func (s *Paxos) Check() error {
	for _, check := range [...]func(*Paxos) error{
		checkLog, checkAcceptor, checkRole, checkPeers, checkReads, checkRelay, (*Paxos).checkSeals,
	} {
		if err := check(s); err != nil {
			return fmt.Errorf("multi-paxos: member %s ballot %s %s: %w", s.cfg.Self, s.ballot, s.role, err)
		}
	}
	return nil
}

func checkLog(s *Paxos) error {
	if err := s.log.Check(); err != nil {
		return err
	}
	if err := s.disk.Check(s.log.Last()); err != nil {
		return err
	}
	switch h := &s.hard; {
	case s.committed != s.settled() && s.started:
		return fmt.Errorf("last %d, settled %d, handed over %d", s.log.Last(), s.settled(), s.committed)
	case h.logged > s.log.Last() || h.commit > h.logged || h.state > s.disk.Written:
		return fmt.Errorf("disk: written %d of %d, decided %d, ballot in %d of %d", h.logged, s.log.Last(), h.commit, h.state,
			s.disk.Written)
	case len(s.conf.Members) > 0:
		return errors.Join(s.conf.Validate(), slots.Fit(s.quorums, &s.conf), checkProfile(s))
	}
	return nil
}

// checkProfile verifies that the settings are those of the active profile, unless this member stops because of that.
func checkProfile(s *Paxos) error {
	if s.stopped {
		return nil
	}
	return s.tuning.Check(&s.conf.Profile)
}

func checkAcceptor(s *Paxos) error {
	if s.acc.Promised != s.ballot {
		return fmt.Errorf("promised %s", s.acc.Promised)
	}
	for i := s.hard.logged + 1; i <= s.log.Last() && !s.hard.hurry; i++ {
		if e := s.log.At(i); !s.acc.HoldsUnderPromise(&e) {
			return fmt.Errorf("entry %d is neither written nor accepted under the promised ballot", i)
		}
	}
	return s.acc.Check(s.log.Last())
}

func checkRole(s *Paxos) error {
	l, p := &s.lead, &s.prop
	switch {
	case (s.role == protocol.Leader) != (s.leader == s.cfg.Self):
		return fmt.Errorf("knows %s as leader", s.leader)
	case (s.role == protocol.Candidate || s.role == protocol.PreCandidate) && s.leader != 0:
		return fmt.Errorf("stands although %s leads", s.leader)
	case (s.role == protocol.Candidate || s.role == protocol.Leader) != (p.Phase != paxos.Idle):
		return fmt.Errorf("phase %d", p.Phase)
	case p.Phase != paxos.Idle && p.Ballot != s.ballot:
		return fmt.Errorf("proposes under %s", p.Ballot)
	case s.role != protocol.Leader && (len(l.peers)+len(l.queue) > 0 || l.change != nil):
		return fmt.Errorf("does not lead, but has %d peers, %d proposals", len(l.peers), len(l.queue))
	}
	if p.Phase != paxos.Idle {
		if err := p.Check(s.log.Last()); err != nil {
			return err
		}
	}
	queued, open := 0, 0
	for i := range l.queue {
		queued += l.queue[i].Bytes()
	}
	for i := s.log.Last() + 1; s.role == protocol.Leader && i <= p.End; i++ {
		v, ok := s.acc.Votes[i]
		if !ok || v.Ballot != s.ballot {
			return fmt.Errorf("proposed up to %d, but %d is accepted under %s", p.End, i, v.Ballot)
		}
		open += v.Entry.Bytes()
	}
	if queued != l.queued || open != l.open {
		return fmt.Errorf("%d bytes wait and %d are proposed, says %d and %d", queued, open, l.queued, l.open)
	}
	return nil
}

func checkPeers(s *Paxos) error {
	for i, p := range s.lead.peers {
		sum := 0
		for k, f := range p.Frames {
			sum += f.Bytes
			if f.Last <= p.Match || f.Last >= p.Next || k > 0 && f.Last <= p.Frames[k-1].Last {
				return fmt.Errorf("peer %s: in flight up to %d, match %d, next %d", p.ID, f.Last, p.Match, p.Next)
			}
		}
		if sum != p.Bytes || p.Match >= p.Next || p.Match > s.prop.End || p.Logged > s.log.Last() ||
			i > 0 && s.lead.peers[i-1].ID >= p.ID {
			return fmt.Errorf("peer %s: match %d, logged %d, next %d of %d, %d bytes in flight, says %d", p.ID, p.Match,
				p.Logged, p.Next, s.prop.End, sum, p.Bytes)
		}
	}
	return nil
}

func checkReads(s *Paxos) error {
	if r := &s.lead.reads; len(r.asked) > 0 && (r.index > s.log.Last() || r.round > s.lead.round) {
		return fmt.Errorf("reads of round %d at %d", r.round, r.index)
	}
	return nil
}

func checkRelay(s *Paxos) error { return s.gather.Check(s.cfg.Self) }
