package order

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/protocol"
)

// A log that is sealed continues in new instances. An EntrySeal names the membership and the profile that it expects,
// and takes effect at the last position that the old order fills: in a log of one instance after the entry that
// [protocol.Entry.SealedAt] names, in a merged log at the end of its round. Whether the seal counts there depends on
// the memberships at that place, which the order does not know. So it stops there, and continues when it is told:
// see [Order.Sealing] and [Order.Seal]. Everything behind a seal that counts is void. The order passes a seal only when
// it has everything up to that place. So no cursor is between.

// OpenSeal is a seal that the order has passed, without a verdict.
type OpenSeal struct {
	protocol.Seal
	Index protocol.Index // of the entry
	// End is the index of the last entry that fills the old order, if the log has one instance.
	End protocol.Index
}

// ready reports whether everything is there up to the place of a seal in this log, the first one whose slot in the
// round is not filled.
func (n *Niagara) ready(s *instanceLog, e *protocol.Entry) bool {
	if n.Mutant == MutantSealPassed {
		return true
	}
	if n.alone {
		return s.added >= e.SealedAt()
	}
	for i := n.next + 1; i < len(n.logs); i++ {
		if !n.logs[i].fills(n.round) {
			return false
		}
	}
	return true
}

// fills reports whether a waiting entry fills the log's slot in a round.
func (s *instanceLog) fills(r protocol.Round) bool {
	for i := range s.waiting.len() {
		switch e := s.waiting.at(i); e.Kind {
		case protocol.EntrySkip:
			if e.Round() >= r {
				return true
			}
		case protocol.EntryNoop, protocol.EntryConfig, protocol.EntryLane, protocol.EntryGeneration,
			protocol.EntryEmpty:
		default:
			return true
		}
	}
	return false
}

// meet notes a seal. One that cannot be read counts nowhere: no member proposes it.
func (n *Niagara) meet(e *protocol.Entry) {
	if !e.Applicable() {
		panic(fmt.Sprintf("order: the payload of seal %d is not at hand", e.Index))
	}
	if s, err := protocol.DecodeSeal(e.Payload); err == nil {
		n.seals = append(n.seals, OpenSeal{Seal: s, Index: e.Index, End: e.SealedAt()})
	}
}

// Sealing implements [Order].
func (n *Niagara) Sealing() *OpenSeal {
	if len(n.seals) == 0 || !n.over && !(n.alone && n.logs[0].at.Index >= n.seals[0].End) {
		return nil
	}
	return &n.seals[0]
}

// Seal implements [Order].
func (n *Niagara) Seal(counts bool) *Placed {
	s := n.seals[0]
	if !counts {
		n.seals = slices.Clone(n.seals[1:])
		return nil
	}
	before := n.ends()
	n.position++
	n.logs, n.seals, n.over = nil, nil, false
	if first := before[0].Instance; n.Mutant == MutantNumberAgain && first > protocol.FirstInstance {
		n.fresh = first
	}
	n.next, n.round, n.reshape, n.alone = 0, 0, 0, !s.Merged
	at := Point{}
	if s.Merged {
		at.Round, n.round = begunRounds, begunRounds+1
	}
	for range s.Instances {
		at.Instance = n.fresh
		n.logs = append(n.logs, instanceLog{at: at})
		n.fresh++
	}
	p := &Plan{At: n.Cursor(), Begin: n.instances(), Members: before[0].Instance, Seal: &s, Ended: before}
	for _, b := range before {
		p.End = append(p.End, b.Instance)
	}
	return &Placed{First: n.position, Entry: protocol.Entry{Kind: protocol.EntrySeal}, Plan: p}
}

// ends are the instances with the last entry of each that fills the order.
func (n *Niagara) ends() (all []protocol.EndedLog) {
	for i := range n.logs {
		s := &n.logs[i]
		e := protocol.EndedLog{Instance: s.at.Instance, Index: s.at.Index}
		if s.within {
			e.Index++
		}
		all = append(all, e)
	}
	return all
}
