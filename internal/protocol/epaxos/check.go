package epaxos

import "fmt"

// Check is protocol.Core's.
func (s *EPaxos) Check() error {
	for _, check := range [...]func(*EPaxos) error{checkParts, checkLog, checkWide, checkAttempts, checkOwn} {
		if err := check(s); err != nil {
			return fmt.Errorf("epaxos: member %s: %w", s.cfg.Self, err)
		}
	}
	return s.disk.Check(s.log.Last())
}

func checkParts(s *EPaxos) error {
	if err := s.replica.Check(); err != nil {
		return err
	}
	return s.graph.check()
}

func checkLog(s *EPaxos) error {
	executed := s.graph.Executed()
	for i := range s.replica.columns {
		if c := Column(i + 1); s.replica.columns[i].executed != executed.At(c) {
			return fmt.Errorf("column %d: executed up to %d, and by the graph up to %d", c, s.replica.columns[i].executed,
				executed.At(c))
		}
	}
	if !s.written.Equal(executed) {
		return fmt.Errorf("the log has %s, executed are %s", s.written, executed)
	}
	if s.committed > s.log.Last() || s.committed < s.log.Base {
		return fmt.Errorf("handed over %d of %d…%d", s.committed, s.log.Base, s.log.Last())
	}
	if s.marks[0].at != s.log.Base {
		return fmt.Errorf("the log begins after %d, and the first mark is at %d", s.log.Base, s.marks[0].at)
	}
	for i, m := range s.marks {
		if !executed.Dominates(m.executed) || i > 0 && m.at < s.marks[i-1].at || m.at > s.log.Last() {
			return fmt.Errorf("mark at %d of %d: %s of %s", m.at, s.log.Last(), m.executed, executed)
		}
	}
	return s.log.Check()
}

func checkWide(s *EPaxos) error {
	n := 0
	if len(s.wide) == 0 && s.size.Members <= headColumns {
		return nil
	}
	for at := s.log.Base + 1; at <= s.log.Last(); at++ {
		e := s.log.At(at)
		if !isWide(&e) {
			continue
		}
		if n++; len(s.wide[at]) <= headColumns {
			return fmt.Errorf("entry %d is wide, with %s", at, s.wide[at])
		}
	}
	if n != len(s.wide) {
		return fmt.Errorf("%d entries are wide, says %d", n, len(s.wide))
	}
	return nil
}

func checkAttempts(s *EPaxos) error {
	current := 0
	for _, a := range s.attempts {
		if a.over {
			continue
		}
		current++
		if _, known := s.replica.Decision(a.id); known || s.attempt[a.id] != a ||
			(a.opening != nil) != (a.ballot == 0 && a.round == nil) {
			return fmt.Errorf("tries to have %s decided under %s", a.id, a.ballot)
		}
		if a.recovery != nil {
			if err := a.recovery.check(); err != nil {
				return err
			}
		}
	}
	if s.window.size < leastWindow || s.window.size > mostWindow {
		return fmt.Errorf("window of %d recoveries", s.window.size)
	}
	if current != len(s.attempt) {
		return fmt.Errorf("%d attempts, and knows %d", current, len(s.attempt))
	}
	return nil
}

func checkOwn(s *EPaxos) error {
	own := 0
	for _, rec := range s.replica.of(s.self) {
		own += rec.bytes()
	}
	if own != s.ownBytes {
		return fmt.Errorf("%d bytes of own commands are not executed, says %d", own, s.ownBytes)
	}
	return nil
}
