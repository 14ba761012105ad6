package epaxos

import (
	"fmt"
	"slices"

	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// player is a member of a cluster in memory, composed of the parts of this package. Its disk completes writes at
// once.
type player struct {
	*group
	self       Column
	alive      bool
	replica    *Replica
	graph      *Graph
	openings   map[ID]*Opening
	rounds     map[ID]*Round
	recoveries map[ID]*Recovery
	refused    map[ID]Ballot

	disk  map[ID][]byte // records
	index []byte        // of the executed commands
	log   []done
}

// done is a command that was executed.
type done struct {
	id    ID
	value Value
}

func (p *player) start() {
	p.alive = true
	index := &Index{}
	if p.index != nil {
		var err error
		index, err = RestoreIndex(p.index)
		p.must(err)
	}
	var executed Vector
	for _, d := range p.log {
		executed = executed.raise(d.id)
	}
	p.replica, p.graph = NewReplica(p.self, executed, index, p.mutant), NewGraph(executed)
	p.openings, p.rounds, p.recoveries, p.refused = map[ID]*Opening{}, map[ID]*Round{}, map[ID]*Recovery{}, map[ID]Ballot{}
	for _, id := range sorted(p.disk) {
		rec, err := DecodeRecord(p.disk[id])
		p.must(err)
		p.replica.Restore(rec)
		if rec.Phase == Decided {
			p.graph.Decide(id, rec.Deps, rec.Noop)
		}
	}
}

func (p *player) crash() {
	p.index = p.replica.index.AppendExecuted(nil)
	p.start()
}

func sorted[V any](of map[ID]V) (ids []ID) {
	for id := range of {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, ID.compare)
	return ids
}

func (p *player) write(rec *Record) { p.disk[rec.ID] = rec.Append(nil) }

func (p *player) send(to Column, t protocol.MessageType, part Part, cmd *Command) {
	m := &protocol.Message{Type: t, From: protocol.MemberID(p.self), To: protocol.MemberID(to), Part: &part}
	if cmd != nil {
		m.Entries = []protocol.Entry{cmd.Entry}
	}
	p.transmit(m)
}

func (p *player) sendAll(t protocol.MessageType, part Part, cmd *Command) {
	for _, to := range p.players {
		if to.self != p.self {
			p.send(to.self, t, part, cmd)
		}
	}
}

func (p *player) propose(cmd *Command) ID {
	cmd.Entry = NewEntry(p.replica.Next(), cmd.Touches, []protocol.Entry{cmd.Entry})
	rec := p.replica.Propose(cmd)
	p.write(rec)
	o := Open(rec, p.size, p.mutant)
	p.openings[rec.ID] = o
	p.sendAll(MsgPreAccept, commandPart(rec.ID, 0, cmd), cmd)
	p.act(rec.ID, 0, outcomeOf(o.Answer(p.self, rec.Deps)))
	return rec.ID
}

func (p *player) act(id ID, b Ballot, o outcome) {
	switch o.Action {
	case Decide:
		p.decide(id, o.Value)
		p.sendAll(MsgDecided, valuePart(id, 0, o.Value), o.Command)
	case Propose:
		rec := p.replica.Accept(id, b, o.Value)
		if rec == nil {
			return
		}
		p.write(rec)
		p.rounds[id] = &Round{Ballot: b, Value: o.Value}
		p.sendAll(MsgAccept, valuePart(id, b, o.Value), o.Command)
		p.accepted(id, b, p.self)
	case Validate:
		p.validate(id, b, o.Command)
	case Wait:
		p.wait(p.recoveries[id])
	}
}

func (p *player) validate(id ID, b Ballot, cmd *Command) {
	rec, against := p.replica.Validate(id, b, cmd)
	if rec == nil {
		return
	}
	p.write(rec)
	r := p.recoveries[id]
	for _, to := range r.Quorum {
		if to != p.self {
			p.send(to, MsgValidate, commandPart(id, b, cmd), cmd)
		}
	}
	p.act(id, b, outcomeOf(r.Validated(p.self, against)))
}

func (p *player) wait(r *Recovery) {
	if r.RulesOutFast() {
		p.sendAll(MsgWaiting, Part{ID: r.ID, Ballot: r.Ballot}, nil)
	}
	p.sendAll(MsgRecover, Part{ID: r.ID, Ballot: r.Ballot}, nil)
	for _, id := range slices.Clone(r.Contradicting()) {
		if v, known := p.replica.Decision(id); known {
			p.act(r.ID, r.Ballot, outcomeOf(r.Learned(id, v)))
		} else if p.recoveries[id] == nil {
			p.recover(id)
		}
	}
}

func (p *player) recover(id ID) {
	if _, known := p.replica.Decision(id); known {
		return
	}
	b := p.refused[id]
	if rec := p.replica.Record(id); rec != nil {
		b = max(b, rec.Promised)
	}
	b = b.After(&protocol.Member{Slot: p.self})
	rec, report := p.replica.Promise(id, b)
	p.write(rec)
	r := Recover(id, b, p.size, p.mutant)
	delete(p.openings, id)
	p.recoveries[id] = r
	p.sendAll(MsgRecover, Part{ID: id, Ballot: b}, nil)
	p.act(id, b, outcomeOf(r.Promised(report)))
}

func (p *player) accepted(id ID, b Ballot, from Column) {
	if r := p.rounds[id]; r != nil && r.Ballot == b && r.Accepted(from, p.size) {
		delete(p.rounds, id)
		p.act(id, b, outcome{Decide, r.Value})
	}
}

// decide records a decision, passes it to those that wait for it, and executes what can be executed.
func (p *player) decide(id ID, v Value) {
	p.agree(id, v)
	rec := p.replica.Decide(id, v)
	if rec == nil {
		return
	}
	p.write(rec)
	delete(p.openings, id)
	delete(p.recoveries, id)
	for _, other := range sorted(p.recoveries) {
		if r := p.recoveries[other]; r != nil {
			p.act(other, r.Ballot, outcomeOf(r.Learned(id, v)))
		}
	}
	p.graph.Decide(id, v.Deps, v.Command == nil)
}

func (p *player) execute(work int) {
	components, _ := p.graph.Run(work, nil)
	for _, id := range slices.Concat(components...) {
		rec := p.replica.Execute(id)
		delete(p.disk, id)
		p.log = append(p.log, done{id, rec.Value()})
		p.executed(p, id, rec.Value())
	}
	p.replica.Prune()
	p.must(p.replica.Check())
	p.must(p.graph.check())
	for _, id := range sorted(p.recoveries) {
		p.must(p.recoveries[id].check())
	}
}

func (p *player) handle(m *protocol.Message) {
	part := slots.PartOf[Part](m)
	id, from, cmd := part.ID, Column(m.From), part.command(m)
	if p.replica.Executed(id) &&
		(m.Type == MsgRecover || m.Type == MsgAccept || m.Type == MsgValidate || m.Type == MsgPreAccept) {
		for _, d := range p.log {
			if d.id == id {
				p.send(from, MsgDecided, valuePart(id, 0, d.value), d.value.Command)
			}
		}
		return
	}
	switch m.Type {
	case MsgPreAccept:
		if rec := p.replica.PreAccept(id, cmd); rec != nil {
			p.write(rec)
			p.send(from, MsgPreAccepted, Part{ID: id, Deps: rec.Deps}, nil)
		}
	case MsgPreAccepted:
		if o := p.openings[id]; o != nil && p.replica.Record(id).Promised == 0 {
			p.act(id, 0, outcomeOf(o.Answer(from, part.Deps)))
		}
	case MsgAccept:
		v, complete := part.value(m)
		p.insist(complete)
		if rec := p.replica.Accept(id, part.Ballot, v); rec != nil {
			p.write(rec)
			p.send(from, MsgAccepted, Part{ID: id, Ballot: part.Ballot}, nil)
		} else {
			p.refuse(from, id)
		}
	case MsgAccepted:
		p.accepted(id, part.Ballot, from)
	case MsgRefused:
		p.refused[id] = max(p.refused[id], part.Ballot)
	case MsgDecided:
		v, complete := part.value(m)
		p.insist(complete)
		p.decide(id, v)
	default:
		p.handleRecovery(m, &part, from, cmd)
	}
}

func (p *player) refuse(to Column, id ID) {
	rec := p.replica.Record(id)
	if rec.Phase == Decided {
		p.send(to, MsgDecided, valuePart(id, 0, rec.Value()), rec.Value().Command)
		return
	}
	p.send(to, MsgRefused, Part{ID: id, Ballot: rec.Promised}, nil)
}

func (p *player) handleRecovery(m *protocol.Message, part *Part, from Column, cmd *Command) {
	id, b := part.ID, part.Ballot
	r := p.recoveries[id]
	current := r != nil && r.Ballot == b && p.replica.Record(id).Promised == b
	switch m.Type {
	case MsgRecover:
		rec, report := p.replica.Promise(id, b)
		if rec == nil {
			p.refuse(from, id)
			return
		}
		p.write(rec)
		answer := Part{ID: id, Ballot: b}
		if report.Phase != Unknown {
			answer = valuePart(id, b, report.Value)
			answer.Accepted, answer.Phase = report.Ballot, report.Phase
		}
		p.send(from, MsgPromise, answer, report.Value.Command)
	case MsgPromise:
		report, complete := part.report(from, m)
		p.insist(complete)
		if current {
			p.act(id, b, outcomeOf(r.Promised(report)))
		}
	case MsgValidate:
		if rec, against := p.replica.Validate(id, b, cmd); rec != nil {
			p.write(rec)
			p.send(from, MsgValidated,
				Part{ID: id, Ballot: b, Contradicts: against.Decided, Open: against.Open, More: against.More}, nil)
		} else {
			p.refuse(from, id)
		}
	case MsgValidated:
		if current {
			p.act(id, b, outcomeOf(r.Validated(from, Against{part.Contradicts, part.Open, part.More})))
		}
	case MsgWaiting:
		for _, other := range sorted(p.recoveries) {
			if r := p.recoveries[other]; r != nil && p.replica.Record(other).Promised == r.Ballot {
				p.act(other, r.Ballot, outcomeOf(r.OtherWaits(id)))
			}
		}
	default:
		p.must(fmt.Errorf("message of type %d", m.Type))
	}
}
