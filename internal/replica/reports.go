package replica

import (
	"context"
	"encoding/json"
	"time"

	"github.com/braidlog/braid/internal/fit"
	"github.com/braidlog/braid/internal/order"
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
	p := &fit.Published{}
	if err := json.Unmarshal(answer, p); err != nil {
		f.r.log.Warn("a decision of the fitter cannot be read", "member", to, "err", err)
		return
	}
	if leader, _ := f.look(); leader == to && f.r.tuning().measures() {
		f.published.Store(p)
	}
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
	f.heard[report.Member] = heardReport{report, f.r.now()}
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

// view is what this member, which leads, knows. changing: some change is in progress.
func (f *fitting) view(changing bool) *fit.View {
	r := f.r
	at, configs := r.apply.at()
	config := &configs[0]
	v := &fit.View{
		Now: r.now(), Wall: time.Now().UnixMilli(), Mode: r.tuning().Fit, Profile: config.Profile,
		Protocol: f.how.Protocol(&config.Profile, len(at.Points)), Instances: len(at.Points), Changing: changing,
	}
	statuses := f.leaders(v, &at)
	up, _ := r.linked()
	fresh := freshFor * f.every()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range config.Members {
		m := &config.Members[i]
		heard, ok := f.heard[m.ID]
		ok = ok && v.Now-heard.at < fresh
		if ok {
			v.Reports = append(v.Reports, heard.Report)
		}
		if config.Voter(m.ID) {
			present := m.ID == r.opt.Self || ok && up(m.ID) && keepsUp(statuses, m.ID)
			v.Members = append(v.Members, fit.Member{ID: m.ID, Name: m.Name, Zone: m.Zone, Present: present})
		}
	}
	return v
}

// leaders fills in the leaders of a view. It returns the status of each instance.
func (f *fitting) leaders(v *fit.View, at *order.Cursor) (all []*protocol.Status) {
	for _, p := range at.Points {
		leader := protocol.MemberID(0)
		if l := f.r.hosted(p.Instance); l != nil {
			st := l.status.Load()
			all, leader = append(all, st), st.Leader
		}
		v.Leaders = append(v.Leaders, leader)
		v.Changing = v.Changing || leader == 0
	}
	return all
}

// tooFarBehind is how many entries a member may be behind that could lead, as for a leader that hands over.
const tooFarBehind = 1024

// keepsUp reports whether a member follows all instances that this member leads.
func keepsUp(instances []*protocol.Status, id protocol.MemberID) bool {
	for _, st := range instances {
		for i := range st.Peers {
			p := &st.Peers[i]
			if p.ID == id && (!p.Active || p.Snapshot || p.Match+tooFarBehind < st.Commit) {
				return false
			}
		}
	}
	return true
}
