package epaxos

import (
	"slices"

	"github.com/braidlog/braid/protocol"
)

// propose accepts entries on the member where they were proposed. Several entries become one command if they fit into
// a message.
func (s *EPaxos) propose(in *protocol.Propose) {
	for from := 0; from < len(in.Entries); {
		e := &in.Entries[from]
		if reason := s.refusal(e); reason != protocol.ReasonNone {
			if e.ID != (protocol.ProposalID{}) {
				s.out.Reject = append(s.out.Reject, protocol.Rejection{ID: e.ID, Reason: reason, Leader: s.leader()})
			}
			from++
			continue
		}
		n, keys := s.together(in, from)
		s.open(in.Entries[from:from+n], TouchesOf(keys))
		from += n
	}
}

func (s *EPaxos) refusal(e *protocol.Entry) protocol.Reason {
	id := s.replica.Next()
	switch {
	case s.self == 0:
		return protocol.ReasonNoLeader
	case e.Kind != protocol.EntryBatch:
		return protocol.ReasonInvalidChange
	case e.BodySize > 0, e.Bytes() > s.most():
		return protocol.ReasonTooLarge
	case e.CheckProposal() != nil:
		return protocol.ReasonMalformed
	case s.ownBytes > 0 && s.ownBytes+e.Bytes() > s.most(), !s.replica.inWindow(id):
		return protocol.ReasonOverloaded
	}
	return protocol.ReasonNone
}

// most limits the bytes of this member's own commands that it has not executed. So all commands that depend on each
// other fit into one entry.
func (s *EPaxos) most() int {
	return min(s.cfg.MaxUncommittedBytes, protocol.MaxEntryBytes/(4*max(1, s.size.Members)))
}

// together is the number of entries, from one on, that become one command, and the keys of all.
func (s *EPaxos) together(in *protocol.Propose, from int) (n int, keys []uint64) {
	n, keys = 1, slices.Clone(in.OptionsOf(from).Keys)
	fitting := protocol.Fitting(in.Entries[from:], min(s.cfg.MaxFrameBytes, s.most()-s.ownBytes))
	if most := s.cfg.MaxFrameEntries; most > 0 {
		fitting = min(fitting, most)
	}
	for ; n < fitting; n++ {
		more := in.OptionsOf(from + n).Keys
		if s.refusal(&in.Entries[from+n]) != protocol.ReasonNone || (len(more) == 0) != (len(keys) == 0) ||
			len(keys)+len(more) > protocol.MaxKeys {
			break
		}
		keys = append(keys, more...)
	}
	return n, keys
}

// open begins a command of this member (rule 2). If its number is reserved, it is sent while this member's disk
// writes it. Its answer to itself counts at once, because its consequences, a decision or an acceptance, are written
// after it.
func (s *EPaxos) open(batches []protocol.Entry, t Touches) {
	id := s.replica.Next()
	rec := s.replica.Propose(&Command{Entry: NewEntry(id, t, batches), Touches: t})
	s.change(rec)
	s.disk.use(id.Number)
	a := s.try(id, 0)
	a.opening = Open(rec, s.size, s.cfg.Mutant)
	p := commandPart(id, 0, rec.Command)
	for _, to := range s.peers {
		if id.Number <= s.disk.reserved {
			s.out.Send = append(s.out.Send, s.message(to, MsgPreAccept, p, rec.Command))
		} else {
			s.release(to, MsgPreAccept, p, rec.Command)
		}
	}
	s.reserve(id.Number)
	s.act(a, outcomeOf(a.opening.Answer(s.self, rec.Deps)))
}

// count adds a command of this member to ownBytes. Others may send it commands of an earlier incarnation.
func (s *EPaxos) count(rec *Record) {
	if rec.ID.Column == s.self {
		s.ownBytes += rec.bytes() - rec.counted
		rec.counted = rec.bytes()
	}
}

// bytes is the memory of a command that is not executed. A command that was replaced by a no-op counts 0, because it
// may never be executed.
func (r *Record) bytes() int {
	if r == nil || r.Command == nil || r.Phase == Decided && r.Noop {
		return 0
	}
	return r.Command.Entry.Bytes()
}
