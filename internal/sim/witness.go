package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/protocol"
)

var (
	bodiesByLanes       = count.New("bodies_by_lanes", "bodies by lanes", count.Staged)
	electionsWon        = count.New("elections", "elections")
	jointConfigurations = count.New("joint_configurations", "joint configurations")
	configurations      = count.New("configurations", "configurations")
	codedEntriesDecided = count.New("coded_entries_decided", "coded entries", count.Coded)
	bodiesUpgraded      = count.New("bodies_upgraded", "bodies upgraded", count.Coded)
	logsCutByLeaders    = count.New("logs_cut_by_new_leaders", "logs cut by new leaders", count.Coded)
)

// witness is a core that is watched: everything that it decides goes to the judges first.
type witness struct {
	protocol.Core
	s      *memberInstance
	m      *Member
	status protocol.Status // as of the last change
	waste  waste
	reads  readPoints
}

func newWitness(s *memberInstance, core protocol.Core) *witness {
	return &witness{Core: core, s: s, m: s.m, status: core.Status()}
}

// Step implements protocol.Core. out may hold effects of earlier steps of the same turn. Only the
// new ones are judged.
func (c *witness) Step(now time.Duration, in protocol.Input, out *protocol.Effects) {
	before := *out
	out.Changed, out.Install = false, nil
	c.asks(in)
	c.Core.Step(now, in, out)
	news := newsOf(out, &before)
	err := errors.Join(c.judge(&news), c.judgeReads(&news))
	if (c.status.Role == protocol.Leader || len(news.Commit) > 0) && !c.m.w.set.byKey() {
		err = errors.Join(err, c.waste.follow(c, in, &news))
	}
	if err != nil {
		c.m.w.Violate(c.m.id, err)
	}
	out.Changed = out.Changed || before.Changed
	if out.Install == nil {
		out.Install = before.Install
	}
}

// newsOf is what a step added to the effects.
func newsOf(out, before *protocol.Effects) protocol.Effects {
	news, persist := *out, len(before.Persist)
	if persist > 0 && before.Persist[persist-1].Kind == protocol.RecordState {
		persist-- // a new one may have taken its place
	}
	news.Persist, news.Commit = out.Persist[persist:], out.Commit[len(before.Commit):]
	news.Send, news.Release = out.Send[len(before.Send):], out.Release[len(before.Release):]
	news.Accepted = out.Accepted[len(before.Accepted):]
	news.Reads, news.Reject = out.Reads[len(before.Reads):], out.Reject[len(before.Reject):]
	return news
}

func (c *witness) judge(out *protocol.Effects) error {
	if err := c.Core.Check(); err != nil {
		return fmt.Errorf("invariant: %w", err)
	}
	if err := c.deleted(out); err != nil {
		return err
	}
	id, ledger := c.m.judged(), c.s.judges.ledger
	leader := id
	for i := range out.Persist {
		r := c.m.w.set.recordOf(&out.Persist[i])
		if err := ledger.Write(id, out.Seq, r); err != nil {
			return err
		}
		if err := c.judgeBody(&out.Persist[i]); err != nil {
			return err
		}
		if err := c.judgeSkip(&out.Persist[i]); err != nil {
			return err
		}
		if r.Kind == check.EntryRecord && r.Voters != nil && c.status.Role == protocol.Leader {
			c.m.w.Count(configurations)
			if len(r.Voters.Outgoing) > 0 {
				c.m.w.Count(jointConfigurations)
			}
		}
	}
	if out.Changed {
		c.changed()
	}
	if c.status.Role == protocol.Leader {
		if c.m.w.set.protocol.Core.Judged.ManyLead || c.m.w.set.byKey() {
			leader = uint64(c.m.id) // it leads because the log says so, and does that in all its lives
		}
		if err := ledger.Lead(leader, uint64(c.status.Term)); err != nil {
			return err
		}
	}
	if c.m.w.set.protocol.Core.Proposing.Path != nil {
		for _, id := range out.Accepted {
			c.s.judges.electorates.accept(id)
		}
	}
	for i := range out.Commit {
		e := &out.Commit[i]
		if out.Install != nil && e.Index <= out.Install.Index {
			continue // the snapshot stands for it
		}
		before := ledger.Decided()
		decide := ledger.Decide
		if e.Kind == protocol.EntryNoop {
			decide = ledger.DecideVoid
		}
		if err := decide(id, uint64(c.status.Term), uint64(e.Index), uint64(e.Term), entryDigest(e)); err != nil {
			return err
		}
		if ledger.Decided() > before {
			c.s.judges.noteForReads(e)
			c.m.w.firstDecision(c.s)
			c.m.w.askReplaced(c.s)
			if err := errors.Join(c.decided(e), c.s.judges.electorates.decide(e)); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleted judges what a new leader deletes before it leads.
func (c *witness) deleted(out *protocol.Effects) error {
	id, ledger := c.m.judged(), c.s.judges.ledger
	was, term := ledger.Last(id)
	if c.m.w.set.byKey() {
		return nil // there is no leader
	}
	if c.status.Role != protocol.Leader || term >= uint64(c.status.Term) {
		return nil
	}
	last := uint64(c.Core.Status().Last)
	for i := range out.Persist {
		if r := &out.Persist[i]; r.Kind == protocol.RecordEntry {
			last = min(last, uint64(r.Entry.Index)-1)
		}
	}
	if last >= was {
		return nil
	}
	c.m.w.Count(logsCutByLeaders)
	c.m.w.Tracef("%s   deletes what was never committed, after %d", c.m.id, last)
	return ledger.Cut(id, last)
}

// judgeBody notes for the judge what a record says about bodies. The judge is told when the outbox
// is carried out. Only then is it known with which call of Submit the record goes to the disk,
// because others may write before.
func (c *witness) judgeBody(r *protocol.Record) error {
	m, bodies := c.m, c.s.judges.bodies
	if m.strange() || m.w.set.byKey() {
		return nil // what it holds counts for nothing, or there are no bodies
	}
	var note func() error
	switch r.Kind {
	case protocol.RecordState:
		commit := r.State.Commit
		note = func() error { c.s.noting = commit; return nil }
	case protocol.RecordEntry:
		if bare(&r.Entry) && m.w.set.protocol.Core.Judged.ManyLead {
			return nil // something with a body may have been proposed there
		}
		body := bodyOf(&r.Entry)
		if r.Entry.Coded() && c.status.Role == protocol.Leader {
			m.w.sentCoded(m)
		}
		note = func() error { return bodies.Entry(uint64(m.id), m.writer.count+1, body) }
	case protocol.RecordCell:
		if r.Entry.Form == protocol.FormNone {
			return nil
		}
		body := bodyOf(&r.Entry)
		note = func() error { return bodies.Body(uint64(m.id), m.writer.count+1, body) }
	case protocol.RecordBody:
		m.w.Count(bodiesUpgraded)
		body := bodyOf(&r.Entry)
		note = func() error { return bodies.Body(uint64(m.id), m.writer.count+1, body) }
	default:
		return nil
	}
	c.s.notes = append(c.s.notes, note)
	return nil
}

func bodyOf(e *protocol.Entry) check.Body {
	b := check.Body{Index: uint64(e.Index), Term: uint64(e.Term), K: e.K, Form: check.Form(e.Form), Size: e.BodySize, Digest: e.BodyDigest}
	if e.Form != protocol.FormNone {
		b.Bytes = e.Body
	}
	return b
}

// decided tells the judges of bodies and of the global log what was just decided.
func (c *witness) decided(e *protocol.Entry) error {
	w, bodies, ledger := c.m.w, c.s.judges.bodies, c.s.judges.ledger
	if e.Coded() {
		w.Count(codedEntriesDecided)
		w.decidedCoded(c.m, c.s.judges, e.Index)
	}
	if e.Kind == protocol.EntryGroup && e.BodySize > 0 {
		w.Count(bodiesByLanes)
	}
	if w.set.woven() {
		slot := slotOf(e)
		if w.weave.Decide(uint64(c.s.instance), slot); slot.Covers > 0 {
			w.judgeMerging(c.s.instance, e.Index)
		}
	}
	if e.Kind == protocol.EntryBatch && e.Applicable() {
		if err := e.CheckProposal(); err != nil {
			return err // no member could apply it
		}
	}
	if e.Kind == protocol.EntryGroup && e.Applicable() {
		if err := e.CheckGroup(); err != nil {
			return err
		}
	}
	if w.set.byKey() {
		return nil // there are no configurations, and no bodies
	}
	if e.Kind == protocol.EntryConfig {
		config, err := protocol.DecodeConfig(e.Payload)
		if err != nil {
			return err
		}
		c.s.judges.leave(&config, w.Now())
		if c.s.judges.ended {
			return nil // it obeys the first instance
		}
		return errors.Join(bodies.Configure(votersOf(&config), firstSlots(&config)), w.configureEnded(c.s.judges))
	}
	if c.s.judges.ended && uint64(e.Index) > c.s.judges.last {
		bodies.Void(uint64(e.Index), uint64(e.Term))
	}
	if bare(e) && c.m.w.set.protocol.Core.Judged.ManyLead {
		bodies.Void(uint64(e.Index), uint64(e.Term)) // perhaps something with a body was proposed there
	}
	return bodies.Decide(uint64(e.Index), uint64(e.Term), ledger.DecidedBy(uint64(e.Index)))
}

// bare: an entry that may take the place of any other in its slot, in the same epoch.
func bare(e *protocol.Entry) bool {
	return e.Kind == protocol.EntryNoop || e.Kind == protocol.EntryEmpty
}

func (c *witness) changed() {
	was := c.status
	c.status = c.Core.Status()
	w := c.m.w
	c.stands()
	w.promiseStands(c)
	if c.status.Role == protocol.Leader && was.Role != protocol.Leader {
		c.s.judges.won = c.status.Term
		w.Count(electionsWon)
		c.s.judges.led[c.m.id] = true
		w.elected(c.s)
	}
	if w.Tracing() && (was.Role != c.status.Role || was.Term != c.status.Term || was.Leader != c.status.Leader) {
		w.Tracef("%s   is %s of term %d%s, leader %s", c.m.id, c.status.Role, c.status.Term, w.named(c.s.instance), c.status.Leader)
	}
}

// entryDigest identifies an entry by its envelope, which covers the payload's digest.
func entryDigest(e *protocol.Entry) uint64 {
	return uint64(binary.LittleEndian.Uint32(e.Head()))<<32 | uint64(e.Digest)
}

func votersOf(c *protocol.Config) *check.Voters {
	v := &check.Voters{}
	for _, id := range c.Voters() {
		v.Incoming = append(v.Incoming, uint64(id))
	}
	for _, id := range c.Outgoing {
		v.Outgoing = append(v.Outgoing, uint64(id))
	}
	return v
}

// recordOf is a record in the ledger's type. A record of a body alone says nothing about the log.
func (s *Settings) recordOf(r *protocol.Record) check.Record {
	switch r.Kind {
	case protocol.RecordEntry:
		return entryRecord(&r.Entry)
	case protocol.RecordBody:
		return check.Record{}
	case protocol.RecordCell:
		return s.cellRecord(r.Cell)
	case protocol.RecordDrop:
		return check.Record{Kind: check.DropRecord, Index: r.Cell.Number}
	case protocol.RecordState:
		return check.Record{Kind: check.StateRecord, Term: uint64(r.State.Term), Vote: uint64(r.State.Vote)}
	}
	return check.Record{Kind: check.BaseRecord, Index: uint64(r.Base.Index), Term: uint64(r.Base.Term), Voters: votersOf(&r.Base.Config)}
}

func (s *Settings) cellRecord(c protocol.Cell) check.Record {
	r := check.Record{Kind: check.CellRecord, Index: c.Number, Digest: uint64(protocol.Digest(c.Data))}
	if accepted := s.protocol.Core.Accepted; accepted != nil {
		if e, ok := accepted(c); ok {
			holds := entryRecord(&e)
			r.Holds = &holds
		}
	}
	return r
}

func entryRecord(e *protocol.Entry) check.Record {
	c := check.Record{Kind: check.EntryRecord, Index: uint64(e.Index), Term: uint64(e.Term), Digest: entryDigest(e)}
	if e.Kind == protocol.EntryConfig {
		if config, err := protocol.DecodeConfig(e.Payload); err == nil {
			c.Voters = votersOf(&config)
		}
	}
	return c
}

// foundRecords is what a member found on its disk, as records for the ledger.
func (s *Settings) foundRecords(rec *protocol.Recovered) []check.Record {
	out := []check.Record{
		s.recordOf(&protocol.Record{Kind: protocol.RecordState, State: rec.State}),
		s.recordOf(&protocol.Record{Kind: protocol.RecordBase, Base: &rec.Base}),
	}
	for i := range rec.Entries {
		out = append(out, entryRecord(&rec.Entries[i]))
	}
	for _, c := range rec.Cells {
		out = append(out, s.cellRecord(c))
	}
	return out
}

// judgeSaid judges a message that leaves a member. What the message says must be durable.
func (w *World) judgeSaid(m *protocol.Message) {
	from, term := w.member(m.From).judged(), uint64(m.Term)
	ledger := w.judgesOf(m.Instance).ledger
	claims := w.set.codec().ClaimsOf(m)
	var err error
	switch {
	case claims.Vote != 0:
		err = ledger.SayVote(from, term, uint64(claims.Vote))
	case claims.Stored != 0:
		err = ledger.SayStored(from, term, uint64(claims.Stored))
	case claims.Term:
		err = ledger.SayTerm(from, term)
	}
	w.Violate(m.From, err)
	if !w.member(m.From).strange() {
		w.judgeHoldings(m, &claims)
	}
}

// judgeHoldings judges what a member says about its bodies.
func (w *World) judgeHoldings(m *protocol.Message, claims *protocol.Claims) {
	bodies, ledger := w.judgesOf(m.Instance).bodies, w.judgesOf(m.Instance).ledger
	say := bodies.SayHolds
	switch {
	case claims.Asked:
		say = bodies.AnswerHolds
	case !claims.Holds:
		return
	}
	from := uint64(m.From)
	for _, h := range m.Holdings {
		switch index, term := uint64(h.Index), uint64(h.Term); {
		case h.Form == protocol.FormCommitted && index > ledger.Decided():
			w.Violate(m.From, fmt.Errorf("says that %d is committed; decided are %d", index, ledger.Decided()))
		case h.Form == protocol.FormCommitted:
		case h.Form == protocol.FormNone && !ledger.Logged(from, index, term):
			// The body is there for the state, which may be ahead of the log. The member never
			// acknowledged the entry, so nobody decided it by what this member holds.
		default:
			w.Violate(m.From, say(from, uint64(m.Term), index, term, check.Form(h.Form)))
		}
	}
}
