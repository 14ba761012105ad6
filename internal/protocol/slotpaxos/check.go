package slotpaxos

import (
	"fmt"

	"github.com/braidlog/braid/protocol"
)

// Check is protocol.Core's.
func (s *Paxos) Check() error {
	for _, check := range [...]func(*Paxos) error{checkLog, checkCell, checkDisk, checkRole, checkTry, checkReads} {
		if err := check(s); err != nil {
			return fmt.Errorf("slotpaxos: member %s ballot %s %s: %w", s.cfg.Self, s.ballot, s.role, err)
		}
	}
	return nil
}

func checkLog(s *Paxos) error {
	if err := s.log.Check(); err != nil {
		return err
	}
	switch {
	case s.committed != s.settled() && s.started:
		return fmt.Errorf("last %d, settled %d, handed over %d", s.log.Last(), s.settled(), s.committed)
	case len(s.conf.Members) > 0:
		if err := s.conf.Validate(); err != nil || s.stopped {
			return err
		}
		return s.tuning.Check(&s.conf.Profile)
	}
	return nil
}

func checkCell(s *Paxos) error {
	c := &s.cell
	switch {
	case c.slot == 0 && (c.promised != 0 || c.accepted != 0), c.slot != 0 && c.slot != s.log.Last()+1:
		return fmt.Errorf("a cell of slot %d, promised %s; the log ends at %d", c.slot, c.promised, s.log.Last())
	case c.accepted > c.promised:
		return fmt.Errorf("slot %d: accepted %s above the promised %s", c.slot, c.accepted, c.promised)
	case c.promised > s.ballot:
		return fmt.Errorf("slot %d: promised %s, which is not known", c.slot, c.promised)
	case c.accepted != 0 && (c.entry.Index != c.slot || !s.whole(&c.entry)):
		return fmt.Errorf("slot %d: accepted entry %d, of %d bytes", c.slot, c.entry.Index, c.entry.Bytes())
	}
	return nil
}

func checkDisk(s *Paxos) error {
	if d := &s.disk; d.state > d.Written || d.commit > s.log.Last() {
		return fmt.Errorf("disk: written %d, state %d, decided %d", d.Written, d.state, d.commit)
	}
	return s.disk.Check(s.log.Last())
}

func checkRole(s *Paxos) error {
	l := &s.lead
	switch {
	case (s.role == protocol.Leader) != (s.leader == s.cfg.Self):
		return fmt.Errorf("knows %s as leader", s.leader)
	case s.role == protocol.Candidate && s.leader != 0:
		return fmt.Errorf("stands although %s leads", s.leader)
	case s.role == protocol.Follower && (s.try.phase != idle || len(l.peers)+len(l.queue) > 0 || l.change != nil):
		return fmt.Errorf("does not lead, but has %d peers, %d proposals, phase %d", len(l.peers), len(l.queue), s.try.phase)
	case s.role == protocol.Leader && s.try.phase == idle:
		return fmt.Errorf("leads, but has no slot")
	}
	queued := 0
	for i := range l.queue {
		queued += l.queue[i].Bytes()
	}
	if queued != l.queued || len(l.queue) != len(l.early) {
		return fmt.Errorf("%d bytes wait for slots, says %d", queued, l.queued)
	}
	return nil
}

func checkTry(s *Paxos) error {
	t := &s.try
	switch {
	case t.phase != idle && t.slot != s.log.Last()+1:
		return fmt.Errorf("proposes for slot %d; the log ends at %d", t.slot, s.log.Last())
	case t.phase == accepting && (t.value.Index != t.slot || !t.value.Applicable()):
		return fmt.Errorf("proposes entry %d, of %d bytes, for slot %d", t.value.Index, t.value.Bytes(), t.slot)
	case t.found >= s.ballot && t.found != 0:
		return fmt.Errorf("found an entry of ballot %s", t.found)
	}
	return nil
}

func checkReads(s *Paxos) error {
	if r := &s.reads; len(r.asked) > 0 && (r.round == 0 || r.until > s.now+s.cfg.ElectionTimeout) {
		return fmt.Errorf("reads of round %d until %s", r.round, r.until)
	}
	return nil
}
