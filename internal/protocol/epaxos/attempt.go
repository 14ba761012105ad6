package epaxos

import (
	"cmp"
	"slices"
	"time"
)

// attempt is this member's attempt to have a command decided: in ballot 0 as its proposer, or in a recovery. It ends
// with the decision, or when a member has promised a higher ballot. It does not survive a crash.
type attempt struct {
	id       ID
	ballot   Ballot
	opening  *Opening  // of ballot 0, until values are proposed
	recovery *Recovery // of other ballots, until then
	round    *Round    // of a value
	// knows are the members that certainly have the command: they answered with it.
	knows members
	// again is when to ask those again that have not answered; pause is the time between two requests. late is when to
	// give up the fast path.
	again, late time.Duration
	pause       time.Duration
	over        bool
}

// try begins an attempt, and ends one under a lower ballot.
func (s *EPaxos) try(id ID, b Ballot) *attempt {
	s.stop(id)
	a := &attempt{id: id, ballot: b, late: s.now + s.cfg.Heartbeat}
	s.postpone(a)
	s.attempt[id] = a
	s.attempts = append(s.attempts, a)
	return a
}

// stop ends the attempt to have a command decided.
func (s *EPaxos) stop(id ID) {
	if a := s.attempt[id]; a != nil {
		a.over = true
		delete(s.attempt, id)
	}
}

// postpone sets the time of the next request. The pause doubles each time, from a heartbeat to an election timeout.
func (s *EPaxos) postpone(a *attempt) {
	a.pause = min(max(2*a.pause, s.cfg.Heartbeat), s.cfg.ElectionTimeout)
	a.again = s.now + a.pause
}

// current is this member's attempt under a ballot, if it has promised no higher one.
func (s *EPaxos) current(id ID, b Ballot) *attempt {
	a := s.attempt[id]
	if a == nil || a.ballot != b {
		return nil
	}
	if rec := s.replica.Record(id); rec == nil || rec.Promised != b {
		return nil
	}
	return a
}

// act carries out the action that follows from an answer.
func (s *EPaxos) act(a *attempt, o outcome) {
	switch o.Action {
	case Decide:
		s.decided(a, o.Value)
	case Propose:
		rec := s.replica.Accept(a.id, a.ballot, o.Value)
		if rec == nil {
			s.stop(a.id)
			return
		}
		s.change(rec)
		a.opening, a.recovery, a.round, a.pause = nil, nil, &Round{Ballot: a.ballot, Value: o.Value}, 0
		s.postpone(a)
		s.releaseAll(MsgAccept, valuePart(a.id, a.ballot, o.Value), o.Command)
		if a.round.Accepted(s.self, s.size) {
			s.decided(a, o.Value)
		}
	case Validate:
		s.validate(a, o.Command)
	case Wait:
		s.wait(a)
	}
}

// decided sends the decision to all, once it is on this member's disk (rule 4). Members that have the command are not
// sent it again.
func (s *EPaxos) decided(a *attempt, v Value) {
	if a.ballot > 0 {
		s.window.succeeded()
	}
	whole := valuePart(a.id, 0, v)
	light := Part{ID: a.id, Noop: v.Command == nil, Deps: v.Deps}
	for _, to := range s.peers {
		if a.knows.has(to.column) {
			s.release(to, MsgDecided, light, nil)
		} else {
			s.release(to, MsgDecided, whole, v.Command)
		}
	}
	s.decide(a.id, v)
}

func (s *EPaxos) validate(a *attempt, cmd *Command) {
	rec, against := s.replica.Validate(a.id, a.ballot, cmd)
	if rec == nil {
		s.stop(a.id)
		return
	}
	s.change(rec)
	a.pause = 0
	s.postpone(a)
	s.askToValidate(a)
	s.act(a, outcomeOf(a.recovery.Validated(s.self, against)))
}

func (s *EPaxos) askToValidate(a *attempt) {
	r := a.recovery
	for _, c := range r.Quorum {
		if p := s.peerAt(c); p != nil && !r.valid.has(c) {
			s.release(p, MsgValidate, commandPart(a.id, a.ballot, r.Command), r.Command)
		}
	}
}

// wait starts waiting for the contradicting commands (rule 8). runWantTimers recovers them.
func (s *EPaxos) wait(a *attempt) {
	s.sendWaiting(a)
	for _, id := range slices.Clone(a.recovery.Contradicting()) {
		if v, known := s.replica.Decision(id); known && !a.over && a.recovery != nil {
			s.act(a, outcomeOf(a.recovery.Learned(id, v)))
		}
	}
	s.scanAt = s.now
}

// sendWaiting tells all members that this one waits, and asks those that have not promised.
func (s *EPaxos) sendWaiting(a *attempt) {
	for _, p := range s.peers {
		if a.recovery.RulesOutFast() {
			s.release(p, MsgWaiting, Part{ID: a.id, Ballot: a.ballot}, nil)
		}
		if !a.recovery.Quorum.has(p.column) {
			s.release(p, MsgRecover, Part{ID: a.id, Ballot: a.ballot}, nil)
		}
	}
}

// runAttemptTimers asks those again that have not answered, and gives up the fast path when it is late.
func (s *EPaxos) runAttemptTimers() {
	over := func(a *attempt) bool { return a.over }
	s.attempts, s.recovering = slices.DeleteFunc(s.attempts, over), slices.DeleteFunc(s.recovering, over)
	for _, a := range slices.Clone(s.attempts) {
		if rec := s.replica.Record(a.id); !a.over && (rec == nil || rec.Promised != a.ballot) {
			s.stop(a.id)
		}
		if !a.over && a.opening != nil && s.now >= a.late {
			s.act(a, outcomeOf(a.opening.Late()))
		}
		if !a.over && s.now >= a.again {
			s.postpone(a)
			s.askAgain(a)
		}
	}
}

func (s *EPaxos) askAgain(a *attempt) {
	if a.ballot > 0 && !a.waiting() {
		s.unanswered(a.pause)
	}
	for _, p := range s.peers {
		switch {
		case a.opening != nil && !a.opening.answered.has(p.column):
			s.release(p, MsgPreAccept, commandPart(a.id, 0, a.opening.Command), a.opening.Command)
		case a.round != nil && !a.round.accepted.has(p.column):
			s.release(p, MsgAccept, valuePart(a.id, a.ballot, a.round.Value), a.round.Value.Command)
		case a.recovery != nil && a.recovery.stage == collects && !a.recovery.hasPromised(p.column):
			s.release(p, MsgRecover, Part{ID: a.id, Ballot: a.ballot}, nil)
		}
	}
	switch {
	case a.recovery == nil:
	case a.recovery.stage == validates:
		s.askToValidate(a)
	case a.recovery.stage == waits:
		s.sendWaiting(a)
	}
}

// hasPromised reports whether a member has promised.
func (r *Recovery) hasPromised(c Column) bool {
	return slices.ContainsFunc(r.reports, func(report Report) bool { return report.From == c })
}

// want is an undecided command for which others wait.
type want struct {
	// at is when to recover it, unless another member has it decided before; pause is the time between two recoveries.
	at, pause time.Duration
	// known is the highest promised ballot, as far as this member knows.
	known Ballot
	still bool // other commands wait
}

// mostWanted limits the commands that are recovered at once in addition to the first ones of the columns.
const mostWanted = 64

// runWantTimers recovers commands for which others have waited too long.
func (s *EPaxos) runWantTimers() {
	for _, w := range s.wants { // any order: each is marked alone
		w.still = false
	}
	for c := Column(1); int(c) <= max(len(s.replica.columns), len(s.target)); c++ {
		s.wantFirst(c)
	}
	for _, id := range s.graph.Blockers(mostWanted) {
		s.want(id)
	}
	for _, a := range s.recovering {
		if !a.over && a.recovery != nil {
			for _, id := range a.recovery.Contradicting()[:min(mostWanted, len(a.recovery.Contradicting()))] {
				s.want(id)
			}
		}
	}
	var due []ID
	for id, w := range s.wants { // any order: they are sorted
		switch {
		case !w.still:
			delete(s.wants, id)
		case s.now >= w.at && s.attempt[id] == nil:
			due = append(due, id)
		}
	}
	slices.SortFunc(due, func(a, b ID) int { return cmp.Or(cmp.Compare(s.wants[a].at, s.wants[b].at), a.compare(b)) })
	for taken := s.taken(); len(due) > 0 && taken < s.window.size; taken++ {
		s.recover(due[0])
		due = due[1:]
	}
}

// firstWanted limits the wanted commands of a column, and silentWanted those of a column whose proposer is not
// active: no other member has them decided, and there may be as many as the proposer had in progress.
const (
	firstWanted  = 32
	silentWanted = 1024
)

// wantFirst wants the first undecided commands of a column, including numbers that an earlier incarnation of this
// member may have used: its next command depends on them. Decided commands are skipped: they may wait for the same
// ones.
func (s *EPaxos) wantFirst(c Column) {
	last := max(s.replica.Window(c), s.target.At(c))
	if c == s.self {
		last = max(last, s.replica.reserved)
	}
	more := firstWanted
	if p := s.peerAt(c); p != nil && !s.active(p) {
		more = silentWanted
	}
	for id := s.replica.open(c); id.Number <= last && more > 0 && s.replica.inWindow(id); id.Number++ {
		if _, known := s.replica.Decision(id); !known {
			s.want(id)
			more--
		}
	}
}

// want records that other commands wait for a command.
func (s *EPaxos) want(id ID) {
	if _, known := s.replica.Decision(id); known || !s.replica.inWindow(id) {
		return
	}
	w := s.wants[id]
	if w == nil {
		w = &want{}
		w.pause = s.patience(id.Column)
		w.at = s.now + s.spread(w.pause)
		s.wants[id] = w
	}
	w.still = true
}

// patience is how long to wait for others to have a command decided: longer while its proposer is active, and longer
// for members with higher columns, so that few begin. For a command of an earlier incarnation this member is the
// first.
func (s *EPaxos) patience(c Column) time.Duration {
	if c == s.self {
		return s.cfg.Heartbeat / 2
	}
	after := time.Duration(s.rank()) * s.cfg.ElectionTimeout / 2
	if p := s.peerAt(c); p != nil && s.active(p) {
		return after + s.cfg.ElectionTimeout
	}
	return after + s.cfg.ElectionTimeout/2
}

// spread is a random time between d and 2d, so that members do not begin together.
func (s *EPaxos) spread(d time.Duration) time.Duration {
	return d + time.Duration(s.chance.Draw()%uint64(max(d, 1)))
}

// recover begins a recovery (rule 6) under a ballot that is higher than all that this member knows.
func (s *EPaxos) recover(id ID) {
	w := s.wants[id]
	w.pause = min(2*w.pause, 4*s.cfg.ElectionTimeout)
	w.at = s.now + s.spread(w.pause)
	if rec := s.replica.Record(id); rec != nil {
		w.known = max(w.known, rec.Promised)
	}
	b := w.known.After(s.conf.Find(s.cfg.Self))
	rec, report := s.replica.Promise(id, b)
	s.change(rec)
	a := s.try(id, b)
	a.recovery = Recover(id, b, s.size, s.cfg.Mutant)
	s.recovering = append(s.recovering, a)
	s.releaseAll(MsgRecover, Part{ID: id, Ballot: b}, nil)
	s.act(a, outcomeOf(a.recovery.Promised(report)))
}

// observeBallot records a ballot that a member has promised.
func (s *EPaxos) observeBallot(id ID, b Ballot) {
	if w := s.wants[id]; w != nil {
		w.known = max(w.known, b)
	} else if _, known := s.replica.Decision(id); !known && s.replica.inWindow(id) {
		p := s.patience(id.Column)
		s.wants[id] = &want{at: s.now + s.spread(p), pause: p, known: b, still: true}
	}
	if a := s.attempt[id]; a != nil && a.ballot < b {
		s.stop(id)
	}
}
