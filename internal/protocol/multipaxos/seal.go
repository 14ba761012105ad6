package multipaxos

import (
	"errors"
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/protocol/paxos"
	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/protocol"
)

// An EntrySeal ends the log if it counts. Whether it does, the owner learns from the order, and says it: see
// protocol.Sealed. Behind an EntrySeal a leader proposes only what a ballot before its own may have decided there; what
// that is has no effect if the seal counts. A decided seal ends reads at once.

// suspended reports whether an EntrySeal is decided that may count.
func (s *Paxos) suspended() bool {
	return s.seals.Suspended(s.log.Last()) && (s.seals.Closed() || s.cfg.Mutant != MutantSealKeepsReads)
}

// ends reports whether an EntrySeal is decided that may count, or proposed: no slot behind it is free.
func (s *Paxos) ends() bool {
	return (s.seals.Proposed() || s.lead.sealedAt > s.log.Last()) && s.cfg.Mutant != MutantProposeBehindSeal
}

// sealing is ends, or an EntrySeal waits at the end of the queue: nothing else is taken.
func (s *Paxos) sealing() bool {
	n := len(s.lead.queue)
	return s.ends() || n > 0 && s.lead.queue[n-1].Kind == protocol.EntrySeal
}

// closed reports whether the log has ended here.
func (s *Paxos) closed() bool { return s.seals.Closed() && s.cfg.Mutant != MutantClosedTakesPart }

// sealed takes in the verdict. If the seal counts, the log up to it is written at once: what begins behind it is
// written after it, and a member that starts again finds all of it. A closed leader remains one: it proposes nothing,
// and tells the others what is decided.
func (s *Paxos) sealed(in protocol.Sealed) {
	s.seals.Judge(in)
	if in.Counts {
		s.writeState()
	}
	switch {
	case !in.Counts:
		s.fill()
		s.advance()
	case s.role == protocol.Leader:
		s.failReads(protocol.ReasonSealing)
		s.lead.queue, s.lead.queued, s.lead.transfer, s.gather = nil, 0, transferring{}, relay.Gathering{}
	default:
		s.stepDown()
		s.gather = relay.Gathering{}
	}
}

// sealState describes it for the status.
func (s *Paxos) sealState() protocol.SealState {
	if state := s.seals.State(s.log.Last()); state != protocol.SealNone || !s.sealing() {
		return state
	}
	return protocol.SealProposed
}

// receiveClosed handles a message at a closed core. It tells members that stand what is decided, and a leader continues
// to do so. Others that ask for something learn that the log is sealed.
func receiveClosed(s *Paxos, m *protocol.Message, p Part) {
	switch m.Type {
	case MsgPropose, MsgProposeRefused, MsgRead, MsgReadAnswer, MsgAsk:
		handlers[m.Type](s, m, p)
	case MsgProbe, MsgPrepare:
		sendDecided(s, m.From, m.Commit)
	case MsgAccepted, MsgAlive, MsgGathered:
		if s.role == protocol.Leader {
			handlers[m.Type](s, m, p)
		}
	}
}

// runClosedTimers sends heartbeats, if this member led in the end: members that are behind answer them.
func (s *Paxos) runClosedTimers() {
	if s.role != protocol.Leader || s.now < s.lead.heartbeatAt {
		return
	}
	s.lead.heartbeatAt = s.now + s.cfg.Heartbeat
	s.lead.relays.Turn++
	s.removeDeparted()
	for _, p := range s.lead.peers {
		s.heartbeat(p)
	}
}

// checkSeals verifies that nothing waits behind a seal, and that a leader has proposed no value of its own behind one.
func (s *Paxos) checkSeals() error {
	at := max(s.seals.First(), s.lead.sealedAt)
	free := max(at, s.prop.Floor)
	switch n := slices.IndexFunc(s.lead.queue, func(e protocol.Entry) bool { return e.Kind == protocol.EntrySeal }); {
	case n >= 0 && n < len(s.lead.queue)-1:
		return fmt.Errorf("%s waits behind a seal", s.lead.queue[n+1].Kind)
	case s.seals.Closed() && s.role != protocol.Leader && s.prop.Phase != paxos.Idle:
		return errors.New("stands, but its log is closed")
	case s.seals.First() == 0 && s.lead.sealedAt <= s.log.Last() || s.role != protocol.Leader:
		return nil
	case s.prop.End > max(free, s.log.Last()):
		return fmt.Errorf("proposed up to %d behind the seal %d, floor %d", s.prop.End, at, s.prop.Floor)
	}
	return nil
}
