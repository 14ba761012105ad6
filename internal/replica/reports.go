package replica

import (
	"context"
	"encoding/json"
	"time"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/protocol"
)

// tell sends a report to all other members. How long an answer takes is the round trip to a member, and that of the
// leader has its newest decision.
func (f *fitting) tell(report *fit.Report) {
	request, err := json.Marshal(report)
	if err != nil {
		f.r.log.Warn("what this member measured cannot be told to others", "err", err)
		return
	}
	request = append([]byte{askReport}, request...)
	up, _ := f.r.linked()
	_, configs := f.r.apply.at()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range configs[0].Members {
		to := configs[0].Members[i].ID
		t := f.trips[to]
		switch {
		case to == f.r.opt.Self:
			continue
		case t == nil:
			t = &trips{}
			f.trips[to] = t
		case t.asking:
			continue
		}
		if !up(to) {
			t.add(0)
			continue
		}
		t.asking = true
		f.r.spawn(func(ctx context.Context) { f.ask(ctx, to, t, request) })
	}
}

// ask sends a report to a member.
func (f *fitting) ask(ctx context.Context, to protocol.MemberID, t *trips, request []byte) {
	ctx, cancel := context.WithTimeout(ctx, f.every())
	defer cancel()
	began := f.r.now()
	answer, err := f.r.links.Request(ctx, uint64(to), request)
	took := f.r.now() - began
	if err != nil {
		took = 0
	}
	f.mu.Lock()
	t.asking = false
	t.add(took)
	f.mu.Unlock()
	if err != nil || len(answer) == 0 {
		return
	}
	if leader, _ := f.look(); leader == to && f.r.tuning().measures() {
		f.published.Store(&published{encoded: answer, by: to})
	}
}

// published is a decision that is shown. One of another member is decoded if it is, because most are not.
type published struct {
	decision *fit.Published // nil: encoded has it
	encoded  []byte
	by       protocol.MemberID
}

// newest is the newest decision; nil: there is none.
func (f *fitting) newest() *fit.Published {
	p := f.published.Load()
	switch {
	case p == nil:
		return nil
	case p.decision != nil:
		return p.decision
	}
	decoded := &fit.Published{}
	if err := json.Unmarshal(p.encoded, decoded); err != nil {
		f.r.log.Warn("a decision of the fitter cannot be read", "member", p.by, "err", err)
		return nil
	}
	f.published.CompareAndSwap(p, &published{decision: decoded})
	return decoded
}

// answerReport takes in a report of another member. The answer is the newest decision, if this member leads.
func (f *fitting) answerReport(from protocol.MemberID, request []byte) ([]byte, error) {
	if f == nil || !f.r.tuning().measures() {
		return nil, nil
	}
	var report fit.Report
	if err := json.Unmarshal(request, &report); err != nil {
		return nil, err
	}
	report.Member = from
	f.hear(report)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.answer, nil
}

// hear takes in a report.
func (f *fitting) hear(report fit.Report) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard.Add(report, f.r.now())
}

// shortest are the round trips to the other members.
func (f *fitting) shortest() (all []fit.Trip) {
	_, configs := f.r.apply.at()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range configs[0].Members {
		to := configs[0].Members[i].ID
		if t := f.trips[to]; t != nil && t.shortest() > 0 {
			all = append(all, fit.Trip{To: to, Time: t.shortest()})
		}
	}
	return all
}

// view is what this member, which leads, knows. changing: it carries out an operation.
func (f *fitting) view(changing bool) (w *fit.View) {
	r := f.r
	up, _ := r.linked()
	f.mu.Lock()
	defer f.mu.Unlock()
	r.readView(func(v *cluster.MemberView) {
		v.Up = up
		w = cluster.FitView(v, r.opt.Self, &f.heard, f.every(), changing)
	})
	w.Wall = time.Now().UnixMilli()
	w.Protocol = f.how.Protocol(&w.Profile, w.Instances)
	return w
}
