package slotpaxos

import (
	"time"

	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// log are the decided entries after a snapshot, and the chain of all that was decided, up to the last one.
type log struct {
	slots.Log
	chain Chain
}

func (l *log) append(e protocol.Entry) {
	l.Append(e)
	l.chain.Apply(&e)
}

// learn takes over what is decided in the slot after the last. The cell goes: from now on the entry
// itself says what was decided.
func (s *Paxos) learn(e protocol.Entry) {
	s.leaving = nil
	if e.Kind == protocol.EntryConfig {
		s.leaving = s.conf.All()
		s.conf, _ = protocol.DecodeConfig(e.Payload) // which was readable
	}
	s.accepted(&e) // who waits for more than that is told more
	stored := s.unstored(e)
	if e.BodySize > 0 && s.keeps(&e) {
		e.Form = protocol.FormWhole // also if who sent it could not read the body
	}
	s.log.append(e)
	s.bodies.Learned(&e)
	s.record(protocol.Record{Kind: protocol.RecordEntry, Entry: stored})
	s.dropCell()
	s.try = try{} // whatever was tried, this slot is done
	s.lead.fill = false
	s.obeyConfig()
}

func (s *Paxos) dropCell() {
	if s.cell.slot != 0 {
		s.record(protocol.Record{Kind: protocol.RecordDrop, Cell: protocol.Cell{Number: uint64(s.cell.slot)}})
	}
	s.cell = cell{}
}

// onDecided: who accepted under that ballot has the entry. Others ask for it, in receive.
func onDecided(s *Paxos, m *protocol.Message, p Part) {
	s.observe(m.From, p.Ballot)
	if p.Slot == s.log.Last()+1 && s.cell.accepted == p.Ballot {
		s.learn(s.cell.entry)
		s.resume()
	}
}

// resume continues proposing, if this member does, after it learned from others.
func (s *Paxos) resume() {
	if s.role != protocol.Follower && s.try.phase == idle {
		s.begin()
	}
}

// pull is how a member that is behind catches up: it asks one that knows more.
type pull struct {
	// again is when to ask again, unless there was an answer; pause is how long that is after the last
	// time.
	again, pause time.Duration
}

func (s *Paxos) ask(from protocol.MemberID) {
	if s.now < s.pull.again {
		return
	}
	s.pull.pause = s.longer(s.pull.pause)
	s.pull.again = s.now + s.pull.pause
	s.send(from, MsgAsk, Part{})
}

func onAsk(s *Paxos, m *protocol.Message, _ Part) { s.sendDecided(m.From, m.Commit) }

// sendDecided sends a member entries after an index, as many as fit into a message, or a snapshot.
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

// sendSnapshot asks for a snapshot for a member, unless one is in progress.
func (s *Paxos) sendSnapshot(to protocol.MemberID) {
	if to != s.cfg.Self && !s.streaming[to] {
		s.streaming[to] = true
		s.out.Snapshots = append(s.out.Snapshots, to)
	}
}

// snapshotReceived takes a snapshot that is ahead of what is known here.
func (s *Paxos) snapshotReceived(in protocol.SnapshotReceived) {
	s.see(Ballot(in.Term), in.From)
	var chain Chain
	if in.Base.Index <= s.log.Last() || in.Base.Restore(&chain) != nil { // who received it has looked
		return
	}
	base := in.Base
	base.Config = base.Config.Clone()
	s.deliver()
	has := slots.After(&base)
	s.log, s.conf, s.bodies, s.given = log{has.Log, chain}, has.Config, has.Bodies, base.Index
	s.disk.Install()
	s.record(protocol.Record{Kind: protocol.RecordBase, Base: &base})
	s.dropCell()
	s.writeState()
	s.try, s.pull, s.leaving = try{}, pull{}, nil
	s.obeyConfig()
	s.out.Install = &base
	s.resume()
}
