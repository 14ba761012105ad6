package iss

import (
	"slices"

	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/protocol"
)

// An EntrySeal ends the log after its epoch if it counts. Whether it does, the owner learns from the order, and says
// it: see protocol.Sealed. The member that proposes changes proposes it, and names the last slot of the epoch in it.
// The leaders use up their slots, as in an epoch that has to end for another reason, and commands in these take effect.
// Then the log waits: this member takes no part in the next epoch until the verdict. Reads that need the last slot of
// the epoch wait for the next one in any case, and no quorum answers in that.

// sealing is what is known of seals.
type sealing struct {
	protocol.Seals
	// upto is the last slot of the epoch of the last EntrySeal in the log; 0: none has come.
	upto protocol.Index
	// wanted is an EntrySeal that waits for a free slot, under the configuration at the index under; nil: none.
	wanted *protocol.Entry
	under  protocol.Index
	// proposed is the slot of the last EntrySeal that this member proposed; 0: there is none.
	proposed protocol.Index
}

// noteSeal records an entry of the log.
func (s *ISS) noteSeal(e *protocol.Entry) {
	if e.Kind == protocol.EntrySeal {
		s.seal.Note(e)
		s.seal.upto = max(s.seal.upto, e.SealedAt())
	}
}

// passSeals forgets the seals of earlier epochs at a start: the log has slots behind them, so they did not count.
func (s *ISS) passSeals() {
	if s.log.Last() > s.seal.upto {
		s.seal.Install()
	}
}

// waits reports whether the log waits for the verdict of a seal at the end of its epoch, or has ended.
func (s *ISS) waits() bool {
	if s.seal.Closed() {
		return s.closed()
	}
	return s.seal.Proposed() && s.log.Last() >= s.seal.upto && s.cfg.Mutant != MutantSealPassed
}

// closed reports whether the log has ended here.
func (s *ISS) closed() bool { return s.seal.Closed() && s.cfg.Mutant != MutantClosedTakesPart }

// sealProposed reports whether an EntrySeal is in the log without a verdict, or this member proposes one.
func (s *ISS) sealProposed() bool {
	return s.seal.wanted != nil || s.seal.Proposed() || s.seal.proposed > s.log.Last()
}

func (s *ISS) sealState() protocol.SealState {
	switch {
	case s.seal.Closed():
		return protocol.SealClosed
	case s.waits():
		return protocol.SealSuspended
	case s.sealProposed():
		return protocol.SealProposed
	}
	return protocol.SealNone
}

// propose accepts entries. An EntrySeal comes alone, and is dropped if it cannot be the next change.
func (s *ISS) propose(in *protocol.Propose) {
	under := s.log.ConfigAt
	if in.Under != nil {
		under = *in.Under
	}
	in.Entries = s.takeSkips(in.Entries)
	switch n := slices.IndexFunc(in.Entries, func(e protocol.Entry) bool { return e.Kind == protocol.EntrySeal }); {
	case n >= 0 && s.sealable(under) && !s.sealProposed() && in.Entries[n].CheckProposal() == nil:
		s.seal.wanted, s.seal.under = &in.Entries[n], under
	case n < 0 && in.Under == nil:
		onProposeInput(s, in.Entries)
	}
}

// sealable reports whether this member may propose a seal under a configuration.
func (s *ISS) sealable(under protocol.Index) bool {
	return s.epoch != nil && s.leads() == s.cfg.Self && under == s.log.ConfigAt && !s.changing() && !s.waits()
}

// proposeSeal proposes the seal that waits, if that is still possible.
func (s *ISS) proposeSeal(b *broadcast) {
	e := s.seal.wanted
	s.seal.wanted = nil
	if s.sealable(s.seal.under) && !s.sealProposed() {
		sealed := *e
		sealed.Low, s.seal.proposed = uint64(s.epoch.Last), b.seg.After(b.prop.End)
		if s.cfg.Mutant == MutantSealAtEntry {
			sealed.Low = 0
		}
		b.propose(sealed)
	}
}

// sealed takes in the verdict. If the seal counts, the log up to its end is written at once: what begins behind it is
// written after it, and a member that starts again finds all of it.
func (s *ISS) sealed(in protocol.Sealed) {
	waited := s.waits()
	s.seal.Judge(in)
	switch {
	case in.Counts:
		s.close()
	case waited && !s.waits() && s.epoch != nil:
		for _, b := range s.parts {
			b.resetTimeout()
		}
		s.receiveEarly()
	}
}

func (s *ISS) close() {
	if s.epoch != nil {
		s.writeState()
	}
	for _, b := range s.parts {
		b.stepDown()
		b.gather = relay.Gathering{}
	}
	for _, context := range slices.Concat(s.reads.ended, s.reads.asked, s.reads.waiting) {
		s.refuse(context, protocol.ReasonSealing)
	}
	if c := s.proposals.change; c != nil {
		s.refuse(c.Context, protocol.ReasonSealing)
	}
	s.reads, s.seal.wanted = reads{round: s.reads.round}, nil
	s.proposals.queue, s.proposals.queued, s.proposals.change = nil, 0, nil
	s.early, s.earlyBytes, s.fillAt = nil, 0, 0
}

// receiveClosed handles a message at a closed core: it sends members that are behind what is decided.
func (s *ISS) receiveClosed(m *protocol.Message, p *Part) {
	switch m.Type {
	case MsgPropose:
		onPropose(s, m)
	case MsgProposeRefused:
		onProposeRefused(s, p)
	case MsgAsk:
		onAsk(s, m, p)
	case MsgBeat, MsgPrepare, MsgAccept, MsgAccepted:
		if m.Commit < s.log.Last() {
			s.sendEntries(m.From, m.Commit)
		}
	}
}
