package epaxos

import (
	"slices"

	"github.com/braidlog/braid/protocol"
)

// Handlers of messages. replica.go and validate.go compute the answers; every answer waits for the record to be
// durable.

func onPreAccept(s *EPaxos, from *peer, m *protocol.Message, p *Part) {
	cmd := p.command(m)
	if cmd == nil || p.ID.Column != from.column {
		return
	}
	rec := s.replica.PreAccept(p.ID, cmd)
	switch known := s.replica.Record(p.ID); {
	case rec != nil:
		s.change(rec)
	case known == nil:
		return
	case known.Phase != Preaccepted || known.Promised != 0:
		s.answerOtherwise(from, known)
		return
	default:
		rec = known // the proposer asks again
	}
	s.release(from, MsgPreAccepted, Part{ID: p.ID, Deps: rec.Deps}, nil)
}

// answerOtherwise answers a request that is refused: the command is decided, or another ballot was promised.
func (s *EPaxos) answerOtherwise(to *peer, rec *Record) {
	if rec == nil {
		return
	}
	if rec.Phase == Decided {
		s.release(to, MsgDecided, valuePart(rec.ID, 0, rec.Value()), rec.Value().Command)
		return
	}
	s.release(to, MsgRefused, Part{ID: rec.ID, Ballot: rec.Promised}, nil)
}

func onPreAccepted(s *EPaxos, from *peer, _ *protocol.Message, p *Part) {
	if a := s.current(p.ID, 0); a != nil && a.opening != nil {
		a.knows = a.knows.with(from.column)
		s.act(a, outcomeOf(a.opening.Answer(from.column, p.Deps)))
	}
}

func onAccept(s *EPaxos, from *peer, m *protocol.Message, p *Part) {
	v, complete := p.value(m)
	if !complete {
		return
	}
	rec := s.replica.Accept(p.ID, p.Ballot, v)
	if rec == nil {
		s.answerOtherwise(from, s.replica.Record(p.ID))
		return
	}
	s.change(rec)
	s.release(from, MsgAccepted, Part{ID: p.ID, Ballot: p.Ballot}, nil)
}

func onAccepted(s *EPaxos, from *peer, _ *protocol.Message, p *Part) {
	if a := s.current(p.ID, p.Ballot); a != nil && a.round != nil {
		a.knows = a.knows.with(from.column)
		if a.round.Accepted(from.column, s.size) {
			s.decided(a, a.round.Value)
		}
	}
}

func onRefused(s *EPaxos, _ *peer, _ *protocol.Message, p *Part) { s.observeBallot(p.ID, p.Ballot) }

// onDecided handles a decision. It may come without the command if the receiver has that.
func onDecided(s *EPaxos, from *peer, m *protocol.Message, p *Part) {
	v := Value{Command: p.command(m), Deps: p.Deps}
	rec := s.replica.Record(p.ID)
	if !p.Noop && v.Command == nil && rec != nil {
		v.Command = rec.Command
	}
	switch {
	case p.Noop != (v.Command == nil): // invalid, or this member does not have the command
	case rec != nil && rec.Phase == Decided && !rec.Value().same(v):
		s.diverged(from, p.ID)
	default:
		s.decide(p.ID, v)
	}
}

func onRecover(s *EPaxos, from *peer, _ *protocol.Message, p *Part) {
	rec, report := s.replica.Promise(p.ID, p.Ballot)
	if rec == nil {
		s.answerOtherwise(from, s.replica.Record(p.ID))
		return
	}
	s.change(rec)
	answer := Part{ID: p.ID, Ballot: p.Ballot}
	if report.Phase != Unknown {
		answer = valuePart(p.ID, p.Ballot, report.Value)
		answer.Accepted, answer.Phase = report.Ballot, report.Phase
	}
	s.release(from, MsgPromise, answer, report.Value.Command)
}

func onPromise(s *EPaxos, from *peer, m *protocol.Message, p *Part) {
	report, complete := p.report(from.column, m)
	if a := s.current(p.ID, p.Ballot); a != nil && a.recovery != nil && complete {
		s.act(a, outcomeOf(a.recovery.Promised(report)))
	}
}

func onValidate(s *EPaxos, from *peer, m *protocol.Message, p *Part) {
	cmd := p.command(m)
	if cmd == nil {
		return
	}
	rec, against := s.replica.Validate(p.ID, p.Ballot, cmd)
	if rec == nil {
		s.answerOtherwise(from, s.replica.Record(p.ID))
		return
	}
	s.change(rec)
	s.release(from, MsgValidated,
		Part{ID: p.ID, Ballot: p.Ballot, Contradicts: against.Decided, Open: against.Open, More: against.More}, nil)
}

func onValidated(s *EPaxos, from *peer, _ *protocol.Message, p *Part) {
	if a := s.current(p.ID, p.Ballot); a != nil && a.recovery != nil {
		a.knows = a.knows.with(from.column)
		s.act(a, outcomeOf(a.recovery.Validated(from.column, Against{p.Contradicts, p.Open, p.More})))
	}
}

func onWaiting(s *EPaxos, _ *peer, _ *protocol.Message, p *Part) {
	for _, a := range slices.Clone(s.recovering) {
		if !a.over && a.recovery != nil && s.current(a.id, a.ballot) == a {
			s.act(a, outcomeOf(a.recovery.OtherWaits(p.ID)))
		}
	}
}
