package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/braidlog/braid/internal/check"
	"github.com/braidlog/braid/internal/sim/count"
	"github.com/braidlog/braid/internal/sim/judge"
	"github.com/braidlog/braid/protocol"
)

var (
	BodiesByLanes       = count.New("bodies_by_lanes", "bodies by lanes", count.Staged)
	lanesLonger         = count.New("lanes_longer", "lanes longer than the path by the leader", count.Staged)
	ElectionsWon        = count.New("elections", "elections")
	jointConfigurations = count.New("joint_configurations", "joint configurations")
	configurations      = count.New("configurations", "configurations")
	profilesDecided     = count.New("profiles_decided", "profiles decided", count.Bodiless)
	codedEntriesDecided = count.New("coded_entries_decided", "coded entries", count.Coded)
	bodiesUpgraded      = count.New("bodies_upgraded", "bodies upgraded", count.Coded)
	logsCutByLeaders    = count.New("logs_cut_by_new_leaders", "logs cut by new leaders", count.Coded)
)

// Witness wraps a core: everything that it decides goes to the judges first.
type Witness struct {
	protocol.Core
	Part   *MemberInstance
	Member *Member
	Latest protocol.Status // as of the last change
	waste  waste
	reads  readPoints
}

func newWitness(s *MemberInstance, core protocol.Core) *Witness {
	return &Witness{Core: core, Part: s, Member: s.Member, Latest: core.Status()}
}

// Step implements protocol.Core. out may have effects of earlier steps of the same turn. Only the new ones are
// judged.
func (c *Witness) Step(now time.Duration, in protocol.Input, out *protocol.Effects) {
	before := *out
	out.Changed, out.Install = false, nil
	c.asks(in)
	c.Core.Step(now, in, out)
	news := newsOf(out, &before)
	err := errors.Join(c.judge(&news), c.judgeReads(&news))
	if (c.Latest.Role == protocol.Leader || len(news.Commit) > 0) && !c.Member.Env.Set.ByKey() {
		err = errors.Join(err, c.waste.follow(c, in, &news))
	}
	if err != nil {
		c.Member.Env.Violate(c.Member.ID, err)
	}
	out.Changed = out.Changed || before.Changed
	if out.Install == nil {
		out.Install = before.Install
	}
}

// newsOf returns the effects that a step added.
func newsOf(out, before *protocol.Effects) protocol.Effects {
	news, persist := *out, len(before.Persist)
	if persist > 0 && before.Persist[persist-1].Kind == protocol.RecordState {
		persist-- // a new one may have replaced it
	}
	news.Persist, news.Commit = out.Persist[persist:], out.Commit[len(before.Commit):]
	news.Send, news.Release = out.Send[len(before.Send):], out.Release[len(before.Release):]
	news.Accepted = out.Accepted[len(before.Accepted):]
	news.Reads, news.Reject = out.Reads[len(before.Reads):], out.Reject[len(before.Reject):]
	return news
}

func (c *Witness) judge(out *protocol.Effects) error {
	if err := c.Core.Check(); err != nil {
		return fmt.Errorf("invariant: %w", err)
	}
	if err := c.deleted(out); err != nil {
		return err
	}
	id, ledger := c.Member.Judged(), c.Part.Judges.Ledger
	leader := id
	for i := range out.Persist {
		r := c.Part.Judges.Record(&out.Persist[i])
		if err := ledger.Write(id, out.Seq, r); err != nil {
			return err
		}
		if err := c.judgeBody(&out.Persist[i]); err != nil {
			return err
		}
		if err := c.judgeSkip(&out.Persist[i]); err != nil {
			return err
		}
		if r.Kind == check.EntryRecord && r.Voters != nil && c.Latest.Role == protocol.Leader {
			c.Member.Env.Count(configurations)
			if len(r.Voters.Outgoing) > 0 {
				c.Member.Env.Count(jointConfigurations)
			}
		}
	}
	if out.Changed {
		c.changed()
	}
	if c.Latest.Role == protocol.Leader {
		if judged := &c.Part.Judges.Core.Judged; judged.ManyLead || judged.ByKey {
			leader = uint64(c.Member.ID) // it leads according to the log, in all its incarnations
		} else if err := c.Part.Judges.Leads(c.Latest.Term, c.Member.Life); err != nil {
			return err
		}
		if err := ledger.Lead(leader, uint64(c.Latest.Term)); err != nil {
			return err
		}
	}
	if len(out.Accepted) > 0 && c.Member.Env.Set.proposingOf(c.Part.Judges.Core).Path != nil {
		for _, id := range out.Accepted {
			c.Part.Judges.Accept(id)
		}
	}
	for i := range out.Commit {
		e := &out.Commit[i]
		if out.Install != nil && e.Index <= out.Install.Index {
			continue // the snapshot includes it
		}
		before := ledger.Decided()
		decide := ledger.Decide
		if e.Kind == protocol.EntryNoop {
			decide = ledger.DecideVoid
		}
		if err := decide(id, uint64(c.Latest.Term), uint64(e.Index), uint64(e.Term), judge.DigestOf(e)); err != nil {
			return err
		}
		if ledger.Decided() > before {
			c.Member.Env.Observer.Decided(c.Part, e)
			if err := errors.Join(c.decided(e), c.Part.Judges.Decide(e)); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleted judges the entries that a new leader deletes before it leads.
func (c *Witness) deleted(out *protocol.Effects) error {
	id, ledger := c.Member.Judged(), c.Part.Judges.Ledger
	was, term := ledger.Last(id)
	if c.Member.Env.Set.ByKey() {
		return nil // there is no leader
	}
	if c.Latest.Role != protocol.Leader || term >= uint64(c.Latest.Term) {
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
	c.Member.Env.Count(logsCutByLeaders)
	c.Member.Env.Tracef("%s   deletes what was never committed, after %d", c.Member.ID, last)
	return ledger.Cut(id, last)
}

// judgeBody prepares the report of a record's bodies to the judge. The judge gets it when the outbox is executed.
// Only then the call of Submit that writes the record is known, because other writes may come first.
func (c *Witness) judgeBody(r *protocol.Record) error {
	m, bodies := c.Member, c.Part.Judges.Bodies
	if m.Strange() || m.Env.Set.ByKey() {
		return nil // its data does not count, or there are no bodies
	}
	var note func() error
	switch r.Kind {
	case protocol.RecordState:
		commit := r.State.Commit
		note = func() error { c.Part.noting = commit; return nil }
	case protocol.RecordEntry:
		if judge.Bare(&r.Entry) && c.Part.Judges.Core.Judged.ManyLead {
			return nil // an entry with a body may have been proposed there
		}
		body := judge.BodyOf(&r.Entry)
		if r.Entry.Coded() && c.Latest.Role == protocol.Leader {
			m.Env.Observer.SentCoded(m)
		}
		note = func() error { return bodies.Entry(uint64(m.ID), m.Writer.count+1, body) }
	case protocol.RecordCell:
		if r.Entry.Form == protocol.FormNone {
			return nil
		}
		body := judge.BodyOf(&r.Entry)
		note = func() error { return bodies.Body(uint64(m.ID), m.Writer.count+1, body) }
	case protocol.RecordBody:
		m.Env.Count(bodiesUpgraded)
		body := judge.BodyOf(&r.Entry)
		note = func() error { return bodies.Body(uint64(m.ID), m.Writer.count+1, body) }
	default:
		return nil
	}
	c.Part.notes = append(c.Part.notes, note)
	return nil
}

// decided reports a decided entry to the judges of bodies and of the global log.
func (c *Witness) decided(e *protocol.Entry) error {
	w, bodies, ledger := c.Member.Env, c.Part.Judges.Bodies, c.Part.Judges.Ledger
	if e.Coded() {
		w.Count(codedEntriesDecided)
	}
	if e.Kind == protocol.EntryGroup && e.BodySize > 0 {
		w.Count(BodiesByLanes)
	}
	if w.Court.Merged() {
		if err := w.Court.Order(c.Part.Judges, e); err != nil {
			return err
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
	if w.Set.ByKey() {
		return nil // there are no configurations, and no bodies
	}
	if e.Kind == protocol.EntryConfig {
		config, err := protocol.DecodeConfig(e.Payload)
		if err != nil {
			return err
		}
		if config.Profile.Version > w.Court.Profiles.Last() {
			w.Count(profilesDecided)
		}
		return w.Court.Configure(c.Part.Judges, &config)
	}
	if c.Part.Judges.Void(e) {
		bodies.Void(uint64(e.Index), uint64(e.Term))
	}
	if judge.Bare(e) && c.Part.Judges.Core.Judged.ManyLead {
		bodies.Void(uint64(e.Index), uint64(e.Term)) // perhaps an entry with a body was proposed there
	}
	return bodies.Decide(uint64(e.Index), uint64(e.Term), ledger.DecidedBy(uint64(e.Index)))
}

func (c *Witness) changed() {
	was := c.Latest
	c.Latest = c.Core.Status()
	w := c.Member.Env
	elected := c.Latest.Role == protocol.Leader && was.Role != protocol.Leader
	if elected {
		c.Part.Judges.Won = c.Latest.Term
		w.Count(ElectionsWon)
		c.Part.Judges.Led[c.Member.ID] = true
	}
	if l := c.Latest.Lanes; l != nil && l.ByLeader && (was.Lanes == nil || !was.Lanes.ByLeader) {
		w.Count(lanesLonger)
	}
	w.Observer.Changed(c.Part, elected)
	if w.Tracing() && (was.Role != c.Latest.Role || was.Term != c.Latest.Term || was.Leader != c.Latest.Leader) {
		w.Tracef("%s   is %s of term %d%s, leader %s", c.Member.ID, c.Latest.Role, c.Latest.Term, w.Named(c.Part.Instance), c.Latest.Leader)
	}
}
