package order

import (
	"fmt"

	"github.com/braidlog/braid/protocol"
)

// A log with one active instance is that instance's log: each entry has its place as soon as it is added.
//
// A log that has had one instance from the beginning on has no rounds, and each entry covers at least one position,
// also those that order nothing. Its first EntryReshape to several instances begins the rounds: at that place the
// first round is over. From then on rounds count, also when one instance is left again.

// begunRounds is the round that is over where a log that had one instance gets others. It is not 0, as bases of
// instances tell by their rounds whether there are any.
const begunRounds = 1

// nextOfOne places the entries of the only instance, up to an EntryReshape of merged instances.
func (n *Niagara) nextOfOne(out []Placed) []Placed {
	s := &n.logs[0]
	done := 0
	for ; done < s.waiting.len(); done++ {
		e := s.waiting.at(done)
		if n.Sealing() != nil || n.changesInstances(e) || e.Kind == protocol.EntrySeal && !n.ready(s, e) {
			break
		}
		first := n.position + 1
		if n.pass(s, e); n.position >= first {
			out = append(out, Placed{Instance: s.at.Instance, First: first, Entry: *e})
		}
	}
	if done == s.waiting.len() || !n.alone || s.waiting.at(done).Kind != protocol.EntryReshape || n.Sealing() != nil {
		s.waiting.drop(done)
		return out
	}
	e := *s.waiting.at(done)
	s.waiting.drop(done + 1)
	out = append(out, Placed{Instance: s.at.Instance, First: n.position + 1, Entry: e})
	n.pass(s, &e)
	if last := len(out) - 1; n.Mutant == MutantGrowLate {
		for ; s.waiting.len() > 0; s.waiting.drop(1) {
			late := *s.waiting.at(0)
			out = append(out, Placed{Instance: s.at.Instance, First: n.position + 1, Entry: late})
			n.pass(s, &late)
		}
		out[last].Plan = n.beginRounds(wanted(&e))
		return out
	}
	out[len(out)-1].Plan = n.beginRounds(wanted(&e))
	return out
}

// changesInstances reports whether an entry of the only instance is to be looked at as one of several instances would
// be, or begins the rounds.
func (n *Niagara) changesInstances(e *protocol.Entry) bool {
	return e.Kind == protocol.EntryReshape && n.reshapes(e) || e.Kind == protocol.EntrySeal && !n.alone
}

// reshapes reports whether an EntryReshape has an effect.
func (n *Niagara) reshapes(e *protocol.Entry) bool { return !n.alone || wanted(e) > 1 }

// wanted is the number of instances after an EntryReshape.
func wanted(e *protocol.Entry) int { return min(max(1, e.Instances()), MaxInstances) }

// beginRounds continues with several instances, where there was one from the beginning on.
func (n *Niagara) beginRounds(instances int) *Plan {
	n.alone, n.round = false, begunRounds+1
	n.logs[0].at.Round = begunRounds
	return n.resize(instances, begunRounds)
}

// pass consumes the next entry of the only instance, which changes no instances.
func (n *Niagara) pass(s *instanceLog, e *protocol.Entry) {
	s.at.Index, s.at.Term = e.Index, e.Term
	if !n.alone {
		switch e.Kind {
		case protocol.EntryNoop:
			return
		case protocol.EntrySkip:
			s.at.Round = max(s.at.Round, e.Round())
			n.round = s.at.Round + 1
			return
		case protocol.EntryConfig, protocol.EntryLane, protocol.EntryGeneration, protocol.EntryEmpty:
		default:
			s.at.Round++
			n.round++
		}
	}
	n.position += protocol.Position(e.Width())
	if e.Kind == protocol.EntrySeal {
		n.meet(e)
	}
}

// Pass is Add and Next for those who need only the places of memberships and plans. It takes in the entries that have
// their place at once and appends the memberships among them to out. It returns the other entries, which are to be
// added: those from an EntryReshape or an EntrySeal on, and those of one of several instances. It keeps nothing of what
// it takes in.
func (n *Niagara) Pass(instance protocol.InstanceID, entries []protocol.Entry,
	out []Placed) (rest []protocol.Entry, placed []Placed) {
	s := &n.logs[0]
	if len(n.logs) > 1 || instance != s.at.Instance || s.waiting.len() > 0 || len(n.seals) > 0 {
		return entries, out
	}
	entries = fresh(instance, s.added, entries)
	for i := range entries {
		e := &entries[i]
		if n.changesInstances(e) || e.Kind == protocol.EntrySeal {
			return entries[i:], out
		}
		if e.Kind == protocol.EntryConfig {
			out = append(out, Placed{Instance: instance, First: n.position + 1, Entry: *e})
		}
		n.pass(s, e)
		s.added = e.Index
	}
	return nil, out
}

// fresh returns the entries after added, and panics if they do not continue there.
func fresh(instance protocol.InstanceID, added protocol.Index, entries []protocol.Entry) []protocol.Entry {
	for len(entries) > 0 && entries[0].Index <= added {
		entries = entries[1:]
	}
	for i := range entries {
		if entries[i].Index != added+protocol.Index(i)+1 {
			panic(fmt.Sprintf("order: entry %d after %d in instance %d", entries[i].Index, added+protocol.Index(i), instance))
		}
	}
	return entries
}

// checkAlone verifies the invariants of a log that has had one instance from the beginning on.
func (n *Niagara) checkAlone() error {
	s := &n.logs[0]
	switch {
	case len(n.logs) > 1 || n.round != 0 || n.next != 0 || n.reshape != 0:
		return fmt.Errorf("order: %d instances in round %d, and no rounds have begun", len(n.logs), n.round)
	case s.added != s.at.Index+protocol.Index(s.waiting.len()):
		return fmt.Errorf("order: %d waiting between %d and %d", s.waiting.len(), s.at.Index, s.added)
	case uint64(n.position) < uint64(s.at.Index):
		return fmt.Errorf("order: position %d < index %d", n.position, s.at.Index)
	}
	return nil
}
