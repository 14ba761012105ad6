package raft

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/braidlog/braid/internal/protocol/raft/members"
	"github.com/braidlog/braid/internal/protocol/raft/message"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/quorum"
)

// preparation is the work of a new leader before it leads (docs/internals/craft.md, 2.5). It makes those bodies whole
// that may have been committed and that it holds only in part, or proves that they were not committed. First it asks
// who holds what. Then it fetches what it knows to exist. It never gives up an entry because fetching failed.
type preparation struct {
	begun bool
	// wanted are entries after the commit index whose bodies this member does not hold
	// whole on its disk, ascending.
	wanted []wanted
	// again is when to ask and fetch again; moved when there was progress last.
	again, moved time.Duration
}

// wanted is a body to make whole.
type wanted struct {
	index   protocol.Index
	answers []answer
	// asked: the owner was asked to make it whole.
	asked bool
}

// answer is what another member said in this term about a body.
type answer struct {
	from protocol.MemberID
	form protocol.Form
}

// prepareTimeouts is after how many election timeouts without progress a new leader gives up, so
// that another, which holds more or reaches more, may try.
const prepareTimeouts = 10

// prepared continues with the preparation, and reports whether it is done.
func (r *Raft) prepared() bool {
	pre := &r.lead.pre
	if !pre.begun {
		r.beginPreparation()
	}
	r.judgeBodies()
	switch {
	case r.role != protocol.Leader:
		return false
	case len(pre.wanted) == 0:
		return true
	case r.now >= pre.moved+prepareTimeouts*r.cfg.ElectionTimeout:
		r.follow(r.term, 0)
	case r.now >= pre.again:
		pre.again = r.now + r.cfg.Heartbeat
		r.askHoldings()
		r.fetchBodies(true)
	}
	return false
}

// beginPreparation finds what to make whole. A leader appends a configuration only when
// every coded entry before it is committed, so those are not in question.
func (r *Raft) beginPreparation() {
	pre := &r.lead.pre
	pre.begun, pre.moved = true, r.now
	for k := len(r.bodies.Coded.Indexes) - 1; k >= 0; k-- {
		if r.bodies.Coded.Indexes[k] < r.members.At {
			r.commitTo(r.bodies.Coded.Indexes[k])
			break
		}
	}
	for i := r.commit + 1; i <= r.log.Last; i++ {
		if e := r.log.At(i); e.BodySize > 0 && r.disk.Holds(e) != protocol.FormWhole {
			pre.wanted = append(pre.wanted, wanted{index: i})
		}
	}
}

// judgeBodies drops bodies that are whole now, and cuts the log before an entry that certainly was
// never committed.
func (r *Raft) judgeBodies() {
	pre := &r.lead.pre
	pre.wanted = slices.DeleteFunc(pre.wanted, func(w wanted) bool {
		return w.index <= r.commit || r.disk.Holds(r.log.At(w.index)) == protocol.FormWhole
	})
	for k := range pre.wanted {
		w := &pre.wanted[k]
		if w.recoverable(r.log.At(w.index)) {
			continue
		}
		if w.enoughAnswered(&r.members, &r.cfg) {
			r.abandon(w.index)
			pre.wanted, pre.moved = pre.wanted[:k], r.now
			return
		}
	}
}

// recoverable reports whether a whole body or enough rows are known to exist, here included.
func (w *wanted) recoverable(e *protocol.Entry) bool {
	var rows quorum.Rows
	rows.Add(e.Form)
	for _, a := range w.answers {
		if a.form == protocol.FormWhole {
			return true
		}
		rows.Add(a.form)
	}
	return e.Form == protocol.FormWhole || rows.Len() >= int(e.K)
}

// enoughAnswered reports whether this member and those that answered are a quorum, so that they
// include a holder of any durable body. Older configurations need not be asked: entries that were
// coded under them are committed, because a newer configuration is in the log; see
// beginPreparation.
func (w *wanted) enoughAnswered(c *members.Configs, s *protocol.Settings) bool {
	if s.Mutant == MutantCodeFAnswers {
		n := len(c.Voters.Incoming)
		return 1+len(w.answers) >= n-quorum.Size(n)
	}
	return c.Deciders().Vote(func(id protocol.MemberID) quorum.Answer {
		if id == s.Self || slices.ContainsFunc(w.answers, func(a answer) bool { return a.from == id }) {
			return quorum.Granted
		}
		return quorum.Missing
	}) == quorum.Won
}

// abandon removes an entry that was never committed, and those after it. The first entry
// of this term takes its place on disk.
func (r *Raft) abandon(i protocol.Index) {
	if r.members.At >= i {
		panic(fmt.Sprintf("raft: member %s: giving up %d, but the configuration at %d comes after it", r.cfg.Self,
			i, r.members.At))
	}
	for j := i; j <= r.log.Last; j++ {
		r.lead.uncommitted -= r.log.At(j).Bytes()
	}
	r.cutLog(i)
	r.out.Changed = true
	r.lead.first = i
	for _, p := range r.lead.peers {
		p.Next = min(p.Next, i)
	}
}

// askHoldings asks all members about the first of what is wanted.
func (r *Raft) askHoldings() {
	pre := &r.lead.pre
	ask := make([]protocol.Holding, 0, min(protocol.MaxHoldings, len(pre.wanted)))
	for k := range cap(ask) {
		i := pre.wanted[k].index
		ask = append(ask, protocol.Holding{Index: i, Term: r.log.At(i).Term})
	}
	for _, p := range r.lead.peers {
		r.send(message.With(protocol.Message{Type: message.Holdings, To: p.ID, Commit: r.commit,
			Context: message.Stamp(r.now), Holdings: ask}, message.Part{Round: r.lead.round}))
	}
}

// fetchBodies asks the owner to make bodies whole, as many at once as may be in flight. With again
// it also repeats earlier requests.
func (r *Raft) fetchBodies(again bool) {
	bytes := 0
	for k := range r.lead.pre.wanted {
		w := &r.lead.pre.wanted[k]
		e := r.log.At(w.index)
		if e.Form == protocol.FormWhole || !w.recoverable(e) {
			continue // being written, or not known to be there
		}
		if bytes += int(e.BodySize); bytes > r.cfg.MaxInflightBytes && bytes > int(e.BodySize) {
			return
		}
		if w.asked && !again {
			continue
		}
		w.asked = true
		r.out.Want = append(r.out.Want, e.Ref(r.cfg.Instance))
	}
}

func onHoldingsResp(r *Raft, m message.Message) {
	p := r.heardPeer(m)
	if p == nil || r.lead.ready {
		return
	}
	fetch := false
	for _, h := range m.Holdings {
		k, ok := r.lead.pre.find(h.Index)
		switch {
		case !ok || h.Index <= r.commit || !r.log.Matches(h.Index, h.Term):
		case h.Form == protocol.FormCommitted:
			r.commitTo(h.Index)
			r.lead.pre.moved = r.now
			if r.role != protocol.Leader {
				return
			}
		default:
			w := &r.lead.pre.wanted[k]
			if w.note(p.ID, h.Form) {
				r.lead.pre.moved = r.now
			}
			fetch = fetch || !w.asked && w.recoverable(r.log.At(w.index))
		}
	}
	if fetch {
		r.fetchBodies(false)
	}
}

// find returns where an entry is among what is wanted.
func (p *preparation) find(i protocol.Index) (int, bool) {
	return slices.BinarySearchFunc(p.wanted, i, func(w wanted, i protocol.Index) int { return cmp.Compare(w.index, i) })
}

// note takes in an answer and reports whether it says more than was known.
func (w *wanted) note(from protocol.MemberID, f protocol.Form) bool {
	for k := range w.answers {
		if a := &w.answers[k]; a.from == from {
			if f.Better(a.form) {
				a.form = f
				return true
			}
			return false
		}
	}
	w.answers = append(w.answers, answer{from, f})
	return true
}

// bodyMade takes a body that was made whole. The body counts when it is durable.
func (r *Raft) bodyMade(in protocol.BodyMade) {
	if r.role != protocol.Leader || r.lead.ready {
		return
	}
	if _, ok := r.lead.pre.find(in.Index); !ok || in.Index <= r.commit || !r.log.Matches(in.Index, in.Term) {
		return
	}
	e := *r.log.At(in.Index)
	if e.Form == protocol.FormWhole || len(in.Body) != int(e.BodySize) {
		return
	}
	r.lead.uncommitted -= e.Bytes()
	e.Form, e.Body = protocol.FormWhole, in.Body
	r.lead.uncommitted += e.Bytes()
	r.improve([]protocol.Entry{e})
	r.lead.pre.moved = r.now
}
