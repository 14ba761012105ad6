package epaxos

import (
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/slots"
	"github.com/braidlog/braid/protocol"
)

// decide records a decision, and passes it to the recoveries that wait for it.
func (s *EPaxos) decide(id ID, v Value) {
	rec := s.replica.Decide(id, v)
	if rec == nil {
		return
	}
	s.change(rec)
	s.resolved(id)
	s.learned(id, v)
	s.graph.Decide(id, v.Deps, rec.Noop && s.cfg.Mutant != MutantEagerNoop)
	s.more = true
}

// diverged stops this member: another one has decided another value for a command. The error's index is the number of
// the command in its column.
func (s *EPaxos) diverged(from *peer, id ID) {
	s.out.Diverged = &protocol.DivergedError{Instance: s.cfg.Instance, From: from.id, Index: protocol.Index(id.Number)}
	s.stopped = true
}

// resolved ends all work for a command.
func (s *EPaxos) resolved(id ID) {
	s.stop(id)
	delete(s.wants, id)
}

func (s *EPaxos) learned(id ID, v Value) {
	for _, a := range slices.Clone(s.recovering) {
		if !a.over && a.recovery != nil {
			s.act(a, outcomeOf(a.recovery.Learned(id, v)))
		}
	}
}

// workOfStep is the number of dependencies that a step visits.
const workOfStep = 1 << 14

// execute executes the commands that can be executed (rule 10). Each component is an entry of the log.
func (s *EPaxos) execute() {
	if !s.more {
		return
	}
	var components []Component
	components, s.more = s.graph.Run(workOfStep, nil)
	for _, c := range components {
		s.append(s.entryOf(c), c)
	}
}

// entryOf returns the entry of decided commands that are executed together.
func (s *EPaxos) entryOf(c Component) protocol.Entry {
	groups := make([]protocol.Entry, len(c))
	for i, id := range c {
		if rec := s.replica.Record(id); rec.Noop {
			groups[i] = noopEntry(id)
		} else {
			groups[i] = rec.Command.Entry
		}
	}
	if len(groups) == 1 {
		return groups[0]
	}
	return protocol.JoinGroups(groups)
}

// append executes a component: its commands are decided, and all earlier ones of their columns were executed.
func (s *EPaxos) append(e protocol.Entry, c Component) {
	met := s.cfg.Mutant == MutantMeetAlone
	for _, id := range c {
		s.written = s.written.raise(id)
		rec := s.replica.Record(id)
		met = met || !rec.Noop && len(rec.Command.Touches) == 0
	}
	if met {
		s.meet = meeting{}
	}
	counts := countsOf(c)
	e = seal(e, s.log.Last()+1, termOf(s.written, met), counts)
	s.log.Append(e)
	s.disk.Record(s.out, protocol.Record{Kind: protocol.RecordEntry, Entry: e})
	s.keepWide(&e, counts)
	s.disk.moved = true
	for _, id := range c {
		rec := s.replica.Record(id)
		s.ownBytes -= rec.counted
		if rec.stored {
			s.disk.gone = append(s.disk.gone, cellOf(id))
		}
		if !rec.Noop {
			s.touched(rec.Command.Touches)
		}
		s.replica.Execute(id)
	}
	s.mark()
}

// touched keeps the state of classes before this step.
func (s *EPaxos) touched(t Touches) {
	for _, class := range t {
		if _, known := s.disk.classes[class]; !known {
			s.disk.classes[class] = s.replica.index.executed.classes[class].Clone()
		}
	}
}

// emitCommitted hands over the entries that are durable.
func (s *EPaxos) emitCommitted() {
	to := s.disk.Durable.Last
	if s.cfg.Mutant == MutantGiveEarly {
		to = s.log.Last()
	}
	for ; s.committed < to; s.committed++ {
		s.out.Commit = append(s.out.Commit, s.log.At(s.committed+1))
	}
}

// mark is what was executed up to an index of the log. There is one at the base, and one from time to time, so that
// missing entries are found without a search of the whole log.
type mark struct {
	at       protocol.Index
	executed Vector
}

const marksApart = 64

func (s *EPaxos) mark() {
	if last := s.log.Last(); last >= s.marks[len(s.marks)-1].at+marksApart {
		s.marks = append(s.marks, mark{last, s.written.Clone()})
	}
}

// from is the last mark up to which a member certainly has all of this log.
func (s *EPaxos) from(executed Vector) (last mark) {
	last = s.marks[0]
	for _, m := range s.marks {
		if !executed.Dominates(m.executed) {
			break
		}
		last = m
	}
	return mark{last.at, last.executed.Clone()}
}

// reach is the last index up to which a member certainly has all of this log, given what it has executed; 0 if it is
// missing entries that the log no longer has.
func (s *EPaxos) reach(executed Vector) (at protocol.Index) {
	for _, m := range s.marks {
		if !executed.Dominates(m.executed) {
			break
		}
		at = m.at
	}
	return at
}

// compact drops entries that a durable snapshot covers.
func (s *EPaxos) compact(to protocol.Index) {
	if to <= s.log.Base {
		return
	}
	base := s.marks[0]
	for len(s.marks) > 1 && s.marks[1].at <= to {
		s.marks = s.marks[1:]
		base = s.marks[0]
	}
	base.executed = base.executed.Clone()
	for ; base.at < to; base.at++ {
		e := s.log.At(base.at + 1)
		base.executed = s.wide.advance(base.executed, &e)
	}
	for at := s.log.Base + 1; at <= to; at++ {
		s.dropWide(at)
	}
	s.marks[0] = base
	s.log.Compact(to)
}

// sendExecuted sends a member the vector of what was executed here. A member that has executed less asks.
func (s *EPaxos) sendExecuted(to *peer) {
	s.send(to, MsgHeartbeat, Part{Deps: s.graph.Executed().Clone(), First: s.known()})
}

// onHeartbeat requests commands that the sender had executed one heartbeat ago and that are not known here.
func onHeartbeat(s *EPaxos, from *peer, _ *protocol.Message, p *Part) {
	if used := p.First.At(s.self); used >= s.replica.Next().Number {
		s.stopped = true // docs/internals/identity.md: this member has proposed commands that it does not know
		s.out.Forgot = &protocol.Forgot{Leader: from.id, Acked: protocol.Index(used),
			Last: protocol.Index(s.replica.Next().Number - 1)}
		return
	}
	from.before, from.executed = from.executed, p.Deps
	if !s.graph.Executed().Dominates(from.before) {
		s.ask(from)
	}
}

// pull is the state of catching up: a member that is behind asks one that has executed more.
type pull struct{ again, pause time.Duration }

func (s *EPaxos) ask(from *peer) {
	if s.now < s.pull.again {
		return
	}
	s.pull.pause = min(max(2*s.pull.pause, s.cfg.Heartbeat), s.cfg.ElectionTimeout)
	s.pull.again = s.now + s.pull.pause
	s.send(from, MsgAsk, Part{Deps: s.graph.Executed().Clone()})
}

// onAsk sends a member the entries that it has not executed, as many as fit into a message, in this log's order. That
// order is valid for the member too: what is before a command here, and not executed there, is before it in the
// message.
func onAsk(s *EPaxos, from *peer, _ *protocol.Message, p *Part) {
	if !p.Deps.Dominates(s.marks[0].executed) {
		s.sendSnapshot(from.id)
		return
	}
	var out []protocol.Entry
	bytes := 0
	at := s.from(p.Deps)
	for i := at.at + 1; i <= s.committed; i++ {
		e := s.log.At(i)
		before := at.executed.Clone()
		at.executed = s.wide.advance(at.executed, &e)
		if !p.Deps.misses(before, at.executed) {
			continue // it has the whole component
		}
		if bytes += e.Bytes(); bytes > s.cfg.MaxFrameBytes && len(out) > 0 ||
			s.cfg.MaxFrameEntries > 0 && len(out) == s.cfg.MaxFrameEntries {
			break
		}
		out = append(out, e)
	}
	if len(out) > 0 {
		m := s.message(from, MsgTell, Part{Deps: s.graph.Executed().Clone(), First: p.Deps}, nil)
		m.Entries, m.Commit = out, s.committed
		s.out.Send = append(s.out.Send, m)
	}
}

// onTell executes the entries after those that this member had when it asked. An earlier incarnation, which had more,
// may have asked.
func onTell(s *EPaxos, from *peer, m *protocol.Message, p *Part) {
	if !s.graph.Executed().Dominates(p.First) && s.cfg.Mutant != MutantTellAnybody {
		return
	}
	before := s.log.Last()
	for i := range m.Entries {
		if !s.applyExecuted(from, &m.Entries[i]) {
			break
		}
	}
	if s.log.Last() == before {
		return
	}
	s.pull = pull{}
	if !s.graph.Executed().Dominates(p.Deps) {
		s.ask(from)
	}
}

// applyExecuted executes an entry that another member has executed. It reports whether the entry is the next one, or
// known. Some of its no-ops may have been executed here with other commands.
func (s *EPaxos) applyExecuted(from *peer, e *protocol.Entry) bool {
	notes, err := notesOf(e)
	if err != nil {
		return false
	}
	notes = slices.DeleteFunc(notes, func(n note) bool { return s.replica.Executed(n.ID) })
	if len(notes) == 0 {
		return true
	}
	next, c := s.graph.Executed().Clone(), Component{}
	for i := range notes {
		id := notes[i].ID
		if id.Number != next.At(id.Column)+1 {
			return false
		}
		if rec := s.replica.Record(id); rec != nil && rec.Phase == Decided && rec.Noop != notes[i].Noop {
			s.diverged(from, id)
			return false
		}
		next, c = next.raise(id), append(c, id)
	}
	for _, id := range c { // before any of them is learned: none contradicts another one
		s.resolved(id)
	}
	for i := range notes {
		n := &notes[i]
		v := Value{}
		if !n.Noop {
			v.Command = &Command{Touches: n.Touches}
		}
		s.count(s.replica.DecideExecuted(n.ID, v))
		s.learned(n.ID, v)
	}
	s.graph.MarkExecuted(c)
	s.more = true
	s.append(*e, c)
	return true
}

// sendSnapshot requests a snapshot for a member unless one is being sent.
func (s *EPaxos) sendSnapshot(to protocol.MemberID) {
	if to != s.cfg.Self && !s.streaming[to] {
		s.streaming[to] = true
		s.out.Snapshots = append(s.out.Snapshots, to)
	}
}

// snapshotReceived installs a snapshot that has more than was executed here. It then contains everything executed
// here: it was taken where members meet, and this member has not reached that place (rule 12).
func (s *EPaxos) snapshotReceived(in protocol.SnapshotReceived) {
	x := Executed{index: &Index{}}
	if s.self == 0 || in.Base.Restore(&x) != nil || in.Base.Index <= s.log.Last() ||
		!x.vector.Dominates(s.graph.Executed()) {
		return
	}
	base := in.Base
	base.Config = base.Config.Clone()
	var left []*Record
	for _, rec := range s.replica.all() {
		switch {
		case !x.vector.Covers(rec.ID):
			left = append(left, rec)
		default:
			s.resolved(rec.ID)
			if rec.stored {
				s.disk.gone = append(s.disk.gone, cellOf(rec.ID))
			}
		}
	}
	s.install(&base, &x, left)
}

func (s *EPaxos) install(base *protocol.Base, x *Executed, left []*Record) {
	s.emitCommitted()
	for at := s.log.Base + 1; at <= s.log.Last(); at++ {
		s.dropWide(at)
	}
	s.log = slots.After(base).Log
	s.committed = base.Index
	s.marks, s.written = []mark{{base.Index, x.vector.Clone()}}, x.vector.Clone()
	s.disk.Install()
	s.disk.Record(s.out, protocol.Record{Kind: protocol.RecordBase, Base: base})
	s.begin(x, left, s.replica.reserved)
	clear(s.disk.classes)
	s.disk.moved = true
	s.pull = pull{}
	s.out.Install = base
}
