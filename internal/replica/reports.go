package replica

import (
	"context"
	"encoding/json"
	"time"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/member/cluster"
	"github.com/braidlog/braid/protocol"
)

// memberReport is a report as it is sent.
type memberReport struct {
	fit.Report
	// Brief: the member does not need the leader's newest decision now.
	Brief bool `json:"brief,omitempty"`
}

// mostBrief is how many reports in a row are brief, at most. A decision that is rarely shown is not much older.
const mostBrief = 9

// briefly reports whether the next report is brief. A decision has all members' reports, and is most of what members
// send while nothing else happens. So it is only asked for if it was shown since the last report, if none of the
// present leader is known, or if it is old.
func (f *fitting) briefly() bool {
	p := f.published.Load()
	leader, _ := f.look()
	if f.shown.Swap(false) || p == nil || p.by != leader || f.brief == mostBrief {
		f.brief = 0
		return false
	}
	f.brief++
	return true
}

// tell sends a report to all other members. How long an answer takes is the round trip to a member, and that of the
// leader has its newest decision.
func (f *fitting) tell(report *memberReport) {
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
		f.published.Store(&published{by: to, encoded: answer})
	}
}

// published is a decision of a member. Another member's is decoded when it is shown, and this one's is encoded when it
// is asked for, because most are not.
type published struct {
	by       protocol.MemberID
	decision *fit.Published // nil: encoded has it
	encoded  []byte         // nil: not encoded yet
}

// newest is the newest decision, which is shown; nil: there is none.
func (f *fitting) newest() *fit.Published {
	f.shown.Store(true)
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
	f.published.CompareAndSwap(p, &published{by: p.by, decision: decoded, encoded: p.encoded})
	return decoded
}

// answerReport takes in a report of another member. The answer is the newest decision, if this member leads and the
// report is not brief.
func (f *fitting) answerReport(from protocol.MemberID, request []byte) ([]byte, error) {
	if f == nil || !f.r.tuning().measures() {
		return nil, nil
	}
	var report memberReport
	if err := json.Unmarshal(request, &report); err != nil {
		return nil, err
	}
	report.Member = from
	f.hear(report.Report)
	if report.Brief {
		return nil, nil
	}
	return f.decided()
}

// decided is this member's newest decision, encoded; nil: it does not lead, or has not decided yet.
func (f *fitting) decided() ([]byte, error) {
	p, self := f.published.Load(), f.r.opt.Self
	if leader, _ := f.look(); leader != self || p == nil || p.by != self {
		return nil, nil
	}
	if p.encoded != nil {
		return p.encoded, nil
	}
	encoded, err := json.Marshal(p.decision)
	if err != nil {
		return nil, err
	}
	f.published.CompareAndSwap(p, &published{by: self, decision: p.decision, encoded: encoded})
	return encoded, nil
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
