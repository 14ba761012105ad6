package server

import (
	"context"
	"net/http"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/server/internal/metrics"
	"github.com/braidlog/braid/server/internal/page"
)

// view is the content of the status page. It waits for the answer whether this member is ready.
func (s *Server) view(ctx context.Context) page.View { return s.viewOf(s.checks.ready(ctx)) }

// viewOf is the view of a member that is ready, or why it is not.
func (s *Server) viewOf(ready error) page.View {
	st := s.log.Status()
	return page.New(s.facts(&st, ready))
}

// facts are what a view is made of.
func (s *Server) facts(st *braid.Status, ready error) *page.Facts {
	self := s.self.Load()
	f := page.Facts{
		Braid: braid.Version,
		Name:  s.cfg.Name, Cluster: braid.MemberID(s.cfg.Node.Cluster).String(), ID: s.id, Leader: self.leader,
		Term: self.term, NotReady: ready, QuotaBytes: s.store.QuotaBytes(),
		Revision: s.store.Revision(), DBSize: s.store.DBSize(), InUse: s.store.DBSizeInUse(), Log: *st,
	}
	for _, a := range s.store.Alarms() {
		f.Alarms = append(f.Alarms, page.Alarm{Name: a.Alarm.String(), Member: braid.MemberID(a.MemberID),
			Disk: a.MemberID == uint64(s.id) && s.store.DiskAlarm()})
	}
	return &f
}

// measured is the state from which metrics are read.
func (s *Server) measured() metrics.View {
	self := s.self.Load()
	v := metrics.View{
		ID: s.id, Led: self.led, Leads: self.isLeader(), Learner: self.learner, Log: s.log.Status(), Start: s.began,
		DBSize: s.store.DBSize(), DBSizeInUse: s.store.DBSizeInUse(), QuotaBytes: s.store.QuotaBytes(),
		Connections: s.clients.Open(), ConnectionLimit: s.clients.most, ClientIn: s.intake.received.Load(),
		ClientOut: s.intake.sent.Load(), RefusedConnections: s.clients.refused.Load(),
		RefusedRequests: s.intake.refused.Load() + s.rates.refusals(),
	}
	v.Features = s.cfg.Features
	for _, a := range s.store.Alarms() {
		v.Alarms = append(v.Alarms, metrics.Alarm{Name: a.Alarm.String(), Member: braid.MemberID(a.MemberID)})
	}
	v.Committed, v.Applied = logIndexes(&v.Log)
	return v
}

func (s *Server) serveStatusJSON(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, s.view(r.Context()))
}
