package slotpaxos

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// log has the decided entries after a snapshot, and the chain of everything decided, up to the last one.
type log struct {
	slots.Log
	chain Chain
}

func (l *log) append(e protocol.Entry) {
	l.Append(e)
	l.chain.Apply(&e)
}

// learn appends the entry that is decided in the slot after the last. The cell is dropped: the log has the decision.
func (s *Paxos) learn(e protocol.Entry) {
	s.leaving = nil
	if e.Kind == protocol.EntryConfig {
		s.leaving = s.conf.All()
		s.conf, _ = protocol.DecodeConfig(e.Payload) // it was checked when it was accepted
		s.tune(&s.conf)
	}
	s.accepted(&e) // proposals that wait for more than acceptance are answered later
	stored := s.unstored(e)
	if e.BodySize > 0 && s.keeps(&e) {
		e.Form = protocol.FormWhole // also if the sender could not read the body
	}
	s.log.append(e)
	s.bodies.Learned(&e)
	s.record(protocol.Record{Kind: protocol.RecordEntry, Entry: stored})
	s.dropCell()
	s.try = try{} // whatever was tried, this slot is decided
	s.lead.fill = false
	s.configChanged()
}

func (s *Paxos) dropCell() {
	if s.cell.slot != 0 {
		s.record(protocol.Record{Kind: protocol.RecordDrop, Cell: protocol.Cell{Number: uint64(s.cell.slot)}})
	}
	s.cell = cell{}
}

// onDecided: a member that accepted under that ballot has the entry. Others ask for it, in receive.
func onDecided(s *Paxos, m *protocol.Message, p Part) {
	s.follow(m.From, p.Ballot)
	if p.Slot == s.log.Last()+1 && s.cell.accepted == p.Ballot {
		s.learn(s.cell.entry)
		s.resume()
	}
}

// resume continues proposing after this member learned slots from others.
func (s *Paxos) resume() {
	if s.role != protocol.Follower && s.try.phase == idle {
		s.begin()
	}
}

// pull is the state of catching up: a member that is behind asks one that knows more.
type pull struct {
	// again is when to ask again unless an answer arrives, and pause the time between two requests.
	again, pause time.Duration
}

func (s *Paxos) ask(from protocol.MemberID) {
	if s.now < s.pull.again {
		return
	}
	s.pull.pause = s.backoff(s.pull.pause)
	s.pull.again = s.now + s.pull.pause
	s.send(from, MsgAsk, Part{})
}

func onAsk(s *Paxos, m *protocol.Message, _ Part) { s.sendDecided(m.From, m.Commit) }

// sendDecided sends a member entries after an index, as many as fit into one message, or a snapshot.
func (s *Paxos) sendDecided(to protocol.MemberID, after protocol.Index) {
	if after < s.log.Base {
		s.sendSnapshot(to)
		return
	}
	if after >= s.log.Last() || to == s.cfg.Self {
		return
	}
	s.send(to, MsgTell, Part{}).Entries = s.log.Run(after, s.cfg.MaxFrameBytes, s.cfg.MaxFrameEntries)
}

func onTell(s *Paxos, m *protocol.Message, _ Part) {
	before := s.log.Last()
	for i := range m.Entries {
		e := &m.Entries[i]
		if s.diverged(s.log.Diverges(s.cfg.Instance, m.From, e)) {
			return
		}
		if e.Index == s.log.Last()+1 && slots.Readable(e) {
			s.learn(*e)
		}
	}
	if s.log.Last() > before {
		s.pull = pull{}
		s.resume()
	}
}

// sendSnapshot requests a snapshot for a member unless one is being sent.
func (s *Paxos) sendSnapshot(to protocol.MemberID) {
	if to != s.cfg.Self && !s.streaming[to] {
		s.streaming[to] = true
		s.out.Snapshots = append(s.out.Snapshots, to)
	}
}

// snapshotReceived installs a snapshot that is ahead of what is known here.
func (s *Paxos) snapshotReceived(in protocol.SnapshotReceived) {
	s.observeBallot(Ballot(in.Term), in.From)
	var chain Chain
	if in.Base.Index <= s.log.Last() || in.Base.Restore(&chain) != nil { // the caller has verified it
		return
	}
	base := in.Base
	base.Config = base.Config.Clone()
	if !s.tune(&base.Config) {
		return
	}
	s.emitCommitted()
	has := slots.After(&base)
	s.log, s.conf, s.bodies, s.committed = log{has.Log, chain}, has.Config, has.Bodies, base.Index
	s.disk.Install()
	s.record(protocol.Record{Kind: protocol.RecordBase, Base: &base})
	s.dropCell()
	s.writeState()
	s.try, s.pull, s.leaving = try{}, pull{}, nil
	s.configChanged()
	s.out.Install = &base
	s.resume()
}
